/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_spare_orders.c - a shrink in every order of its members' steps.
 *
 * The members are coroutines that run nbar_spare_shrink itself. --wrap replaces the calls of
 * nbar_spare_shrink: a member stops at each nap. There the test decides which member runs next, and
 * whether the time of its call is over; then that member calls again. The test tries all decisions
 * up to a depth, after a number of rounds without decisions. After that, no time limit ends a call,
 * and all members must get a group; or one more member dies, and all others must get a group
 * without it.
 */
#include <errno.h>
#include <time.h>
#include <ucontext.h>

#include "unit/unit.h"
#include "nbar_extra.h"
#include "internal.h"

#define MEMBERS_MAX 3u
#define GROUPS_MAX 64u
#define INBOX_MAX 256u
#define PRELUDE_MAX 4u   /* rounds before the decisions; in the third round all post */
#define ROUNDS_MAX 1000u /* steps without time limits */
#define STACK_SIZE (256u << 10)
#define CALL_NS UINT64_C(1000000000) /* time limit of a call: a step of the clock, no more */

/* A new group of one member. */
struct incarnation {
	struct nbar_group handle;
	uint32_t rank, size;
	uint32_t link[MEMBERS_MAX]; /* by new rank: the group that it has connected to */
	bool connected, posted, closed, complete;
};

struct member {
	ucontext_t context;
	struct nbar_group signals;
	struct nbar_spare *spare;
	struct nbar_group *group; /* the result */
	struct nbar_signal_in in[INBOX_MAX];
	uint32_t nin, next;
	bool hurries; /* the time of its call is over at the next look at the clock */
	bool done;
	int rc;
};

static struct {
	uint32_t nmember, nlive, nfailed, running;
	ucontext_t test;
	uint32_t ngroup;
	struct incarnation group[GROUPS_MAX];
	struct member member[MEMBERS_MAX];
	bool full; /* an array is too small for this test */
} world;
static struct nbar_port port;
static char stack[MEMBERS_MAX][STACK_SIZE];

static struct member *self(void)
{
	return &world.member[world.running];
}

static struct incarnation *incarnation_of(const struct nbar_group *g)
{
	for (uint32_t i = 0; i < world.ngroup; i++)
		if (g == &world.group[i].handle)
			return &world.group[i];
	return NULL;
}

/* --- what a member calls --------------------------------------------------------------------- */

int __wrap_nbar_group_open(struct nbar_port *p, const struct nbar_group_attr *attr,
			   struct nbar_group **out, struct nbar_endpoint *endpoint);
int __wrap_nbar_group_open(struct nbar_port *p, const struct nbar_group_attr *attr,
			   struct nbar_group **out, struct nbar_endpoint *endpoint)
{
	struct incarnation *i = &world.group[world.ngroup];

	(void)p;
	memset(endpoint, (int)world.ngroup, sizeof(*endpoint));
	*out = &self()->signals;
	if (attr->alg && strcmp(attr->alg, "signal") == 0)
		return 0;
	world.full |= world.ngroup == GROUPS_MAX - 1;
	world.ngroup += !world.full;
	*i = (struct incarnation){ .rank = attr->rank, .size = attr->size };
	*out = &i->handle;
	return 0;
}

void __wrap_nbar_group_close(struct nbar_group *g);
void __wrap_nbar_group_close(struct nbar_group *g)
{
	struct incarnation *i = incarnation_of(g);

	if (i)
		i->closed = true;
}

int __wrap_nbar_group_peers(const struct nbar_group *g, const uint32_t **ranks);
int __wrap_nbar_group_peers(const struct nbar_group *g, const uint32_t **ranks)
{
	static uint32_t peer[MEMBERS_MAX][MEMBERS_MAX];
	const struct incarnation *i = incarnation_of(g);
	uint32_t own = i->rank, n = 0;

	for (uint32_t r = 0; r < i->size; r++)
		if (r != own)
			peer[own][n++] = r;
	*ranks = peer[own];
	return (int)n;
}

int __wrap_nbar_group_connect_start(struct nbar_group *g, const struct nbar_endpoint *endpoints);
int __wrap_nbar_group_connect_start(struct nbar_group *g, const struct nbar_endpoint *endpoints)
{
	struct incarnation *i = incarnation_of(g);

	for (uint32_t r = 0; r < i->size; r++)
		i->link[r] = endpoints[r].byte[0];
	return 0;
}

/* The NIC connects after a while. */
int __wrap_nbar_group_connect_test(struct nbar_group *g);
int __wrap_nbar_group_connect_test(struct nbar_group *g)
{
	struct incarnation *i = incarnation_of(g);

	if (i->connected)
		return 1;
	i->connected = true;
	return 0;
}

/* The last member that posts completes the barrier, if no member has closed its group. */
int __wrap_nbar_post(struct nbar_group *g, uint32_t *ticket);
int __wrap_nbar_post(struct nbar_group *g, uint32_t *ticket)
{
	struct incarnation *i = incarnation_of(g);
	bool all = true;

	*ticket = 1;
	i->posted = true;
	for (uint32_t r = 0; r < i->size; r++) {
		const struct incarnation *peer = &world.group[i->link[r]];

		all &= peer->posted && !peer->closed &&
		       memcmp(peer->link, i->link, i->size * sizeof(*i->link)) == 0;
	}
	for (uint32_t r = 0; all && r < i->size; r++)
		world.group[i->link[r]].complete = true;
	return 0;
}

int __wrap_nbar_test(struct nbar_group *g, uint32_t ticket);
int __wrap_nbar_test(struct nbar_group *g, uint32_t ticket)
{
	const struct incarnation *i = incarnation_of(g);

	(void)ticket;
	for (uint32_t r = 0; !i->complete && r < i->size; r++)
		if (world.group[i->link[r]].closed)
			return nblib_fail(-ESHUTDOWN, "rank %u has closed it", r);
	return i->complete;
}

int __wrap_nbar_signal_send(struct nbar_group *g, uint32_t peer, const uint32_t *word);
int __wrap_nbar_signal_send(struct nbar_group *g, uint32_t peer, const uint32_t *word)
{
	uint32_t own = world.running, to = peer + (peer >= own);
	struct member *m = &world.member[to];

	(void)g;
	if (to >= world.nmember)
		return 0; /* the rank that has failed */
	world.full |= m->nin == INBOX_MAX;
	if (world.full)
		return 0;
	m->in[m->nin] = (struct nbar_signal_in){ .group = &m->signals, .src = own };
	memcpy(m->in[m->nin++].word, word, sizeof(m->in->word));
	return 0;
}

int __wrap_nbar_signal_recv(struct nbar_port *p, struct nbar_signal_in *out);
int __wrap_nbar_signal_recv(struct nbar_port *p, struct nbar_signal_in *out)
{
	struct member *m = self();

	(void)p;
	if (m->next == m->nin) {
		m->next = m->nin = 0;
		return 0;
	}
	*out = m->in[m->next++];
	return 1;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	(void)t, (void)left;
	swapcontext(&self()->context, &world.test);
	return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	(void)clock;
	*out = (struct timespec){ .tv_sec = self()->hurries };
	return 0;
}

/* --- the members, and the test --------------------------------------------------------------- */

/* The rank after the last member has failed; later the last member fails, too. A member calls again
 * if its time is over, or if it then knows of one more failed member. */
static void member_main(void)
{
	struct member *m = self();
	const uint32_t failed[] = { world.nmember, world.nmember - 1 };

	for (;;) {
		uint32_t nfailed = world.nfailed;

		m->hurries = false;
		m->rc = nbar_spare_shrink(m->spare, failed, nfailed, CALL_NS, &m->group);
		m->done = m->rc != -ETIME && nfailed == world.nfailed;
		if (m->done)
			swapcontext(&m->context, &world.test);
		if (m->rc == 0)
			nbar_group_close(m->group);
	}
}

/* Without local variables: for the compiler getcontext may return twice. */
static void coroutine_begin(void)
{
	getcontext(&self()->context);
	self()->context.uc_stack.ss_sp = stack[world.running];
	self()->context.uc_stack.ss_size = STACK_SIZE;
	makecontext(&self()->context, member_main, 0);
}

static void world_begin(uint32_t nmember)
{
	memset(&world, 0, sizeof(world));
	world.nmember = world.nlive = nmember;
	world.nfailed = 1;
	for (uint32_t r = 0; r < nmember; r++) {
		const struct nbar_group_attr attr = { .rank = r, .size = nmember + 1 };
		struct member *m = &world.member[r];
		struct nbar_endpoint endpoint;

		world.running = r;
		assert_int_equal(nbar_spare_open(&port, &attr, &m->spare, &endpoint), 0);
		coroutine_begin();
	}
}

/* Runs a member to its next nap. hurries: its time is over there. */
static void step(uint32_t r, bool hurries)
{
	struct member *m = &world.member[r];

	if (m->done)
		return;
	world.running = r;
	m->hurries = hurries;
	swapcontext(&world.test, &m->context);
}

/* The last member runs no more. The time of the others' calls is over, and they know of the death.
 */
static void last_dies(void)
{
	world.nlive--;
	world.nfailed++;
	for (uint32_t r = 0; r < world.nlive; r++) {
		world.member[r].done = false;
		step(r, true);
	}
}

static bool all_done(void)
{
	for (uint32_t r = 0; r < world.nlive; r++)
		if (!world.member[r].done)
			return false;
	return true;
}

struct orders {
	uint32_t nmember, rounds, depth;
	bool dies; /* the last member, after these decisions */
};

static void run(const struct orders *o, uint64_t decision)
{
	uint64_t left = decision;

	world_begin(o->nmember);
	for (uint32_t i = 0; i < o->rounds * o->nmember; i++)
		step(i % o->nmember, false);
	for (uint32_t i = 0; i < o->depth; i++, left /= 2 * o->nmember)
		step((uint32_t)(left % o->nmember), left / o->nmember % 2);
	if (o->dies)
		last_dies();
	for (uint32_t i = 0; i < ROUNDS_MAX && !all_done(); i++)
		step(i % world.nlive, false);
	for (uint32_t r = 0; r < world.nlive; r++) {
		const struct member *m = &world.member[r];

		require(!world.full && m->done && m->rc == 0 &&
				incarnation_of(m->group)->complete &&
				!incarnation_of(m->group)->closed,
			"%u members, %u rounds, decisions %llu, then %s: member %u: %d: %s",
			o->nmember, o->rounds, (unsigned long long)decision,
			o->dies ? "one dies" : "none dies", r, m->rc, nbar_error());
	}
	for (uint32_t r = 0; r < o->nmember; r++) {
		world.running = r;
		nbar_spare_close(world.member[r].spare);
	}
}

/* Tries fewer decisions under a sanitizer. */
static void every_order(struct orders o)
{
	uint64_t n = 1;

	if (unit_sanitized() || unit_counted())
		o.depth -= 2;
	for (uint32_t i = 0; i < o.depth; i++)
		n *= 2 * o.nmember;
	for (o.rounds = 0; o.rounds < PRELUDE_MAX; o.rounds++)
		for (uint64_t i = 0; i < n; i++)
			run(&o, i);
}

static void two_members(void **state)
{
	(void)state;
	every_order((struct orders){ .nmember = 2, .depth = 6 });
}

static void three_members(void **state)
{
	(void)state;
	every_order((struct orders){ .nmember = 3, .depth = 5 });
}

static void one_more_dies(void **state)
{
	(void)state;
	every_order((struct orders){ .nmember = 3, .depth = 5, .dies = true });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_members),
		cmocka_unit_test(three_members),
		cmocka_unit_test(one_more_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
