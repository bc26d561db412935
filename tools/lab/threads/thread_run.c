/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread_run.c - see thread_run.h. Our own barriers and pthread's run in a child of this process;
 * other barriers run in separate programs. All write the same lines into a pipe.
 */
#include "thread_run.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "libexec.h"
#include "nbar_extra.h"
#include "signals.h"

#define PATH_SIZE 512u
#define GRACE_NS UINT64_C(60000000000) /* after 10 x --limit plus this time, a run is killed */
#define LOOK_MS 100

static struct thread_loop loop;
static struct nbar_team *team;
static pthread_barrier_t posix;

/* Two cache lines that move between the cores. */
static struct line {
	uint64_t word;
	uint64_t reserved[15];
} __attribute__((aligned(128))) ball[2];

static void run_team(void *arg, uint32_t me)
{
	(void)arg;
	nbar_team_barrier(team, me);
}

static void run_posix(void *arg, uint32_t me)
{
	(void)arg;
	(void)me;
	pthread_barrier_wait(&posix);
}

static void wait_ball(const uint64_t *word, uint64_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		;
}

/* One round trip; each thread writes only its own line. */
static void run_transfer(void *arg, uint32_t me)
{
	uint64_t next = ball[me].word + 1;

	(void)arg;
	if (me == 1)
		wait_ball(&ball[0].word, next);
	__atomic_store_n(&ball[me].word, next, __ATOMIC_RELEASE);
	if (me == 0)
		wait_ball(&ball[1].word, next);
}

/* --- what can be run ------------------------------------------------------------------------- */

static const struct peer {
	const char *kind, *program;
} peers[] = {
	{ "omp-gcc", "omp-barrier-gcc" },     { "omp-llvm", "omp-barrier-llvm" },
	{ "ck-centralized", "ck-barrier" },   { "ck-combining", "ck-barrier" },
	{ "ck-dissemination", "ck-barrier" }, { "ck-tournament", "ck-barrier" },
	{ "ck-mcs", "ck-barrier" },
};

static const struct peer *find_peer(const char *kind)
{
	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++)
		if (!strcmp(peers[i].kind, kind))
			return &peers[i];
	return NULL;
}

bool thread_kind_own(const char *kind)
{
	size_t bytes;

	return nbar_team_size(kind, 2, &bytes) == 0;
}

bool thread_kind_known(const char *kind)
{
	return !strcmp(kind, "pthread") || find_peer(kind) || thread_kind_own(kind);
}

bool thread_kind_built(const char *kind)
{
	const struct peer *peer = find_peer(kind);
	char path[PATH_SIZE];

	return !peer || libexec_find(peer->program, path, sizeof(path));
}

/* --- in the child ---------------------------------------------------------------------------- */

struct seat {
	void (*barrier)(void *arg, uint32_t me);
	uint32_t me;
	pthread_t id;
};

static void *run_thread_main(void *arg)
{
	struct seat *seat = arg;

	thread_loop_pin(&loop, seat->me);
	thread_loop_run(&loop, seat->me, seat->barrier, NULL);
	return NULL;
}

static int prepare_team(const char *kind)
{
	struct nbar_team_attr attr = { .size = loop.threads, .kind = kind };
	size_t bytes;

	if (nbar_team_size(kind, loop.threads, &bytes) == 0) {
		team = aligned_alloc(128, bytes);
		if (team && nbar_team_init(team, bytes, &attr) == 0)
			return 0;
	}
	tool_error("%s", team ? nbar_error() : "no memory for the team");
	return TOOL_FAILED;
}

static int run_here(const char *kind)
{
	static struct seat seat[THREAD_LOOP_MAX];
	void (*barrier)(void *arg, uint32_t me) = run_team;
	int r = 0;

	if (!strcmp(kind, THREAD_TRANSFER)) {
		barrier = run_transfer;
	} else if (!strcmp(kind, "pthread")) {
		barrier = run_posix;
		pthread_barrier_init(&posix, NULL, loop.threads);
	} else {
		r = prepare_team(kind);
	}
	for (uint32_t i = 0; i < loop.threads && !r; i++) {
		seat[i] = (struct seat){ .barrier = barrier, .me = i };
		r = pthread_create(&seat[i].id, NULL, run_thread_main, &seat[i]);
		if (r)
			tool_error("cannot start thread %u of %u: %s", i, loop.threads,
				   strerror(r));
	}
	if (r)
		return TOOL_FAILED;
	for (uint32_t i = 0; i < loop.threads; i++)
		pthread_join(seat[i].id, NULL);
	return thread_loop_print(&loop);
}

/* Executes the program of a peer. */
static int run_peer(const struct peer *peer)
{
	char path[PATH_SIZE], kind[32], number[4][24];
	char *argv[7];
	uint32_t n = 0;

	if (!libexec_find(peer->program, path, sizeof(path))) {
		tool_error("%s has not been built: its library was not found", peer->program);
		return TOOL_FAILED;
	}
	snprintf(kind, sizeof(kind), "%s", peer->kind);
	snprintf(number[0], sizeof(number[0]), "%u", loop.threads);
	snprintf(number[1], sizeof(number[1]), "%llu", (unsigned long long)loop.iterations);
	snprintf(number[2], sizeof(number[2]), "%u", loop.warmup);
	snprintf(number[3], sizeof(number[3]), "%llu",
		 (unsigned long long)(loop.limit_ns / UINT64_C(1000000)));
	argv[n++] = path;
	if (!strncmp(kind, "ck-", 3))
		argv[n++] = kind;
	for (uint32_t i = 0; i < 4; i++)
		argv[n++] = number[i];
	argv[n] = NULL;
	execv(path, argv);
	tool_error("cannot run %s: %s", path, strerror(errno));
	return TOOL_FAILED;
}

/* --- in the parent --------------------------------------------------------------------------- */

/* Reads until the other end is closed. False: it was not closed in time. */
static bool run_read_all(int fd, char *text, size_t size, uint64_t until)
{
	size_t at = 0;

	while (!signals_interrupted() && tool_now_ns() < until) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, LOOK_MS) <= 0)
			continue;
		ssize_t n = read(fd, text + at, size - 1 - at);

		if (n <= 0) {
			text[at] = '\0';
			return n == 0;
		}
		at += (size_t)n;
	}
	return false;
}

static int run_parse(const char *kind, const char *text, struct thread_loop *out)
{
	for (uint32_t i = 0; i < out->threads; i++) {
		unsigned long long measured;
		int length;

		if (sscanf(text, "%llu %lf\n%n", &measured, &out->mean_ns[i], &length) != 2) {
			tool_error("%s with %u threads reported nothing of thread %u", kind,
				   out->threads, i);
			return TOOL_FAILED;
		}
		out->measured = measured;
		text += length;
	}
	return 0;
}

static int run_finish(const char *kind, pid_t pid, bool all, const char *text,
		      struct thread_loop *out)
{
	int status;

	if (!all)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (signals_interrupted())
		return TOOL_FAILED;
	if (!all)
		tool_error("%s with %u threads did not end in time: try a larger --limit", kind,
			   out->threads);
	else if (!WIFEXITED(status) || WEXITSTATUS(status))
		tool_error("the run of %s with %u threads failed", kind, out->threads);
	else
		return run_parse(kind, text, out);
	return TOOL_FAILED;
}

int thread_run(const char *kind, struct thread_loop *out)
{
	static char text[THREAD_LOOP_MAX * 64];
	const struct peer *peer = find_peer(kind);
	pid_t parent = getpid(), pid;
	int pipe_fd[2];

	if (pipe(pipe_fd)) {
		tool_error("no pipe: %s", strerror(errno));
		return TOOL_FAILED;
	}
	pid = fork();
	if (pid == 0) {
		signals_die_with(parent, SIGKILL);
		signals_unblock();
		dup2(pipe_fd[1], STDOUT_FILENO);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		loop = *out;
		_exit(peer ? run_peer(peer) : run_here(kind));
	}
	close(pipe_fd[1]);
	if (pid < 0) {
		tool_error("cannot start a process: %s", strerror(errno));
		close(pipe_fd[0]);
		return TOOL_FAILED;
	}
	bool all = run_read_all(pipe_fd[0], text, sizeof(text),
				tool_now_ns() + 10 * out->limit_ns + GRACE_NS);

	close(pipe_fd[0]);
	return run_finish(kind, pid, all, text, out);
}
