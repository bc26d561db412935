/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.c - measures the cost of a token in the whole pass of a NIC on the wire ring, and the share
 * of each part. It is not a test.
 *
 * One thread runs hosts and NICs: it posts a barrier on every member and polls the NICs until they
 * have no more work. Each point runs in a separate process. Its time is the median of repetitions,
 * in processor time. It includes the hosts' stores, and one look at a completion word per barrier.
 *
 *     bench-loop [--json] [POINT...]
 *
 * For a tool that counts instructions (see instructions.sh), it calls the function of a point N
 * times, in the function `repeated` of this process, and prints the tokens of one call:
 *
 *     bench-loop --repeat N POINT
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "loop_nics.h"
#include "plan.h"
#include "e2e/raw.h"

#define REPETITIONS 11u
#define REPETITION_NS 15e6
#define NICS_MAX 64u
#define PORTS_MAX 64u
#define AHEAD 16u  /* barriers that a host posts by one doorbell */
#define FRAMES 32u /* frames that are on the wire at once */

struct point {
	const char *name;
	const char *alg; /* of the group that runs barriers */
	uint32_t active; /* members of this group, on the first NICs; 0: none */
	uint32_t nnic;
	uint32_t ports;                    /* of each NIC */
	uint32_t cells;                    /* groups of each port; all others are idle */
	void (*fn)(const struct point *p); /* measured */
	bool by_token;                     /* true: time per token; false: per call */
	uint32_t doubles;                  /* that barriers add up; 0: they carry no value */
};

static char run_dir[] = "/tmp/nbar-loop-XXXXXX";
static struct raw *member[NICS_MAX]; /* cell 0 of the first port of each NIC */
static uint32_t epoch;
static uint64_t npass;
static struct nbar_plan *plan; /* of rank 0; used if by_token */

/* Processor time of this thread: work of other processes does not count. */
static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double by_median(double *ns, uint32_t n)
{
	qsort(ns, n, sizeof(*ns), by_value);
	return ns[n / 2];
}

static void give_up(const char *what)
{
	fprintf(stderr, "bench-loop: %s\n", what);
	_exit(1);
}

/* --- set-up: by requests, from a second thread, while the first thread polls ------------------ */

static int set_up; /* the second thread is done: release there, acquire in start() */

/* The group that runs barriers: a member on each active NIC, in cell 0 of its first port. */
static void connect_all(const struct point *p)
{
	static struct nbar_endpoint endpoint[NICS_MAX];
	static struct nbar_rep_group_open rep[NICS_MAX];
	static uint32_t rank[NICS_MAX][NICS_MAX];

	for (uint32_t i = 0; i < p->active; i++) {
		if (raw_group_open_values(member[i], p->alg, i, p->active, 1, 8 * p->doubles) != 0)
			give_up("a group is refused");
		memcpy(&rep[i], member[i]->reply.body, sizeof(rep[i]));
		memcpy(rank[i], member[i]->reply.body + sizeof(rep[i]),
		       rep[i].npeer * sizeof(rank[i][0]));
	}
	for (uint32_t i = 0; i < p->active; i++) {
		for (uint32_t k = 0; k < rep[i].npeer; k++)
			endpoint[k] = rep[rank[i][k]].endpoint;
		if (rep[i].npeer > 0 &&
		    raw_group_connect(member[i], 0, endpoint, rep[i].npeer) != 0)
			give_up("a group is not connected");
	}
}

/* Opens ports and groups, the idle ones too. The group that runs barriers comes first, so it gets
 * cell 0. */
static void *set_up_main(void *arg)
{
	const struct point *p = arg;
	struct raw *port[NICS_MAX][PORTS_MAX];
	char name[16];

	for (uint32_t i = 0; i < p->nnic; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		for (uint32_t k = 0; k < p->ports; k++) {
			port[i][k] = malloc(sizeof(struct raw));
			if (!port[i][k] || !raw_dial(port[i][k], run_dir, name) ||
			    raw_port_open(port[i][k], NBAR_PORT_ANY) != 0)
				give_up("no port");
		}
		member[i] = port[i][0];
	}
	connect_all(p);
	for (uint32_t i = 0; i < p->nnic; i++)
		for (uint32_t k = 0; k < p->ports; k++)
			for (uint32_t cell = k == 0 && i < p->active; cell < p->cells; cell++)
				if (raw_group_open(port[i][k], "pairwise", 0, 2, 7) != 0)
					give_up("a group is refused");
	__atomic_store_n(&set_up, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void start(const struct point *p)
{
	pthread_t thread;

	loop_nics_start(p->nnic, run_dir);
	if (pthread_create(&thread, NULL, set_up_main, (void *)(uintptr_t)p))
		give_up("no thread");
	while (!__atomic_load_n(&set_up, __ATOMIC_ACQUIRE))
		loop_nics_pass();
	pthread_join(thread, NULL);
}

/* --- what is measured ------------------------------------------------------------------------ */

/* Returns the ns of one call: the median of repetitions, each with so many calls that it takes some
 * ms. */
static double median_ns(const struct point *p)
{
	double ns[REPETITIONS];
	uint32_t n = 1;

	for (uint32_t i = 0; i < 100; i++)
		p->fn(p);
	for (double took = 0; took < REPETITION_NS / 4; n *= 2) {
		double begin = now_ns();

		for (uint32_t i = 0; i < n; i++)
			p->fn(p);
		took = now_ns() - begin;
	}
	for (uint32_t r = 0; r < REPETITIONS; r++) {
		double begin = now_ns();

		for (uint32_t i = 0; i < n; i++)
			p->fn(p);
		ns[r] = (now_ns() - begin) / n;
	}
	return by_median(ns, REPETITIONS);
}

/* The hosts' values: those of libnbar. The group has the first values of its page. */
__attribute__((noinline)) static void put_values(const struct point *p)
{
	static struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE };
	const size_t length = offsetof(struct nbar_value, of) + p->doubles * sizeof(v.of.f64[0]);

	v.count = (uint16_t)p->doubles;
	v.epoch = epoch;
	for (uint32_t i = 0; i < p->active; i++) {
		v.of.f64[0] = 1;
		memcpy(&member[i]->page->value[0][epoch % NBAR_VALUES_AHEAD].value, &v, length);
	}
}

__attribute__((noinline)) static void get_results(const struct point *p)
{
	struct nbar_value v;

	for (uint32_t i = 0; i < p->active; i++) {
		memcpy(&v, &member[i]->page->value[0][epoch % NBAR_VALUES_AHEAD].value,
		       offsetof(struct nbar_value, of) + p->doubles * sizeof(v.of.f64[0]));
		if (v.of.f64[0] != p->active)
			give_up("a wrong sum");
	}
}

/* All hosts post `ahead` barriers at once. Returns when member 0 has completed them and no NIC has
 * work. */
static void post_and_pass(const struct point *p, uint32_t ahead)
{
	epoch += ahead;
	if (p->doubles)
		put_values(p);
	for (uint32_t i = 0; i < p->active; i++)
		raw_post(member[i], 0, epoch);
	do
		npass++;
	while (loop_nics_pass() || (uint32_t)__atomic_load_n(&member[0]->page->completion[0].word,
							     __ATOMIC_ACQUIRE) != epoch);
	if (p->doubles)
		get_results(p);
}

static void barrier(const struct point *p)
{
	post_and_pass(p, 1);
}

static void barriers(const struct point *p)
{
	post_and_pass(p, AHEAD);
}

static void pass(const struct point *p)
{
	(void)p;
	loop_nics_pass();
}

static void send_and_take(const struct point *p)
{
	(void)p;
	loop_nics_send(FRAMES);
	for (uint32_t n = 0; n < FRAMES;)
		n += loop_nics_take(FRAMES - n);
}

/* A barrier of the engine alone: START of one member, then all tokens that it receives. */
static void engine(const struct point *p)
{
	static struct nbfw_state *s;
	static struct nbfw_event ev;
	struct nbfw_action a;

	(void)p;
	if (!s) {
		s = malloc(nbfw_state_size(plan));
		nbfw_init(s, plan, 0);
	}
	epoch++;
	ev.type = NBFW_EV_START;
	nbfw_step(s, plan, &ev, &a);
	ev.type = NBFW_EV_TOKEN;
	ev.token.type = NBFW_TOKEN;
	ev.token.epoch = epoch;
	for (uint32_t i = 0; i < plan->nrecv; i++) {
		ev.token.slot = i;
		ev.token.src = nbfw_plan_recvs(plan)[i].src;
		nbfw_step(s, plan, &ev, &a);
	}
	if (!a.complete)
		give_up("the engine does not complete");
}

/* Sets plan. Returns the tokens that one member sends in a barrier; in these groups all members
 * send equally many. */
static uint32_t tokens(const struct point *p)
{
	static uint32_t block[1024];
	struct nbfw_alg alg;

	plan = (struct nbar_plan *)block;
	if (nbfw_alg_parse(p->alg, &alg) ||
	    nbfw_plan_generate(alg, p->active, 0, block, sizeof(block)) < 0)
		give_up("no plan");
	return plan->nsend;
}

static const struct point points[] = {
	{ "token pairwise 2", "pairwise", 2, 2, 1, 1, barrier, true, 0 },
	{ "token pairwise 8", "pairwise", 8, 8, 1, 1, barrier, true, 0 },
	{ "token pairwise 32", "pairwise", 32, 32, 1, 1, barrier, true, 0 },
	{ "value 1 double", "pairwise", 8, 8, 1, 1, barrier, true, 1 },
	{ "value 32 doubles", "pairwise", 8, 8, 1, 1, barrier, true, 32 },
	{ "token dissemination:1 8", "dissemination:1", 8, 8, 1, 1, barrier, true, 0 },
	{ "token dissemination:1 32", "dissemination:1", 32, 32, 1, 1, barrier, true, 0 },
	{ "token dissemination:3 64", "dissemination:3", 64, 64, 1, 1, barrier, true, 0 },
	/* dissemination:1 with 8 members, and idle ports and groups. */
	{ "token 8, 4 ports", "dissemination:1", 8, 8, 4, 1, barrier, true, 0 },
	{ "token 8, 16 ports", "dissemination:1", 8, 8, 16, 1, barrier, true, 0 },
	{ "token 8, 64 ports", "dissemination:1", 8, 8, 64, 1, barrier, true, 0 },
	{ "token 8, 16 cells", "dissemination:1", 8, 8, 1, 16, barrier, true, 0 },
	{ "token 8, 256 cells", "dissemination:1", 8, 8, 1, 256, barrier, true, 0 },
	/* A pass of one NIC that finds nothing to do. */
	{ "idle 1 port", NULL, 0, 1, 1, 1, pass, false, 0 },
	{ "idle 4 ports", NULL, 0, 1, 4, 1, pass, false, 0 },
	{ "idle 16 ports", NULL, 0, 1, 16, 1, pass, false, 0 },
	{ "idle 64 ports", NULL, 0, 1, 64, 1, pass, false, 0 },
	{ "idle 64 ports, 15 cells", NULL, 0, 1, 64, 15, pass, false, 0 },
	{ "idle 1 port, 1000 cells", NULL, 0, 1, 1, 1000, pass, false, 0 },
	{ "idle 8 NICs", NULL, 0, 8, 1, 1, pass, false, 0 },
	/* Parts of a token. */
	{ "engine", "dissemination:1", 8, 0, 0, 0, engine, true, 0 },
	{ "wire", NULL, 0, 2, 1, 0, send_and_take, false, 0 },
	{ "alone", "auto", 1, 1, 1, 1, barrier, false, 0 },
	{ "alone, ahead", "auto", 1, 1, 1, 1, barriers, false, 0 },
};
#define NPOINT (sizeof(points) / sizeof(points[0]))

struct result {
	double ns;     /* of a token, or of a call */
	double passes; /* of a call */
};

static struct result result[NPOINT];

/* Returns the tokens of a call. */
static uint32_t point_begin(const struct point *p)
{
	uint32_t ntoken = p->by_token ? tokens(p) : 1;

	if (p->nnic > 0) {
		start(p);
		ntoken *= p->by_token ? p->active : 1;
	}
	return ntoken;
}

static struct result point_run(const struct point *p)
{
	uint32_t ntoken = point_begin(p);
	struct result r;

	r.ns = median_ns(p) / ntoken;
	npass = 0;
	for (uint32_t i = 0; i < 100; i++)
		p->fn(p);
	r.passes = (double)npass / 100;
	return r;
}

static void drop_sockets(uint32_t nnic)
{
	char path[64];

	for (uint32_t i = 0; i < nnic; i++) {
		snprintf(path, sizeof(path), "%s/n%u.sock", run_dir, i);
		unlink(path);
	}
}

/* In a new process, because the NICs can start only once in a process. */
static struct result point_measure(const struct point *p)
{
	struct result r = { 0, 0 };
	int fd[2], status;

	if (pipe(fd) < 0)
		give_up("no pipe");
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		r = point_run(p);
		_exit(write(fd[1], &r, sizeof(r)) != sizeof(r));
	}
	close(fd[1]);
	bool heard = read(fd[0], &r, sizeof(r)) == sizeof(r);

	close(fd[0]);
	waitpid(pid, &status, 0);
	drop_sockets(p->nnic);
	if (heard)
		return r;
	fprintf(stderr, "bench-loop: %s: its process has failed\n", p->name);
	rmdir(run_dir);
	exit(1);
}

__attribute__((noinline)) static void repeated(const struct point *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		p->fn(p);
}

static void repeat(const char *name, uint32_t n)
{
	const struct point *p = NULL;

	for (uint32_t i = 0; i < NPOINT; i++)
		if (strcmp(points[i].name, name) == 0)
			p = &points[i];
	if (!p)
		give_up("there is no such point");
	uint32_t ntoken = point_begin(p);

	loop_nics_stop_clock();
	for (uint32_t i = 0; i < 100; i++)
		p->fn(p);
	repeated(p, n);
	printf("%u\n", ntoken);
	drop_sockets(p->nnic);
	rmdir(run_dir);
}

static const struct result *find(const char *name)
{
	for (uint32_t i = 0; i < NPOINT; i++)
		if (strcmp(points[i].name, name) == 0)
			return &result[i];
	give_up(name);
	return NULL;
}

/* Prints the parts of a token of dissemination:1 with 8 members, where a member sends three tokens
 * in a barrier. Each part is measured alone, and their sum is less than the whole: "rest" is the
 * code between them. "passes": looks at pages and timers. "engine and loop" is the whole without
 * wire, doorbell and passes. */
static void print_parts(void)
{
	const struct result *whole = find("token dissemination:1 8");
	double one = find("alone")->ns, more = find("alone, ahead")->ns;
	double idle = find("idle 1 port")->ns, each = (more - one) / (AHEAD - 1);
	const struct {
		const char *name;
		double ns;
	} part[] = {
		{ "wire: out, in, look-up", find("wire")->ns / FRAMES },
		{ "doorbell", (one - find("alone")->passes * idle - each) / 3 },
		{ "passes", whole->passes * find("idle 8 NICs")->ns / 24 },
		{ "engine", find("engine")->ns },
		{ "start and completion", each / 3 },
	};
	const uint32_t around = 3; /* parts that are not engine and loop */
	double rest = whole->ns, inside = whole->ns;

	printf("\n%-26s %9s %7s\n", "a token, 8 members", "ns", "%");
	for (uint32_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		printf("%-26s %9.1f %7.1f\n", part[i].name, part[i].ns,
		       100 * part[i].ns / whole->ns);
		rest -= part[i].ns;
		inside -= i < around ? part[i].ns : 0;
	}
	printf("%-26s %9.1f %7.1f\n%-26s %9.1f %7.1f\n%-26s %9.1f   %.1f passes a barrier\n",
	       "rest", rest, 100 * rest / whole->ns, "engine and loop", inside,
	       100 * inside / whole->ns, "all", whole->ns, whole->passes);
}

static bool is_wanted(int argc, char **argv, const char *name)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 0;
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0, first = true;

	argc -= 1 + json;
	argv += 1 + json;
	if (!mkdtemp(run_dir))
		give_up("no folder in /tmp");
	if (argc == 3 && strcmp(argv[0], "--repeat") == 0) {
		repeat(argv[2], (uint32_t)strtoul(argv[1], NULL, 10));
		return 0;
	}
	if (json)
		printf("[");
	else
		printf("%-26s %9s %7s\n", "point", "ns", "passes");
	for (uint32_t i = 0; i < NPOINT; i++) {
		const struct point *p = &points[i];

		if (!is_wanted(argc, argv, p->name))
			continue;
		result[i] = point_measure(p);
		if (json)
			printf("%s\n{\"point\": \"%s\", \"ns\": %.2f, \"passes\": %.1f}",
			       first ? "" : ",", p->name, result[i].ns, result[i].passes);
		else
			printf("%-26s %9.1f %7.1f\n", p->name, result[i].ns, result[i].passes);
		first = false;
	}
	if (json)
		printf("\n]\n");
	else if (argc == 0)
		print_parts();
	rmdir(run_dir);
	return 0;
}
