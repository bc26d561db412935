/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_profile.c - the input is the file of a profile; plans are composed from it.
 *
 * Either the text is refused with a reason, or the profile, written and read again, has the same
 * hosts and classes, and the schedule composed for a small group is a barrier.
 */
#include "compose.h"
#include "fuzz.h"
#include "plan.h"
#include "profile.h"

#define HOSTS_MAX 8u /* members of the composed group: few, because the target tests the parser */

static void again(const struct profile *p)
{
	char *text = NULL, why[256];
	size_t size = 0;
	struct profile *copy = NULL;
	FILE *f = open_memstream(&text, &size);

	fuzz_require(f && profile_write(p, f) == 0 && fclose(f) == 0);
	fuzz_require(profile_parse(text, size, "COPY", &copy, why, sizeof(why)) == 0);
	fuzz_require(copy->hosts == p->hosts && copy->classes == p->classes);
	profile_free(copy);
	free(text);
}

static void plans(const struct profile *p)
{
	uint32_t host[HOSTS_MAX], size = p->hosts < HOSTS_MAX ? p->hosts : HOSTS_MAX;
	struct compose composed;
	const char *why = NULL;

	for (uint32_t i = 0; i < size; i++)
		host[i] = i;
	if (compose(p, host, size, &composed, &why) != 0) {
		fuzz_require(why);
		return;
	}
	fuzz_require(schedule_check(composed.schedule, &why) == 0);
	compose_free(&composed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size ? size : 1), why[256] = "";
	struct profile *p = NULL;

	fuzz_require(text);
	memcpy(text, data, size);
	if (profile_parse(text, size, "FILE", &p, why, sizeof(why)) == 0) {
		again(p);
		plans(p);
		profile_free(p);
	} else {
		fuzz_require(!p && strstr(why, "FILE"));
	}
	free(text);
	return 0;
}
