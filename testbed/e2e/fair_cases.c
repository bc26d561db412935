/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair_cases.c - cases of fairness outside the table of attacks: late members, clients that die, a
 * daemon that gets SIGTERM, the memory limit, and memory that the daemon reuses.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fair.h"

#define BUDGET_MS "1000"
#define LATE_NS UINT64_C(3500000000) /* several retry budgets */
#define LINEAR 1000u
#define PAIRS 1000u
#define HEAVY 64u /* groups of a client that dies */
#define REUSE 16u /* groups of the largest size that one port may have */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif
#define GROUP_PAGES 64u /* fewer pages of memory than one of these groups has */

static struct fair world;

static uint64_t word_of(const struct raw *r, uint32_t cell)
{
	return __atomic_load_n(&r->page->completion[cell].word, __ATOMIC_ACQUIRE);
}

/* Members of several groups: each is in a cell of the same client, and at its first barrier. */
struct side {
	struct raw *r;
	uint32_t n;
	uint32_t cell[PAIRS];
	struct nbar_endpoint endpoint[PAIRS];
};

static bool side_open(struct side *s, const char *alg, uint32_t rank, uint32_t size, uint32_t tag)
{
	struct nbar_rep_group_open rep;

	if (raw_group_open(s->r, alg, rank, size, tag) != 0)
		return false;
	memcpy(&rep, s->r->reply.body, sizeof(rep));
	s->cell[s->n] = rep.cell;
	s->endpoint[s->n++] = rep.endpoint;
	return true;
}

static void side_post(const struct side *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		raw_post(s->r, s->cell[i], 1);
}

/* Returns how many members have failed, and sets *completed to how many have completed. */
static uint32_t side_failed(const struct side *s, uint32_t *completed)
{
	uint32_t failed = 0;

	*completed = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t word = word_of(s->r, s->cell[i]);

		failed += word >> 32 != 0;
		*completed += word == 1;
	}
	return failed;
}

/* Waits until all members have completed or one has failed. */
static bool side_completes(struct fair *f, const struct side *s)
{
	uint64_t end = fair_now() + f->patience_ns;
	uint32_t failed, completed;

	do {
		failed = side_failed(s, &completed);
		usleep(1000);
	} while (failed == 0 && completed < s->n && fair_now() < end);
	if (completed < s->n)
		printf("# of %u members %u have completed, and %u failed\n", s->n, completed,
		       failed);
	return completed == s->n;
}

static bool linear_open(struct side *early, struct side *late)
{
	bool open = side_open(early, "linear", 0, LINEAR, 5);

	for (uint32_t rank = 1; open && rank < LINEAR; rank++)
		open = side_open(late, "linear", rank, LINEAR, 5);
	for (uint32_t i = 0, n; open && i < late->n; i += n) {
		n = late->n - i < 600 ? late->n - i : 600;
		open = raw_group_connect(early->r, early->cell[0], &late->endpoint[i], n) == 0;
	}
	for (uint32_t i = 0; open && i < late->n; i++)
		open = raw_group_connect(late->r, late->cell[i], &early->endpoint[0], 1) == 0;
	return open;
}

static bool pairs_open(struct side *early, struct side *late)
{
	bool open = true;

	for (uint32_t i = 0; open && i < PAIRS; i++)
		open = side_open(early, "pairwise", 0, 2, 10 + i) &&
		       side_open(late, "pairwise", 1, 2, 10 + i) &&
		       raw_group_connect(early->r, early->cell[i], &late->endpoint[i], 1) == 0 &&
		       raw_group_connect(late->r, late->cell[i], &early->endpoint[i], 1) == 0;
	return open;
}

/* The early side waits for longer than the retry budget. */
static void late_members(const char *name, bool (*open)(struct side *early, struct side *late))
{
	static struct side early, late;
	struct fair *f = &world;
	uint32_t completed;

	early.n = late.n = 0;
	if (!ok(fair_begin(f, FAIR_SMALL, BUDGET_MS, false) && fair_barriers(f, 50, NULL),
		"%s: a bystander", name)) {
		fair_end(f);
		return;
	}
	early.r = fair_client(f, 0);
	late.r = fair_client(f, 1);
	if (ok(early.r && late.r && open(&early, &late), "%s: groups are open", name)) {
		uint64_t end = fair_now() + LATE_NS;
		bool well = true;

		side_post(&early);
		while (well && fair_now() < end)
			well = fair_barrier(f, NULL) > 0 && usleep(1000) == 0;
		ok(well, "%s: the bystander's barriers complete meanwhile", name);
		ok(side_failed(&early, &completed) == 0, "%s: who is late is not dead", name);
		side_post(&late);
		ok(side_completes(f, &early) && side_completes(f, &late),
		   "%s: all complete when the last arrives", name);
	}
	ok(fair_barriers(f, 50, NULL), "%s: the bystander goes on", name);
	ok(fair_end(f), "%s: SIGTERM: exit status 0", name);
}

void fair_case_late_linear(void)
{
	late_members("late-linear", linear_open);
}

void fair_case_late_pairs(void)
{
	late_members("late-pairs", pairs_open);
}

/* A client in its own process: it reports when its groups run, and goes on until it is killed. */
static void heavy_client(struct fair *f, int out)
{
	f->nclient = f->npair = 0;
	struct raw *receiver = fair_client(f, 1), *sender = fair_client(f, 0);

	for (uint32_t i = 0; i < HEAVY; i++)
		if (!receiver || !sender || !fair_wide(f, receiver, sender))
			break;
	if (f->npair == 0 || write(out, "k", 1) != 1)
		_exit(1);
	for (;;)
		fair_pass_pairs(f);
}

static bool ports_are_gone(struct fair *f)
{
	uint64_t end = fair_now() + f->patience_ns;
	struct nbar_rep_nic_stat stat;

	do {
		if (raw_ask(&f->by[0], NBAR_OP_NIC_STAT, NULL, 0) != 0)
			return false;
		memcpy(&stat, f->by[0].reply.body, sizeof(stat));
		usleep(1000);
	} while (stat.nport > 1 && fair_now() < end);
	return stat.nport == 1;
}

static void killed(enum fair_wire wire, const char *name)
{
	struct fair *f = &world;
	int ready[2];
	char byte;

	if (!ok(fair_begin(f, wire, BUDGET_MS, false) && pipe(ready) == 0, "%s: a bystander",
		name)) {
		fair_end(f);
		return;
	}
	pid_t pid = fork();

	if (pid == 0)
		heavy_client(f, ready[1]);
	close(ready[1]);
	ok(read(ready[0], &byte, 1) == 1, "%s: a client with groups of 4,096 sends", name);
	close(ready[0]);
	ok(fair_barriers(f, 200, NULL), "%s: the bystander's barriers complete", name);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok(fair_barriers(f, 200, NULL), "%s: and after the client is killed", name);
	ok(ports_are_gone(f), "%s: its ports are given back", name);
	ok(fair_barriers(f, 50, NULL) && fair_end(f), "%s: SIGTERM: exit status 0", name);
}

void fair_case_killed(void)
{
	killed(FAIR_PAIR, "killed");
	killed(FAIR_RING, "killed-ring");
}

/* Member 0 of the bystander waits in a barrier. */
void fair_case_stopped(void)
{
	struct fair *f = &world;
	uint64_t word[2];

	ok(fair_begin(f, FAIR_UDP, BUDGET_MS, false), "stopped: a bystander");
	struct raw *receiver = fair_client(f, 1), *sender = fair_client(f, 0);

	for (uint32_t i = 0; i < 16; i++)
		if (!receiver || !sender || !fair_wide(f, receiver, sender))
			break;
	ok(f->npair > 0 && fair_barriers(f, 100, fair_pass_pairs),
	   "stopped: groups of 4,096 sends run");
	raw_post(&f->by[0], 0, f->epoch + 1);
	ok(fair_end(f), "stopped: SIGTERM: exit status 0");
	for (int i = 0; i < 2; i++)
		word[i] = word_of(&f->by[i], 0);
	ok(word[0] >> 32 == NBAR_STATUS_NIC_DOWN && word[1] >> 32 == NBAR_STATUS_NIC_DOWN,
	   "stopped: the bystander is told that the NIC is down");
}

/* How many pages the kernel has given to this process: its minor page faults. */
static uint64_t faults_of(pid_t pid)
{
	char path[64], line[1024] = "", *at;
	unsigned long long n = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *in = fopen(path, "r");

	if (in && fgets(line, sizeof(line), in) && (at = strrchr(line, ')')))
		sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %llu", &n);
	if (in)
		fclose(in);
	return n;
}

static bool open_and_close(struct raw *r)
{
	bool well = r != NULL;

	for (uint32_t i = 0; well && i < REUSE; i++)
		well = raw_group_open(r, "linear", 0, NBAR_SLOTS_MAX + 1, i) == 0;
	for (uint32_t i = 0; well && i < REUSE; i++)
		well = raw_group_close(r, i) == 0;
	return well;
}

/*
 * A client opens and closes groups of the largest size, waits until none of them lingers, and does
 * so again: the second time, the daemon must reuse their memory. New memory would disturb the
 * bystander, because the kernel works for each page that a process gets or gives back.
 */
void fair_case_reuse(void)
{
	struct fair *f = &world;
	uint64_t faults;

	ok(fair_begin(f, FAIR_RING, BUDGET_MS, false), "reuse: a bystander");
	ok(open_and_close(fair_client(f, 0)), "reuse: large groups are opened and closed");
	fair_quiet(f);
	faults = faults_of(f->daemon[0]);
	ok(faults > 0, "reuse: the kernel counts the page faults of the daemon");
	ok(open_and_close(fair_client(f, 0)), "reuse: large groups are opened and closed again");
	faults = faults_of(f->daemon[0]) - faults;
#ifdef SANITIZED
	printf("# a sanitizer has its own memory: %llu page faults do not count\n",
	       (unsigned long long)faults);
#else
	if (!ok(faults < GROUP_PAGES, "reuse: the second time in the same memory"))
		printf("# %llu page faults\n", (unsigned long long)faults);
#endif
	ok(fair_end(f), "reuse: SIGTERM: exit status 0");
}

/* One client opens groups of the largest size until the NIC refuses one. */
void fair_case_memory(void)
{
	struct fair *f = &world;
	uint32_t n = 0;
	int rc = 0;

	ok(fair_begin(f, FAIR_RING, BUDGET_MS, false) && fair_barriers(f, 50, NULL),
	   "memory: a bystander");
	struct raw *r = fair_client(f, 0), *other;

	while (r && rc == 0 && n < NBAR_GROUPS_MAX) {
		rc = raw_group_open(r, "linear", 0, NBAR_SLOTS_MAX + 1, n);
		n += rc == 0;
	}
	printf("# %u groups, then %d: %s\n", n, rc, rc < 0 ? r->reply.head.text : "");
	ok(n > 0 && rc != RAW_NO_REPLY && rc < 0 && strstr(r->reply.head.text, "memory"),
	   "memory: a client opens large groups, until it is told that it has its share");
	other = fair_client(f, 0);
	ok(other && raw_group_open(other, "auto", 0, 2, 0) == 0,
	   "memory: another client opens a group");
	ok(raw_group_close(r, 0) == 0, "memory: it closes one");
	ok(fair_barriers(f, 200, NULL), "memory: the bystander's barriers complete");
	ok(fair_end(f), "memory: SIGTERM: exit status 0");
}
