/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostnic_make.c - the making of an in-process NIC that fails at each of its steps, and a
 * process that ends while another of its threads has the NIC. Compares what is left behind.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "hostnic.c"
#include "unit/descriptors.h"
#include "unit/unit.h"

#define NIC "wire=udp,bind=127.0.0.1:0"

static const char *fails; /* the function that fails */
static int blocks;        /* of memory */
static uint32_t *naps;    /* at the end of a process; shared memory, as are its socket ids */

static bool fails_now(const char *function)
{
	return fails && strcmp(fails, function) == 0;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	blocks += !fails_now("calloc");
	return fails_now("calloc") ? NULL : __real_calloc(n, size);
}

void __real_free(void *p);
void __wrap_free(void *p)
{
	blocks -= p != NULL;
	__real_free(p);
}

int __real_eventfd(unsigned initial, int flags);
int __wrap_eventfd(unsigned initial, int flags)
{
	errno = EMFILE;
	return fails_now("eventfd") ? -1 : __real_eventfd(initial, flags);
}

int __real_nicd_add(struct nicd *d, const char *name, struct wire_base *wire);
int __wrap_nicd_add(struct nicd *d, const char *name, struct wire_base *wire)
{
	return fails_now("nicd_add") ? -ENOSPC : __real_nicd_add(d, name, wire);
}

int __real_control_start(struct nicd *d, const struct control_config *config, struct control **out);
int __wrap_control_start(struct nicd *d, const struct control_config *config, struct control **out)
{
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	assert_true(sigismember(&set, SIGINT) && sigismember(&set, SIGUSR2));
	return fails_now("control_start") ? -EAGAIN : __real_control_start(d, config, out);
}

int __real_control_admit(struct control *k, int fd);
int __wrap_control_admit(struct control *k, int fd)
{
	return fails_now("control_admit") ? -ENFILE : __real_control_admit(k, fd);
}

int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	*naps += t->tv_nsec == PARTING_NAP_NS;
	return __real_nanosleep(t, left);
}

static bool is_blocked(int signal)
{
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	return sigismember(&set, signal);
}

static void each_step_fails(void **state)
{
	static const struct {
		const char *function;
		int rc;
	} cases[] = {
		{ "calloc", -ENOMEM },
		{ "eventfd", -EMFILE },
		{ "nicd_add", -ENOSPC },
		{ "control_start", -EAGAIN },
	};
	struct nbar_hostnic *n = NULL;
	char text[NBAR_HOSTNIC_TEXT];

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* The lowest descriptor is free, too: a NIC may get the number 0. */
		int in = dup(0), was = (int)unit_descriptors() - 1;

		close(0);
		blocks = 0;
		fails = cases[i].function;
		assert_int_equal(nbar_hostnic.open(NIC, 1, &n, text), cases[i].rc);
		fails = NULL;
		assert_int_equal(unit_descriptors(), was);
		dup2(in, 0);
		close(in);
		assert_int_equal(blocks, 0);
		assert_string_equal(text, strerror(-cases[i].rc));
		assert_true(!n && !all.first && !all.ending && !is_blocked(SIGINT));
	}
}

static void wait_for_the_end(void)
{
	pthread_mutex_lock(&all.lock);
	while (all.first || all.ending)
		pthread_cond_wait(&all.ended, &all.lock);
	pthread_mutex_unlock(&all.lock);
}

/* It leaves nothing behind, whether a client came or not. */
static void two_users(void **state)
{
	const int was = (int)unit_descriptors();
	struct nbar_hostnic *one = NULL, *two = NULL;
	char text[NBAR_HOSTNIC_TEXT];
	int fd, open;

	blocks = 0;
	assert_int_equal(nbar_hostnic.open(NIC, 0, &one, text), -ENOENT);
	assert_int_equal(nbar_hostnic.open(NIC, 1, &one, text), 0);
	assert_int_equal(nbar_hostnic.open(NIC, 0, &two, text), 0);
	assert_true(one == two && !is_blocked(SIGINT));
	open = (int)unit_descriptors();
	fails = "control_admit";
	assert_int_equal(nbar_hostnic.connect(one), -ENFILE);
	fails = NULL;
	assert_int_equal(unit_descriptors(), open);
	nbar_hostnic.close(one);
	fd = nbar_hostnic.connect(two);
	assert_true(fd >= 0);
	close(fd);
	nbar_hostnic.close(two);
	wait_for_the_end();
	assert_int_equal(unit_descriptors(), was);
	assert_int_equal(blocks, 0);
}

/* What the last thread of the process has when it ends: a signal handler may call exit(). */
static void ends_with(bool list)
{
	struct nbar_hostnic *n[2];
	char text[NBAR_HOSTNIC_TEXT];

	for (int i = 0; i < 2; i++) {
		if (nbar_hostnic.open(i ? NIC : NIC ",name=two", 1, &n[i], text) != 0)
			_exit(1);
		naps[1 + i] = nbar_hostnic.socket_id(n[i]);
	}
	if (list)
		pthread_mutex_lock(&all.lock);
	else
		while (!mailbox_enter(&all.first->nicd.mailbox))
			sched_yield();
	exit(0);
}

static bool has_socket(uint32_t id)
{
	char path[64];

	snprintf(path, sizeof(path), NBAR_HOSTNIC_DIR "/" NBAR_HOSTNIC_SOCKET, id);
	return access(path, F_OK) == 0;
}

static void exit_within_the_library(void **state)
{
	for (int list = 0; list < 2; list++) {
		int status = -1;
		pid_t child = fork();

		*naps = 0;
		if (child == 0) {
			alarm(60);
			ends_with(list);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		/* Another thread would have had time to let go. */
		assert_true(naps[0] > 0 && naps[1] && naps[2] && naps[1] != naps[2]);
		/* Both NICs end, though a thread has the first. */
		assert_true(list || (!has_socket(naps[1]) && !has_socket(naps[2])));
	}
}

/* A process with two NICs, of which one lingers, ends. Returns its naps. */
static uint32_t naps_at_end(bool second)
{
	int status = -1;
	pid_t child = fork();

	*naps = 0;
	if (child == 0) {
		struct nbar_hostnic *n;
		char text[NBAR_HOSTNIC_TEXT];

		alarm(60);
		if (nbar_hostnic.open(NIC, 1, &n, text) != 0 ||
		    nbar_hostnic.open(NIC ",name=two", 1, &n, text) != 0)
			_exit(1);
		n = second ? all.first->next : all.first;
		n->nicd.nic[0]->device.nic.nlinger = 1;
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return *naps;
}

/* A process that ends answers PULLs for the closed groups of whichever of its NICs. On a busy
 * machine, the time for that may be over before the first pass: then once more. */
static void any_nic_lingers(void **state)
{
	for (int second = 0; second < 2; second++) {
		uint32_t tries = 20;

		while (naps_at_end(second) == 0)
			assert_true(--tries > 0);
	}
}

/* The descriptors that a child of fork() has more than `was`. */
static int child_has(int was)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit((int)unit_descriptors() - was);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* A child of fork() has no descriptor of a NIC, also if that NIC is about to end. */
static void fork_beside_a_nic_that_ends(void **state)
{
	const int was = (int)unit_descriptors();
	struct nbar_hostnic *n[2];
	char text[NBAR_HOSTNIC_TEXT];

	for (int i = 0; i < 2; i++)
		assert_int_equal(nbar_hostnic.open(i ? NIC : NIC ",name=two", 1, &n[i], text), 0);
	assert_int_equal(child_has(was), 0);
	pthread_mutex_lock(&all.lock);
	take(n[0], &all.first);
	n[0]->next = NULL;
	all.ending = n[0];
	pthread_mutex_unlock(&all.lock);
	assert_int_equal(child_has(was), 0);
	pthread_mutex_lock(&all.lock);
	all.first->next = n[0];
	all.ending = NULL;
	pthread_mutex_unlock(&all.lock);
	nbar_hostnic.close(n[0]);
	nbar_hostnic.close(n[1]);
	wait_for_the_end();
	assert_int_equal(unit_descriptors(), was);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(exit_within_the_library),
		UNIT(any_nic_lingers),
		UNIT(each_step_fails),
		UNIT(two_users),
		UNIT(fork_beside_a_nic_that_ends),
	};

	naps = mmap(NULL, 3 * sizeof(*naps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	if (naps == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
