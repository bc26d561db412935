/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bared_main.c - start and end of nbar-bared without a machine: the signals that end it, and
 * the error if it cannot wait for signals.
 *
 * The functions here replace the machine and the control socket. The lock and the signals are real.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include "rundir.h"

#define main bared_main
#define rundir_take take_lock
static int take_lock(const char *path);
int bared_main(int argc, char **argv);
#include "host/main.c"
#undef main
#undef rundir_take

#include "unit/descriptors.h"
#include "unit/said.h"

static char dir[32];
static bool scarce;         /* no descriptor is free after the lock */
static int served, started; /* calls */
static int ended;           /* qemu_end's wait, in ms; -1: it was not called */
static int arrives;         /* signal that arrives while it serves */

static void limit_descriptors(rlim_t n)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int take_lock(const char *path)
{
	int lock = rundir_take(path);

	if (scarce)
		limit_descriptors((rlim_t)unit_lowest_free());
	return lock;
}

int options_parse(int argc, char **argv, struct options *o)
{
	snprintf(o->set.run_dir, sizeof(o->set.run_dir), "%s", dir);
	snprintf(o->set.name, sizeof(o->set.name), "n0");
	return 0;
}

int nic_memory(struct nic *n, const struct options *o)
{
	static struct bared_control control;

	n->options = o;
	n->control = &control;
	return 0;
}

int nic_start(struct nic *n, int stop_fd)
{
	started++;
	return stop_fd < 0 ? -EBADF : 0;
}

void nic_free(struct nic *n)
{
	n->control = NULL;
}

const char *qemu_end(struct nic *n, int wait_ms)
{
	ended = wait_ms;
	return NULL;
}

int serve_listen(const struct options *o, struct rundir_socket *out)
{
	*out = (struct rundir_socket){ .path = "none" };
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* SIGHUP and SIGPIPE must have no effect. The last signal must not end this process: it makes
 * stop_fd readable, and then serve_run returns. */
int serve_run(struct nic *n, int listen_fd, int stop_fd)
{
	struct pollfd p = { .fd = stop_fd, .events = POLLIN };

	served++;
	assert_int_equal(poll(&p, 1, 0), 0);
	raise(SIGHUP);
	raise(SIGPIPE);
	assert_int_equal(poll(&p, 1, 0), 0);
	raise(arrives);
	return poll(&p, 1, 0) == 1 ? 0 : -EIO;
}

/* Runs bared_main(). Returns its exit status, and its output on stderr in *text. */
static int run(const char **text)
{
	char name[] = "nbar-bared", *argv[] = { name, NULL };
	struct rlimit limit;
	int rc;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	served = started = 0;
	ended = -1;
	said_begin();
	rc = bared_main(1, argv);
	setrlimit(RLIMIT_NOFILE, &limit);
	*text = said_end();
	return rc;
}

static void signals_end_it_well(void **state)
{
	static const int by[] = { SIGTERM, SIGINT };
	sigset_t before;
	const char *text;

	sigprocmask(SIG_SETMASK, NULL, &before);
	for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
		int free = unit_lowest_free();

		arrives = by[i];
		assert_int_equal(run(&text), 0);
		assert_string_equal(text, "");
		assert_int_equal(served, 1);
		assert_int_equal(ended, END_MS);
		assert_int_equal(unit_lowest_free(), free);
		/* Takes the pending signal. */
		signal(by[i], SIG_IGN);
		sigprocmask(SIG_SETMASK, &before, NULL);
		signal(by[i], SIG_DFL);
	}
}

static void without_signals_it_does_not_start(void **state)
{
	int free = unit_lowest_free(), lock;
	const char *text;

	scarce = true;
	assert_int_equal(run(&text), 1);
	scarce = false;
	assert_non_null(strstr(text, "cannot wait for signals: Too many open files"));
	assert_int_equal(started + served, 0);
	assert_int_equal(ended, 0);
	assert_int_equal(unit_lowest_free(), free);
	/* The next daemon gets the lock. */
	lock = rundir_take(dir);
	assert_true(lock >= 0);
	close(lock);
}

static int setup(void **state)
{
	strcpy(dir, "/tmp/nbar-bared-XXXXXX");
	return !mkdtemp(dir);
}

static int teardown(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/nicd.lock", dir);
	unlink(path);
	return rmdir(dir);
}

UNIT_MAIN(setup, teardown, UNIT(signals_end_it_well), UNIT(without_signals_it_does_not_start))
