/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_spare_rare.c - a shrink among members that fail, send nonsense, or do not answer.
 *
 * Shrinking uses only the public API. Here, --wrap replaces these calls, so the test decides which
 * messages come and which call fails. A time limit is 0 or for ever, so nothing depends on a clock.
 */
#include <errno.h>

#include "unit/unit.h"
#include "nbar_extra.h"
#include "internal.h"

#define SIZE 70u /* more members than one round asks for their addresses */
#define ASKED 64u
#define FLOOD 4096u /* messages that are received between two looks at the clock */
#define PART_BITS 15u
/* FNV-1a of the failed rank 3, without these bits. Different builds of the library must agree. */
#define DIGEST_OF_3 UINT32_C(0x60c5eb0)
/* Messages of an address. As the number of a part, it means a request for the address. */
#define ASK ((uint32_t)(sizeof(struct nbar_endpoint) / PART_SIZE))
#define PART_SIZE (4 * (NBAR_SIGNAL_WORDS - 1))
#define TAG 77u

static struct nbar_group signals, fresh;
static struct nbar_port port;
static uint32_t need[SIZE]; /* new ranks that the new group talks to */

static struct {
	int send, recv, open, start, connect, post, test; /* errors; 0: none */
	uint32_t tests, connects;                         /* calls that say "not yet" */
	uint32_t starts;
	uint32_t nneed;
	uint32_t asked[SIZE], sent[SIZE]; /* messages to each peer: requests, and others */
	uint32_t list, nonce;             /* of the requests */
	uint32_t answered;                /* the nonce of the last address sent, and the list */
	uint32_t nin, next;               /* messages that wait to be received */
	struct nbar_signal_in in[8 * SIZE];
	uint32_t opened, closed;
	struct nbar_group_attr made;      /* of the last group */
	struct nbar_endpoint endpoint[3]; /* that the group connects to */
	bool answers;                     /* each member that is asked sends its address */
	uint32_t flooded;                 /* messages of the flood that were received */
	bool flood;                       /* there is always a further message */
} fake;

/* The address of this member's last group: only its first byte differs from that of the last but
 * one. */
static void set_own(struct nbar_endpoint *out)
{
	for (uint32_t i = 0; i < sizeof(out->byte); i++)
		out->byte[i] = (uint8_t)(i + (i == 0 ? 100 + fake.opened : 0));
}

/* The address of another member. */
static void set_other(struct nbar_endpoint *out, uint32_t rank)
{
	for (uint32_t i = 0; i < sizeof(out->byte); i++)
		out->byte[i] = (uint8_t)(10 * rank + i);
}

int __wrap_nbar_group_open(struct nbar_port *p, const struct nbar_group_attr *attr,
			   struct nbar_group **out, struct nbar_endpoint *endpoint);
int __wrap_nbar_group_open(struct nbar_port *p, const struct nbar_group_attr *attr,
			   struct nbar_group **out, struct nbar_endpoint *endpoint)
{
	bool is_signal = attr->alg && strcmp(attr->alg, "signal") == 0;

	assert_ptr_equal(p, &port);
	assert_int_equal(attr->struct_size, sizeof(*attr));
	if (fake.open)
		return nblib_fail(-fake.open, "no group");
	if (is_signal)
		assert_true(!attr->plan && attr->plan_length == 0);
	fake.opened += !is_signal;
	set_own(endpoint);
	fake.made = *attr;
	*out = is_signal ? &signals : &fresh;
	return 0;
}

void __wrap_nbar_group_close(struct nbar_group *g);
void __wrap_nbar_group_close(struct nbar_group *g)
{
	fake.closed += g == &fresh;
}

int __wrap_nbar_group_peers(const struct nbar_group *g, const uint32_t **ranks);
int __wrap_nbar_group_peers(const struct nbar_group *g, const uint32_t **ranks)
{
	assert_ptr_equal(g, &fresh);
	*ranks = need;
	return (int)fake.nneed;
}

int __wrap_nbar_group_connect_start(struct nbar_group *g, const struct nbar_endpoint *endpoints);
int __wrap_nbar_group_connect_start(struct nbar_group *g, const struct nbar_endpoint *endpoints)
{
	assert_ptr_equal(g, &fresh);
	for (uint32_t r = 0; r < 3; r++)
		fake.endpoint[r] = endpoints[r];
	fake.starts++;
	return fake.start ? nblib_fail(-fake.start, "cannot connect") : 0;
}

int __wrap_nbar_group_connect_test(struct nbar_group *g);
int __wrap_nbar_group_connect_test(struct nbar_group *g)
{
	assert_ptr_equal(g, &fresh);
	if (fake.connect)
		return nblib_fail(-fake.connect, "not connected");
	if (fake.connects == 0)
		return 1;
	fake.connects--;
	return 0;
}

int __wrap_nbar_post(struct nbar_group *g, uint32_t *ticket);
int __wrap_nbar_post(struct nbar_group *g, uint32_t *ticket)
{
	assert_ptr_equal(g, &fresh);
	*ticket = 1;
	return fake.post ? nblib_fail(-fake.post, "not posted") : 0;
}

int __wrap_nbar_test(struct nbar_group *g, uint32_t ticket);
int __wrap_nbar_test(struct nbar_group *g, uint32_t ticket)
{
	assert_ptr_equal(g, &fresh);
	assert_int_equal(ticket, 1);
	if (fake.test)
		return nblib_fail(-fake.test, "failed");
	if (fake.tests == 0)
		return 1;
	fake.tests--;
	return 0;
}

static struct nbar_signal_in *put(uint32_t src, uint32_t head)
{
	struct nbar_signal_in *in = &fake.in[fake.nin++];

	*in = (struct nbar_signal_in){ .group = &signals, .src = src, .word = { head } };
	return in;
}

/* The address of a member, from this part on. */
static void put_parts(uint32_t src, uint32_t first)
{
	struct nbar_endpoint address;

	set_other(&address, src);
	for (uint32_t part = first; part < ASK; part++)
		memcpy(&put(src, (fake.list ^ fake.nonce) | part)->word[1],
		       address.byte + part * PART_SIZE, PART_SIZE);
}

static void put_address(uint32_t src)
{
	put_parts(src, 0);
}

/* This member's group has the addresses of the first two members that are left. */
static void expect_endpoints(void)
{
	static const struct nbar_endpoint none;
	struct nbar_endpoint expected[2];

	set_own(&expected[0]);
	set_other(&expected[1], 2);
	assert_memory_equal(fake.endpoint, expected, sizeof(expected));
	set_other(&expected[1], 3);
	assert_memory_equal(&fake.endpoint[2], fake.asked[3] ? &expected[1] : &none, sizeof(none));
}

/* This is rank 0: peer p is rank p + 1. */
int __wrap_nbar_signal_send(struct nbar_group *g, uint32_t peer, const uint32_t *word);
int __wrap_nbar_signal_send(struct nbar_group *g, uint32_t peer, const uint32_t *word)
{
	struct nbar_endpoint own;

	assert_ptr_equal(g, &signals);
	if (fake.send)
		return nblib_fail(-fake.send, "not sent");
	if ((word[0] & PART_BITS) != ASK) {
		/* A part of this rank's address. */
		set_own(&own);
		assert_memory_equal(&word[1], own.byte + (word[0] & PART_BITS) * PART_SIZE,
				    PART_SIZE);
		fake.sent[peer + 1]++;
		fake.answered = word[0] & ~PART_BITS;
		return 0;
	}
	fake.list = word[0] & ~PART_BITS;
	fake.nonce = word[1];
	fake.asked[peer + 1]++;
	if (fake.answers)
		put_address(peer + 1);
	return 0;
}

int __wrap_nbar_signal_recv(struct nbar_port *p, struct nbar_signal_in *out);
int __wrap_nbar_signal_recv(struct nbar_port *p, struct nbar_signal_in *out)
{
	assert_ptr_equal(p, &port);
	if (fake.next < fake.nin) {
		*out = fake.in[fake.next++];
		return 1;
	}
	if (fake.flood) {
		*out = (struct nbar_signal_in){ .group = &signals, .src = 1 };
		fake.flooded++;
		return 1;
	}
	/* There is no message: the library must ignore what this call writes. */
	*out = (struct nbar_signal_in){ .group = &signals, .src = 2, .word = { fake.list | ASK } };
	return fake.recv ? nblib_fail(-fake.recv, "not received") : 0;
}

/* Number of allocations that are not free. */
static uint32_t allocated;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	assert_int_equal(n, 1);
	allocated++;
	return __real_calloc(n, size);
}

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
	allocated -= memory != NULL;
	__real_free(memory);
}

static struct nbar_spare *spare_of(uint32_t size)
{
	static const struct nbar_plan plan;
	/* The plan is not for the "signal" group. */
	const struct nbar_group_attr attr = {
		.size = size, .tag = TAG, .plan = &plan, .plan_length = sizeof(plan)
	};
	struct nbar_endpoint endpoint;
	struct nbar_spare *s;

	memset(&fake, 0, sizeof(fake));
	assert_int_equal(nbar_spare_open(&port, &attr, &s, &endpoint), 0);
	for (uint32_t i = 0; i < size; i++)
		need[i] = i + 1;
	fake.nneed = 1;
	return s;
}

/* Rank 1 has failed. Returns what nbar_spare_shrink returns. */
static int shrink(struct nbar_spare *s, uint64_t timeout_ns)
{
	static const uint32_t failed[] = { 1, UINT32_MAX };
	struct nbar_group *g = NULL;
	int rc = nbar_spare_shrink(s, failed, 1, timeout_ns, &g);

	assert_ptr_equal(g, rc == 0 ? &fresh : NULL);
	assert_int_equal(fake.closed, rc < 0 && rc != -ETIME && !fake.open);
	return rc;
}

static void all_answer(void **state)
{
	struct nbar_spare *s = spare_of(4);

	(void)state;
	fake.answers = true;
	fake.nneed = 2;
	fake.tests = 2;
	assert_int_equal(shrink(s, NBAR_FOREVER), 0);
	assert_int_equal(fake.tests, 0); /* it has waited until all were connected */
	assert_int_equal(fake.asked[1], 0);
	assert_int_equal(fake.asked[2], 1);
	assert_int_equal(fake.asked[3], 1);
	expect_endpoints();
	assert_int_equal(fake.made.rank, 0);
	assert_int_equal(fake.made.size, 3);
	assert_int_equal(fake.made.tag, TAG ^ fake.list);
	nbar_spare_close(s);
}

/* A round asks only some members. */
static void many_are_asked_in_turn(void **state)
{
	struct nbar_spare *s = spare_of(SIZE);

	(void)state;
	fake.nneed = SIZE - 2;
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_non_null(strstr(nbar_error(), "has not sent its address"));
	assert_int_equal(fake.asked[2], 1);
	assert_int_equal(fake.asked[ASKED + 1], 1);
	assert_int_equal(fake.asked[ASKED + 2], 0);
	fake.answers = true;
	assert_int_equal(shrink(s, NBAR_FOREVER), 0);
	assert_int_equal(fake.asked[SIZE - 1], 1);
	assert_int_equal(fake.opened, 1);
	nbar_spare_close(s);
}

/* Messages that are no answer to the request, before the time is over. */
static void nonsense_is_ignored(void **state)
{
	struct nbar_spare *s = spare_of(4);

	(void)state;
	assert_int_equal(shrink(s, 0), -ETIME); /* now the test knows list and nonce */
	put_address(1);                         /* it has failed */
	put_address(4);                         /* there is no such rank */
	put_address(UINT32_MAX);                /* there is no such rank either */
	for (uint32_t part = 0; part < ASK; part++)
		put(2, fake.list | part); /* an answer that belongs to no request */
	for (uint32_t part = 0; part < ASK; part++)
		put(2, (fake.list ^ fake.nonce ^ 16) | part); /* about another list */
	for (uint32_t part = ASK; part <= PART_BITS; part++)
		put(2, (fake.list ^ fake.nonce) | part); /* there is no such part */
	put(2, (fake.list ^ 16) | ASK);
	put(0, fake.list | ASK); /* it claims to come from this rank */
	put(2, fake.list | ASK)->group = &fresh;
	put_parts(2, 1); /* the first part is missing */
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_int_equal(fake.next, fake.nin);
	assert_int_equal(fake.sent[1] + fake.sent[2], 0);
	/* The member answers a request, with all parts. */
	put(2, fake.list | ASK)->word[1] = UINT32_MAX;
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_int_equal(fake.sent[2], ASK);
	assert_int_equal(fake.answered, ~fake.list & ~PART_BITS);
	assert_int_equal(fake.asked[2], 3); /* once in each call */
	put_address(2);
	assert_int_equal(shrink(s, NBAR_FOREVER), 0);
	expect_endpoints();
	nbar_spare_close(s);
}

/* The NIC ends during each call; and the time is over while the others connect. */
static void each_error_ends_it(void **state)
{
	static int *const call[] = { &fake.send,    &fake.recv, &fake.open, &fake.start,
				     &fake.connect, &fake.post, &fake.test };
	static const int error[] = { ENETDOWN, EPERM };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(call) / sizeof(call[0]); i++) {
		struct nbar_spare *s = spare_of(3);

		fake.answers = call[i / 2] != &fake.recv;
		*call[i / 2] = error[i % 2];
		assert_int_equal(shrink(s, NBAR_FOREVER), -error[i % 2]);
		nbar_spare_close(s);
	}
	/* Another error counts more than the end of the time. */
	for (size_t i = 0; i < 2; i++) {
		struct nbar_spare *s = spare_of(3);

		fake.recv = error[i];
		assert_int_equal(shrink(s, 0), -error[i]);
		nbar_spare_close(s);
	}
	/* The ring is full: the message counts as lost. */
	struct nbar_spare *s = spare_of(3);

	fake.send = EAGAIN;
	assert_int_equal(shrink(s, 0), -ETIME);
	nbar_spare_close(s);
	/* An answer cannot be sent. */
	s = spare_of(3);
	assert_int_equal(shrink(s, 0), -ETIME);
	put_address(2);
	assert_int_equal(shrink(s, 0), -ETIME);
	put(2, fake.list | ASK);
	fake.tests = 1;
	fake.send = ENETDOWN;
	assert_int_equal(shrink(s, NBAR_FOREVER), -ENETDOWN);
	fake.closed = 0;
	fake.send = 0;
	fake.nneed = 0;
	fake.tests = 1;
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_non_null(strstr(nbar_error(), "not all that are left have connected"));
	nbar_spare_close(s);
}

/* A spare that cannot be opened: the caller gets the error. */
static void a_spare_that_does_not_open(void **state)
{
	struct nbar_group_attr attr = { .struct_size = 4, .size = 3 };
	struct nbar_endpoint endpoint;
	struct nbar_spare *s = NULL;

	(void)state;
	memset(&fake, 0, sizeof(fake));
	assert_int_equal(nbar_spare_open(&port, &attr, &s, &endpoint), -EINVAL);
	attr.struct_size = sizeof(attr);
	fake.open = EPERM;
	assert_int_equal(nbar_spare_open(&port, &attr, &s, &endpoint), -EPERM);
	assert_null(s);
}

/* The digest in a request tells lists of failed ranks apart; the nonce tells the groups of one
 * member apart. */
static void requests_name_the_list_and_the_group(void **state)
{
	struct nbar_spare *s = spare_of(4);
	uint32_t failed = 3, list, nonce;
	struct nbar_group *g;

	(void)state;
	assert_int_equal(nbar_spare_shrink(s, &failed, 1, 0, &g), -ETIME);
	list = fake.list;
	assert_int_equal(list, DIGEST_OF_3);
	nonce = fake.nonce;
	failed = 2;
	assert_int_equal(nbar_spare_shrink(s, &failed, 1, 0, &g), -ETIME);
	assert_true(fake.list != list);
	assert_true(fake.nonce != nonce);
	nonce = fake.nonce;
	failed = 3;
	assert_int_equal(nbar_spare_shrink(s, &failed, 1, 0, &g), -ETIME);
	assert_int_equal(fake.list, list);
	assert_true(fake.nonce != nonce);
	fake.answers = true;
	assert_int_equal(nbar_spare_shrink(s, &failed, 1, NBAR_FOREVER, &g), 0);
	nbar_spare_close(s);
}

/* A call goes on with the group of the call before if the list is the same; otherwise it closes
 * that group. */
static void the_next_call_goes_on(void **state)
{
	static const uint32_t failed[] = { 2, 1 };
	struct nbar_spare *s = spare_of(5);
	struct nbar_group *g = NULL;

	(void)state;
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_int_equal(fake.opened, 1);
	fake.nneed = 0;
	fake.tests = 1;
	assert_int_equal(nbar_spare_shrink(s, failed, 2, 0, &g), -ETIME);
	assert_int_equal(fake.closed, 1);
	assert_int_equal(fake.opened, 2);
	/* A list that is refused changes nothing; the order of the ranks does not matter. */
	assert_int_equal(nbar_spare_shrink(s, (uint32_t[]){ 0 }, 1, 0, &g), -EINVAL);
	assert_non_null(strstr(nbar_error(), "rank 0 cannot be one of the failed"));
	assert_int_equal(nbar_spare_shrink(s, (uint32_t[]){ 6 }, 1, 0, &g), -EINVAL);
	assert_string_equal(nbar_error(), "rank 6 cannot be one of the failed: the group has 5, "
					  "and this is 0");
	fake.tests = 1;
	assert_int_equal(nbar_spare_shrink(s, (uint32_t[]){ 1, 2 }, 2, 0, &g), -ETIME);
	assert_int_equal(fake.opened, 2);
	/* The barrier has been posted once, and stays posted. */
	fake.post = ENETDOWN;
	assert_int_equal(nbar_spare_shrink(s, failed, 2, 0, &g), 0);
	assert_ptr_equal(g, &fresh);
	assert_int_equal(fake.closed, 1);
	/* A group that is not finished ends with its spare. */
	fake.post = 0;
	fake.tests = 1;
	assert_int_equal(nbar_spare_shrink(s, failed, 2, 0, &g), -ETIME);
	assert_int_equal(fake.opened, 3);
	nbar_spare_close(s);
	assert_int_equal(fake.closed, 2);
}

/* The time is over while the NIC connects the group: the next call goes on with that group. */
static void a_slow_nic_goes_on_connecting(void **state)
{
	struct nbar_spare *s = spare_of(5);

	(void)state;
	fake.nneed = 0;
	fake.connects = 3;
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_int_equal(shrink(s, 0), 0);
	assert_int_equal(fake.opened, 1);
	assert_int_equal(fake.starts, 1);
	assert_int_equal(fake.closed, 0);
	nbar_spare_close(s);
}

/* A member floods another member, which still looks at the clock. */
static void a_flood_does_not_stop_the_clock(void **state)
{
	struct nbar_spare *s = spare_of(3);

	(void)state;
	fake.nneed = 0;
	fake.tests = 1;
	fake.flood = true;
	assert_int_equal(shrink(s, 0), -ETIME);
	assert_int_equal(fake.flooded, FLOOD);
	nbar_spare_close(s);
}

/* After all tests: a closed spare, and each call that ended, have freed their memory. */
static void no_memory_is_left(void **state)
{
	(void)state;
	assert_int_equal(allocated, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_answer),
		cmocka_unit_test(many_are_asked_in_turn),
		cmocka_unit_test(nonsense_is_ignored),
		cmocka_unit_test(each_error_ends_it),
		cmocka_unit_test(a_spare_that_does_not_open),
		cmocka_unit_test(requests_name_the_list_and_the_group),
		cmocka_unit_test(the_next_call_goes_on),
		cmocka_unit_test(a_slow_nic_goes_on_connecting),
		cmocka_unit_test(a_flood_does_not_stop_the_clock),
		cmocka_unit_test(no_memory_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
