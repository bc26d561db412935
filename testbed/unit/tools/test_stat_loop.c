/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stat_loop.c - `nbar stat` asks NICs: what it keeps of their replies, and when it asks again.
 * The test replies for the NICs, and is the clock, the terminal and the signals.
 */
#include "unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "signals.h"
#include "stat_watch.h"
#include "tool.h"

#define SECOND UINT64_C(1000000000)
#define START (1000 * SECOND)

static struct stat_targets t;
static struct nbar_group_stat last_of_group;
static uint64_t now;                          /* nanoseconds */
static uint32_t nlook, nlatency, nlist, nall; /* calls */
static uint32_t ngroup, first_index;
static int stat_error, latency_error;
static uint32_t fails_at;      /* number of the look with stat_error */
static uint32_t nbegin, nwait; /* calls */
static uint32_t signal_at;     /* number of the wait that a signal ends */
static uint64_t wait_end[8];
static uint32_t realloc_left; /* calls that succeed */
static bool terminal;
static unsigned short terminal_rows;
static bool sigpipe_ends;
static char out[1 << 16], err[4096];

void *__real_realloc(void *block, size_t size);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	*ts = (struct timespec){ (time_t)(now / SECOND), (long)(now % SECOND) };
	return 0;
}

time_t __wrap_time(time_t *at)
{
	return (time_t)(now / SECOND);
}

int __wrap_isatty(int fd)
{
	return terminal && fd == STDOUT_FILENO;
}

int __wrap_ioctl(int fd, unsigned long request, struct winsize *size)
{
	assert_true(fd == STDOUT_FILENO && request == TIOCGWINSZ);
	if (terminal_rows == UINT16_MAX)
		return -1;
	*size = (struct winsize){ .ws_row = terminal_rows, .ws_col = 40 };
	return 0;
}

void *__wrap_realloc(void *block, size_t size)
{
	if (realloc_left == 0)
		return NULL;
	realloc_left--;
	return __real_realloc(block, size);
}

/* Counters grow by 30 barriers a look. */
int __wrap_nbar_nic_stat(const char *nic, struct nbar_rep_nic_stat *reply)
{
	nlook++;
	if (stat_error && nlook == fails_at)
		return stat_error;
	memset(reply, 0, sizeof(*reply));
	snprintf(reply->nic, sizeof(reply->nic), "%s", nic);
	reply->pid = 7;
	reply->counter[NBAR_COUNTER_barriers_completed] = 30 * nlook;
	return 0;
}

int __wrap_nbar_nic_latency(const char *nic, struct nbar_rep_nic_latency *reply)
{
	nlatency++;
	memset(reply, 7, sizeof(*reply));
	return latency_error;
}

static struct nbar_group_info group_of(uint32_t i)
{
	return (struct nbar_group_info){ .index = first_index + i,
					 .rank = 1,
					 .size = 4,
					 .epoch = 8,
					 .running = 1,
					 .life = NBAR_LIFE_CONNECTED,
					 .nmissing = 1,
					 .waits_for = 2 };
}

int __wrap_nbar_nic_groups(const char *nic, int (*visit)(void *, const struct nbar_group_info *),
			   void *arg)
{
	int r = 0;

	nlist++;
	for (uint32_t i = 0; i < ngroup && r == 0; i++) {
		struct nbar_group_info info = group_of(i);

		r = visit(arg, &info);
	}
	return r;
}

/* Every second group has a statistic. */
int __wrap_nbar_nic_group_stats(const char *nic,
				int (*visit)(void *, const struct nbar_group_info *,
					     const struct nbar_group_stat *),
				void *arg)
{
	int r = 0;

	nall++;
	for (uint32_t i = 0; i < ngroup && r == 0; i++) {
		struct nbar_group_info info = group_of(i);

		last_of_group.barriers = 1000 + i;
		r = visit(arg, &info, i % 2 ? &last_of_group : NULL);
	}
	return r;
}

const char *__wrap_nbar_error(void)
{
	return "the reason, %% and all";
}

void signals_begin(void)
{
	nbegin++;
	signal(SIGPIPE, SIG_IGN);
}

bool signals_wait_until(uint64_t time)
{
	struct sigaction action;

	sigaction(SIGPIPE, NULL, &action);
	sigpipe_ends = action.sa_handler == SIG_DFL;
	assert_true(nwait < sizeof(wait_end) / sizeof(wait_end[0]));
	wait_end[nwait++] = time;
	if (nwait == signal_at)
		return true;
	now = time > now ? time : now;
	return false;
}

/* n NICs: n0, n1, ... */
static void begin(uint32_t n)
{
	static char name[NBAR_NICS_MAX][8];

	for (uint32_t i = 0; i < NBAR_NICS_MAX; i++) {
		free(t.now[i].group);
		free(t.now[i].last);
	}
	memset(&t, 0, sizeof(t));
	t.n = n;
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name[i], sizeof(name[i]), "n%u", i);
		t.name[i] = name[i];
	}
	now = START;
	nlook = nlatency = nlist = nall = nbegin = nwait = 0;
	ngroup = first_index = fails_at = signal_at = 0;
	stat_error = latency_error = 0;
	realloc_left = UINT32_MAX;
	terminal = sigpipe_ends = false;
}

static int to_files(int file[2])
{
	int saved[2] = { dup(STDOUT_FILENO), dup(STDERR_FILENO) };

	fflush(stdout);
	fflush(stderr);
	dup2(file[0], STDOUT_FILENO);
	dup2(file[1], STDERR_FILENO);
	file[0] = saved[0];
	file[1] = saved[1];
	return 0;
}

static void text_of(FILE *f, char *text, size_t size)
{
	rewind(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
}

/* Calls stat_watch_run() or stat_take(), with the text in `out` and `err`. */
static int shows(const struct stat_options *opt)
{
	FILE *f[2] = { tmpfile(), tmpfile() };
	int fd[2], r;

	assert_true(f[0] && f[1]);
	fd[0] = fileno(f[0]);
	fd[1] = fileno(f[1]);
	to_files(fd);
	r = opt ? stat_watch_run(&t, opt) : stat_take(&t);
	to_files(fd);
	close(fd[0]);
	close(fd[1]);
	text_of(f[0], out, sizeof(out));
	text_of(f[1], err, sizeof(err));
	return r;
}

static void keeps_groups(void **state)
{
	begin(2);
	ngroup = 130;
	assert_int_equal(shows(NULL), 0);
	assert_true(nlook == 2 && nlatency == 2 && nlist == 2 && nall == 0);
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(t.now[n].ngroup, 130);
		assert_true(t.now[n].at == START);
		assert_string_equal(t.now[n].nic.nic, t.name[n]);
		assert_int_equal(t.now[n].latency.bucket[2] & 0xff, 7);
		for (uint32_t i = 0; i < 130; i++) {
			assert_int_equal(t.now[n].group[i].index, i);
			assert_true(t.now[n].last[i].barriers == 0);
		}
	}
	/* The next reply replaces this one. */
	ngroup = 3;
	first_index = 50;
	now += 5;
	assert_int_equal(shows(NULL), 0);
	assert_int_equal(t.now[1].ngroup, 3);
	assert_int_equal(t.now[1].group[0].index, 50);
	assert_true(t.now[1].at == START + 5);
}

static void keeps_last_tokens(void **state)
{
	begin(1);
	t.last = true;
	ngroup = 66;
	for (uint32_t round = 1; round <= 2; round++) {
		assert_int_equal(shows(NULL), 0);
		assert_true(nlist == 0 && nall == round);
		for (uint32_t i = 0; i < 66; i++)
			assert_true(t.now[0].last[i].barriers == (i % 2 ? 1000 + i : 0));
		memset(t.now[0].last, 1, 66 * sizeof(t.now[0].last[0]));
	}
}

static void counters_alone(void **state)
{
	begin(1);
	ngroup = 3;
	t.counters_only = true;
	assert_int_equal(shows(NULL), 0);
	assert_true(nlook == 1 && nlatency == 1 && nlist == 0 && nall == 0);
	assert_int_equal(t.now[0].ngroup, 0);
}

static void nic_without_latencies(void **state)
{
	begin(1);
	ngroup = 1;
	latency_error = -EOPNOTSUPP;
	assert_int_equal(shows(NULL), 0);
	assert_true(t.now[0].latency.ns == 0 && t.now[0].latency.bucket[5] == 0);
	assert_int_equal(t.now[0].ngroup, 1);
	latency_error = -ETIMEDOUT;
	assert_int_equal(shows(NULL), TOOL_FAILED);
	assert_string_equal(err, "nbar: the reason, %% and all\n");
	assert_true(nlist == 1 && t.now[0].ngroup == 0);
}

/* The first NIC that fails is the last that is asked. */
static void failed_nic(void **state)
{
	begin(3);
	stat_error = -ECONNREFUSED;
	fails_at = 2;
	assert_int_equal(shows(NULL), TOOL_FAILED);
	assert_string_equal(err, "nbar: the reason, %% and all\n");
	assert_true(nlook == 2 && nlatency == 1 && nlist == 1);
}

/* Without memory for more groups, those before stay. */
static void no_memory_for_groups(void **state)
{
	for (uint32_t calls = 0; calls < 4; calls++) {
		begin(1);
		ngroup = 65;
		realloc_left = calls;
		assert_int_equal(shows(NULL), TOOL_FAILED);
		assert_string_equal(err, "nbar: no memory for the groups of a NIC\n");
		assert_int_equal(t.now[0].room, calls < 2 ? 0 : 64);
		assert_int_equal(t.now[0].ngroup, calls < 2 ? 0 : 64);
		realloc_left = UINT32_MAX;
		assert_int_equal(shows(NULL), 0);
		assert_int_equal(t.now[0].room, 128);
		assert_int_equal(t.now[0].ngroup, 65);
	}
}

#define RATES(n) n " barriers/s, 0.0 tokens/s, 0.0 pulls/s, 0.0 drops/s, "
#define NONE "- barriers/s, - tokens/s, - pulls/s, - drops/s, "

/* 30 barriers in 4 seconds; each display 4 seconds after the one before. */
static void displays(void **state)
{
	const struct stat_options opt = { .watch = 4, .count = 3 };

	begin(1);
	ngroup = 1;
	assert_int_equal(shows(&opt), 0);
	assert_string_equal(
		out,
		"1970-01-01T00:16:40 n0: " NONE "groups 0, waiting 0, failed 0\n"
		"1970-01-01T00:16:44 n0: " RATES(
			"7.5") "groups 0, waiting 1, failed 0; n0 "
			       "group 0, rank 1/4, epoch 8: 4 s, waits for 2\n"
			       "1970-01-01T00:16:48 n0: " RATES(
				       "7.5") "groups 0, waiting 1, failed 0; n0 "
					      "group 0, rank 1/4, epoch 8: 8 s, waits for 2\n");
	assert_string_equal(err, "");
	assert_true(nbegin == 1 && nwait == 2);
	assert_true(wait_end[0] == START + 4 * SECOND && wait_end[1] == START + 8 * SECOND);
	assert_true(sigpipe_ends);
}

static uint32_t lines_of(const char *text)
{
	uint32_t n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

static void signal_ends_the_displays(void **state)
{
	struct stat_options opt = { .watch = 1 };

	begin(2);
	signal_at = 6;
	assert_int_equal(shows(&opt), 0);
	assert_true(nwait == 6 && nlook == 12 && lines_of(out) == 12);
	begin(2);
	signal_at = 1;
	opt.count = 5;
	assert_int_equal(shows(&opt), 0);
	assert_true(nwait == 1 && nlook == 2 && lines_of(out) == 2);
}

/* As many NICs as a run directory may have. */
static void displays_of_all_nics(void **state)
{
	const struct stat_options opt = { .watch = 1, .count = 2 };

	begin(NBAR_NICS_MAX);
	assert_int_equal(shows(&opt), 0);
	assert_true(lines_of(out) == 2 * NBAR_NICS_MAX);
	assert_int_equal(t.n, NBAR_NICS_MAX);
}

static void failure_ends_the_displays(void **state)
{
	const struct stat_options opt = { .watch = 1, .count = 5 };

	begin(1);
	stat_error = -ECONNREFUSED;
	fails_at = 3;
	assert_int_equal(shows(&opt), TOOL_FAILED);
	assert_true(nlook == 3 && nwait == 2 && lines_of(out) == 2);
	assert_string_equal(err, "nbar: the reason, %% and all\n");
	begin(1);
	ngroup = 1;
	realloc_left = 2; /* none for what the display remembers of the group */
	assert_int_equal(shows(&opt), TOOL_FAILED);
	assert_true(nlook == 1 && nwait == 0);
	assert_string_equal(out, "");
	assert_string_equal(err, "nbar: no memory: free some, and try again\n");
	begin(1);
	ngroup = 1;
	realloc_left = 3; /* none for the group that waits */
	assert_int_equal(shows(&opt), TOOL_FAILED);
	assert_true(nlook == 2 && nwait == 1 && lines_of(out) == 1);
}

static void displays_as_json(void **state)
{
	const struct stat_options opt = { .watch = 1, .count = 3, .json = true };

	begin(1);
	terminal = true;
	terminal_rows = 24;
	assert_int_equal(shows(&opt), 0);
	assert_int_equal(lines_of(out), 3);
	assert_int_equal(strncmp(out, "{\"version\":", 11), 0);
	assert_null(strstr(out, "\033"));
}

/* A terminal of an unknown size gets lines. */
static void displays_on_a_terminal(void **state)
{
	const struct stat_options opt = { .watch = 1, .count = 1 };

	begin(1);
	terminal = true;
	terminal_rows = 24;
	assert_int_equal(shows(&opt), 0);
	assert_int_equal(strncmp(out, "\033[Hnbar stat  1970-01-01T00:16:40  1 NICs", 41), 0);
	assert_null(strstr(out, "Ctrl-C")); /* cut at column 40 */
	for (uint32_t rows = 0; rows <= UINT16_MAX; rows += UINT16_MAX) {
		terminal_rows = (unsigned short)rows;
		assert_int_equal(shows(&opt), 0);
		assert_int_equal(strncmp(out, "1970-01-01T00:16:40 n0: -", 25), 0);
	}
}

static void displays_leave_no_memory(void **state)
{
	const struct stat_options opt = { .watch = 1, .count = 3 };
	size_t used = 0;

	begin(1);
	ngroup = 100;
	for (uint32_t n = 0; n < 80; n++) {
		nwait = 0;
		if (n == 16)
			used = mallinfo2().uordblks;
		assert_int_equal(shows(&opt), 0);
	}
	/* The allocator keeps some blocks back. */
	if (!unit_sanitized() || unit_counted())
		assert_true(mallinfo2().uordblks < used + 4096);
}

/* stdout that takes nothing: its failure ends the displays. */
static void full_disk(void **state)
{
	const struct stat_options opt = { .watch = 1, .count = 5 };
	FILE *f = tmpfile();
	int fd[2], r;

	begin(1);
	assert_non_null(f);
	fd[0] = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(fd[0] >= 0);
	fd[1] = fileno(f);
	to_files(fd);
	r = stat_watch_run(&t, &opt);
	to_files(fd);
	text_of(f, err, sizeof(err));
	assert_int_equal(r, TOOL_FAILED);
	assert_int_equal(nlook, 1);
	assert_string_equal(err, "nbar: cannot write to stdout: No space left on device\n");
	/* An earlier write has failed. */
	assert_true(ferror(stdout));
	assert_int_equal(stat_flush(), TOOL_FAILED);
	clearerr(stdout);
	assert_int_equal(stat_flush(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(keeps_groups),
		UNIT(keeps_last_tokens),
		UNIT(counters_alone),
		UNIT(nic_without_latencies),
		UNIT(failed_nic),
		UNIT(no_memory_for_groups),
		UNIT(displays),
		UNIT(signal_ends_the_displays),
		UNIT(displays_of_all_nics),
		UNIT(failure_ends_the_displays),
		UNIT(displays_as_json),
		UNIT(displays_on_a_terminal),
		UNIT(displays_leave_no_memory),
		UNIT(full_disk),
	};

	setenv("TZ", "UTC0", 1);
	return cmocka_run_group_tests_name("stat_loop", tests, NULL, NULL);
}
