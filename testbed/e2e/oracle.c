/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle.c - runs real barriers between real processes and checks each barrier.
 *
 * oracle [-i ITERATIONS] [-a ALG] [-d MS] [-H] [-v BYTES [-w RANK]] NIC NIC ...: one process for
 * each NIC, rank 0 first. No member may leave barrier i before all have entered it, and no member
 * may be more than one barrier ahead. With -d, every member in turn comes MS late. With -H the
 * hosts run the barriers, over the NICs' signals. With -v, barriers carry values of BYTES bytes,
 * and every member checks the result; with -w, RANK posts another value in the last barrier, and
 * every member must get an error that names a rank. Used by the end-to-end scripts; exit status 0
 * if all checks passed.
 *
 * -m FILE -k RUN -n SIZE -r FIRST: runs the ranks from FIRST on of a group of SIZE; oracles on
 * other machines run the other ranks. All share FILE: memory that is 0 at first. Run RUN uses its
 * own part of FILE.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "hostbar.h"
#include "nbar_extra.h"
#include "nbar_abi.h"

#define RANKS_MAX 64
#define SHARED_SIZE 16384 /* bytes of one run in FILE: whole pages */
#define MEET_S 300        /* time limit of meet() */

enum stage { OPENED = 1, CONNECTED, FINISHED };

/* Each word has one writer, except `broken`, to which all write the same value. */
struct shared {
	uint32_t broken;
	uint32_t reserved[3];
	struct nbar_endpoint endpoint[RANKS_MAX];
	struct {
		uint32_t entered; /* the barrier that the rank is in, or has left last */
		uint32_t stage;   /* enum stage */
		uint32_t reserved[30];
	} rank[RANKS_MAX];
};
_Static_assert(sizeof(struct shared) <= SHARED_SIZE, "a run has room");

static struct shared *shared;
static uint32_t size, here, first, iterations = 1000, delay_ms, file_run;
static uint32_t value_bytes, odd_rank = NBAR_RANK_NONE;
static bool by_host;
static const char *alg = "auto", *file;

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("# oracle: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	__atomic_store_n(&shared->broken, 1, __ATOMIC_RELAXED);
	_exit(1);
}

static void sleep_ms(uint32_t ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

/* g is NULL if the hosts run the barriers, hb if the NICs run them. */
struct member {
	struct nbar_port *port;
	struct nbar_group *g;
	struct hostbar *hb;
};

/* Returns the first rank that has not come to the stage; `size`: all have come. */
static uint32_t missing(enum stage stage)
{
	uint32_t r = 0;

	while (r < size && __atomic_load_n(&shared->rank[r].stage, __ATOMIC_ACQUIRE) >= stage)
		r++;
	return r;
}

/* A barrier in shared memory, for set-up and end; this barrier is not tested. If the hosts run the
 * tested barriers, a waiting host answers its peers. */
static void meet(enum stage stage, uint32_t rank, const struct member *m)
{
	time_t end = time(NULL) + MEET_S;
	uint32_t late;

	__atomic_store_n(&shared->rank[rank].stage, stage, __ATOMIC_RELEASE);
	while ((late = missing(stage)) < size) {
		if (__atomic_load_n(&shared->broken, __ATOMIC_RELAXED))
			_exit(1);
		if (time(NULL) > end)
			die("rank %u: rank %u did not come to stage %d within %d s", rank, late,
			    (int)stage, MEET_S);
		if (m->hb && hostbar_test(m->hb, iterations) >= 0)
			sched_yield();
		else
			sleep_ms(1);
	}
}

static int barrier(const struct member *m)
{
	uint32_t ticket;
	int r;

	if (m->g)
		return nbar_barrier(m->g);
	r = hostbar_post(m->hb, &ticket);
	while (!r && (r = hostbar_test(m->hb, ticket)) == 0)
		sched_yield();
	return r < 0 ? r : 0;
}

static const char *error(const struct member *m)
{
	return m->hb ? hostbar_error(m->hb) : nbar_error();
}

/* What barriers carry, in turn; every eighth carries no value. */
static const struct form {
	uint8_t op, type, size;
} forms[] = {
	{ NBAR_SUM, NBAR_DOUBLE, 8 }, { NBAR_MIN, NBAR_INT16, 2 },   { NBAR_SUM, NBAR_FLOAT, 4 },
	{ NBAR_BXOR, NBAR_UINT8, 1 }, { NBAR_PROD, NBAR_UINT64, 8 }, { NBAR_MAX, NBAR_DOUBLE, 8 },
	{ NBAR_SUM, NBAR_INT32, 4 },
};

static int64_t element_of(uint32_t rank, uint32_t i, uint32_t k)
{
	return (int64_t)((rank * 31 + i * 7 + k * 13) % 201) - 100;
}

static int64_t fold(uint8_t op, int64_t a, int64_t b)
{
	switch ((enum nbar_value_op)op) {
	case NBAR_MIN:
		return a < b ? a : b;
	case NBAR_MAX:
		return a > b ? a : b;
	case NBAR_PROD:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case NBAR_BXOR:
		return a ^ b;
	default:
		return a + b;
	}
}

/* What the ranks [from, end) contribute to barrier i together. All numbers are whole and, but for
 * products, small: so each order gives the same bits. */
static struct nbar_value contribution(const struct form *f, uint32_t from, uint32_t end, uint32_t i)
{
	struct nbar_value v = { .op = f->op,
				.type = f->type,
				.count = (uint16_t)(value_bytes / f->size) };

	for (uint32_t k = 0; k < v.count; k++) {
		int64_t n = element_of(from, i, k);

		for (uint32_t r = from + 1; r < end; r++)
			n = fold(f->op, n, element_of(r, i, k));
		if (f->type == NBAR_DOUBLE)
			v.of.f64[k] = (double)n;
		else if (f->type == NBAR_FLOAT)
			v.of.f32[k] = (float)n;
		else
			memcpy(v.of.byte + (size_t)k * f->size, &n, f->size);
	}
	return v;
}

/* The last barrier, if its values differ: it must fail. To the odd rank, its peers are odd. */
static void must_differ(uint32_t rank, int r)
{
	if (r != -EBADMSG || !strstr(nbar_error(), "the value of rank "))
		die("rank %u: values differ: %s", rank, r < 0 ? nbar_error() : "no error");
}

static void one_value(const struct member *m, uint32_t rank, uint32_t i)
{
	const struct form *f = &forms[i % 8];
	struct nbar_value v = contribution(f, rank, rank + 1, i), all;
	bool differ = odd_rank != NBAR_RANK_NONE && i == iterations;
	int r;

	if (differ && rank == odd_rank)
		v.op = v.op == NBAR_SUM ? NBAR_MAX : NBAR_SUM;
	r = nbar_allreduce(m->g, &v, &v);
	if (differ) {
		must_differ(rank, r);
		return;
	}
	if (r < 0)
		die("rank %u, barrier %u: %s", rank, i, nbar_error());
	all = contribution(f, 0, size, i);
	if (memcmp(&v, &all, 8 + (size_t)all.count * f->size) != 0)
		die("rank %u, barrier %u: op %u of type %u has a wrong result", rank, i, f->op,
		    f->type);
}

static void one_barrier(const struct member *m, uint32_t rank, uint32_t i)
{
	if (delay_ms && (i - 1) % size == rank)
		sleep_ms(delay_ms);
	__atomic_store_n(&shared->rank[rank].entered, i, __ATOMIC_RELEASE);

	if (value_bytes && i % 8 != 7)
		one_value(m, rank, i);
	else if (barrier(m) < 0)
		die("rank %u, barrier %u: %s", rank, i, error(m));
	for (uint32_t r = 0; r < size; r++) {
		uint32_t e = __atomic_load_n(&shared->rank[r].entered, __ATOMIC_ACQUIRE);

		if (e != i && e != i + 1 && !(odd_rank != NBAR_RANK_NONE && i == iterations))
			die("rank %u left barrier %u while rank %u was in %u", rank, i, r, e);
	}
}

/* The plan of -a custom: rank 0 waits for a signal of every rank, then signals every rank. */
static struct {
	struct nbar_plan head;
	struct nbar_step step[2];
	uint32_t rest[3 * RANKS_MAX];
} star;

static uint32_t star_make(uint32_t rank)
{
	struct nbar_send *send;
	uint32_t *recv, others = size - 1, root = rank == 0;

	star.head = (struct nbar_plan){
		.magic = NBAR_PLAN_MAGIC,
		.rank = rank,
		.size = size,
		.nstep = 2,
		.nsend = root ? others : 1,
		.nrecv = root ? others : 1,
	};
	star.step[0] = (struct nbar_step){ 0, root ? 0 : 1, 0, root ? others : 0 };
	star.step[1] = (struct nbar_step){ root ? 0 : 1, root ? others : 0, root ? others : 0,
					   root ? 0 : 1 };
	send = (struct nbar_send *)star.rest;
	recv = star.rest + 2 * star.head.nsend;
	for (uint32_t i = 0; i < star.head.nsend; i++) {
		send[i] = (struct nbar_send){ root ? i + 1 : 0, root ? 0 : rank - 1 };
		recv[i] = root ? i + 1 : 0;
	}
	return (uint32_t)sizeof(star.head) + (uint32_t)sizeof(star.step) + 12 * star.head.nsend;
}

static int open_member(struct member *m, uint32_t rank)
{
	struct nbar_group_attr attr = { .struct_size = sizeof(attr),
					.rank = rank,
					.size = size,
					.alg = alg,
					.value_max = value_bytes };
	struct nbar_endpoint *endpoint = &shared->endpoint[rank];

	if (strcmp(alg, "custom") == 0) {
		attr.plan_length = star_make(rank);
		attr.plan = &star.head;
	}
	if (by_host)
		return hostbar_open(m->port, &attr, NULL, &m->hb, endpoint);
	return nbar_group_open(m->port, &attr, &m->g, endpoint);
}

static void member(uint32_t rank, const char *nic)
{
	struct member m = { NULL, NULL, NULL };

	if (nbar_open(nic, &m.port) < 0 || open_member(&m, rank) < 0)
		die("rank %u: %s", rank, nbar_error());
	meet(OPENED, rank, &m);
	if ((m.hb ? hostbar_connect(m.hb, shared->endpoint)
		  : nbar_group_connect(m.g, shared->endpoint)) < 0)
		die("rank %u: %s", rank, nbar_error());
	meet(CONNECTED, rank, &m);
	for (uint32_t i = 1; i <= iterations; i++)
		one_barrier(&m, rank, i);
	if (m.g)
		nbar_group_close(m.g);
	meet(FINISHED, rank, &m); /* no port closes while a member still waits */
	if (m.hb)
		hostbar_close(m.hb);
	nbar_close(m.port);
}

static uint32_t number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

static void read_options(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "i:a:d:Hv:w:m:k:n:r:")) != -1) {
		switch (option) {
		case 'i':
			iterations = number(optarg);
			break;
		case 'a':
			alg = optarg;
			break;
		case 'd':
			delay_ms = number(optarg);
			break;
		case 'H':
			by_host = true;
			break;
		case 'v':
			value_bytes = number(optarg);
			break;
		case 'w':
			odd_rank = number(optarg);
			break;
		case 'm':
			file = optarg;
			break;
		case 'k':
			file_run = number(optarg);
			break;
		case 'n':
			size = number(optarg);
			break;
		case 'r':
			first = number(optarg);
			break;
		default:
			exit(2);
		}
	}
	here = (uint32_t)(argc - optind);
	size = size ? size : here;
	/* -w: the last barrier must carry a value. */
	if (here == 0 || size > RANKS_MAX || first > size || here > size - first ||
	    (odd_rank != NBAR_RANK_NONE && (!value_bytes || iterations % 8 == 7))) {
		fprintf(stderr,
			"usage: oracle [-i ITERATIONS] [-a ALG] [-d MS] [-H] "
			"[-v BYTES [-w RANK]] [-m FILE -k RUN -n SIZE -r FIRST] NIC NIC ...\n");
		exit(2);
	}
}

static void map_shared(void)
{
	int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;

	if (file && fd < 0) {
		perror(file);
		exit(1);
	}
	shared = mmap(NULL, SHARED_SIZE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | (file ? 0 : MAP_ANONYMOUS), fd,
		      file ? (off_t)file_run * SHARED_SIZE : 0);
	if (shared == MAP_FAILED) {
		perror("oracle: mmap");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	pid_t pid[RANKS_MAX];
	int failed = 0;

	read_options(argc, argv);
	map_shared();
	for (uint32_t r = 0; r < here; r++) {
		pid[r] = fork();
		if (pid[r] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			member(first + r, argv[optind + (int)r]);
			return 0;
		}
	}
	for (uint32_t r = 0; r < here; r++) {
		int status;

		if (waitpid(pid[r], &status, 0) < 0 || !WIFEXITED(status) ||
		    WEXITSTATUS(status) != 0)
			failed = 1;
	}
	return failed;
}
