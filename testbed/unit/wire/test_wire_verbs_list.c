/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_verbs_list.c - devices are listed once, unless there are none.
 */
#include "unit/unit.h"

#ifdef WIRES_VERBS
#include "verbs/route.h"

static struct ibv_device device, *none[] = { NULL }, *one[] = { &device, NULL };
static struct ibv_device **next;
static uint32_t asked, freed;

struct ibv_device **ibv_get_device_list(int *n)
{
	assert_null(n);
	asked++;
	return next;
}

void ibv_free_device_list(struct ibv_device **l)
{
	assert_ptr_equal(l, none);
	freed++;
}

static void a_list_is_kept(void **state)
{
	assert_null(verbs_devices());
	next = none;
	for (uint32_t i = 0; i < 3; i++) {
		assert_null(verbs_devices()[0]);
		assert_int_equal(asked, 2 + i);
		assert_int_equal(freed, 1 + i);
	}
	next = one;
	for (uint32_t i = 0; i < 3; i++)
		assert_ptr_equal(verbs_devices(), one);
	assert_int_equal(asked, 5);
	assert_int_equal(freed, 3);
}

UNIT_MAIN(NULL, NULL, UNIT(a_list_is_kept))
#else
int main(void)
{
	puts("1..1\nok 1 - wire verbs # SKIP this build has none: apt-get install libibverbs-dev");
	return 0;
}
#endif
