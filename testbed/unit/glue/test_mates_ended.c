/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mates_ended.c - ranks of a host that have ended, are zombies, or cannot be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm_internal.h"
#include "unit/unit.h"
#include "unit/descriptors.h"

static int memory_make(uint64_t key, uint32_t leader, uint32_t nlocal)
{
	return nbmpi_memory_make(key, &(struct nbmpi_comm){ .leader = leader, .nlocal = nlocal });
}

#define RANKS 5u

/* The start time of a process, as text; NULL: the real file. */
static const char *stat_text;
static int stat_error; /* of open; 0: none */
static int read_error;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	if (stat_error) {
		errno = stat_error;
		return -1;
	}
	return __real_open(path, flags, 0600);
}

ssize_t __real_read(int fd, void *out, size_t size);
ssize_t __wrap_read(int fd, void *out, size_t size)
{
	if (read_error) {
		errno = read_error;
		return -1;
	}
	if (!stat_text)
		return __real_read(fd, out, size);
	size = strlen(stat_text) < size ? strlen(stat_text) : size;
	memcpy(out, stat_text, size);
	return (ssize_t)size;
}

static int usual(void **state)
{
	stat_text = NULL;
	stat_error = read_error = 0;
	return 0;
}

/* Several ranks, all in this process. */
static struct nbmpi_comm *five(void)
{
	static struct nbmpi_comm c;
	const uint64_t key = (uint64_t)getpid();
	int error = stat_error, memory;

	stat_error = 0;
	memory = memory_make(key, 0, RANKS);
	stat_error = error;

	c = (struct nbmpi_comm){ .nlocal = RANKS };
	for (uint32_t i = RANKS; i-- > 0;) {
		if (c.memory)
			nbmpi_memory_leave(&c);
		c.mate = c.rank = i;
		assert_int_equal(nbmpi_memory_join(&c, memory), 0);
	}
	nbmpi_memory_unlink(key, 0);
	close(memory);
	return &c;
}

static void processes_that_run(void **state)
{
	struct nbmpi_comm *c = five();

	/* An entry behind the last one does not count. */
	c->memory->mate[RANKS] = (struct nbmpi_mate){ .pid = 1 << 30, .born = 1 };
	assert_null(nbmpi_mate_ended(c));
	/* Its own entry does not count, nor that of a process that could not read its own. */
	c->memory->mate[0].born++;
	assert_null(nbmpi_mate_ended(c));
	c->memory->mate[4].born = 0;
	assert_null(nbmpi_mate_ended(c));
	c->memory->mate[4].pid = 1 << 30;
	assert_null(nbmpi_mate_ended(c));
	/* Another process has its number. */
	c->memory->mate[3].born++;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[3]);
	c->memory->mate[1].pid = 1 << 30;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	c->mate = 1;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[0]);
	nbmpi_memory_leave(c);
}

/* All blame the mate that was blamed first, even if other mates have ended since. */
static void the_first_is_to_blame(void **state)
{
	struct nbmpi_comm *c = five();
	const struct nbmpi_mate *mate = c->memory->mate;

	assert_ptr_equal(nbmpi_mate_blame(c, &mate[4]), &mate[4]);
	assert_ptr_equal(nbmpi_mate_blame(c, &mate[1]), &mate[4]);
	assert_ptr_equal(nbmpi_mate_blame(c, &mate[4]), &mate[4]);
	/* A rank that runs is not to blame, nor a mate that does not exist. */
	c->mate = 4;
	assert_ptr_equal(nbmpi_mate_blame(c, &mate[1]), &mate[1]);
	c->memory->ended = RANKS + 1;
	assert_ptr_equal(nbmpi_mate_blame(c, &mate[1]), &mate[1]);
	c->memory->ended = 0;
	assert_ptr_equal(nbmpi_mate_blame(c, &mate[0]), &mate[0]);
	assert_ptr_equal(nbmpi_mate_blame(c, &mate[1]), &mate[0]);
	nbmpi_memory_leave(c);
}

static void zombies(void **state)
{
	struct nbmpi_comm *c = five();
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	c->memory->mate[2].pid = pid;
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[2]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[2]);
	nbmpi_memory_leave(c);
}

/* A line of /proc/PID/stat: state, threads, time of birth. */
static const char *line(char what, int threads, const char *name, int birth)
{
	static char text[400];

	snprintf(text, sizeof(text),
		 "77 (%s) %c 1 77 77 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 %d 0 %d 1000 100 18446744",
		 name, what, threads, birth);
	return text;
}

/* A line of this length that ends with the time of birth, 500. */
static const char *long_line(int length)
{
	static const char rest[] = ") S 1 77 77 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 500";
	static char text[600];

	snprintf(text, sizeof(text), "77 (%*s%s", length - 4 - (int)strlen(rest), "", rest);
	assert_int_equal(strlen(text), length);
	return text;
}

static void lines_of_processes(void **state)
{
	struct nbmpi_comm *c;

	stat_text = line('R', 1, "app", 500);
	c = five();
	assert_int_equal(c->memory->mate[1].born, 500);
	assert_null(nbmpi_mate_ended(c));
	stat_text = line('S', 1, "a) Z 1 (x", 500);
	assert_null(nbmpi_mate_ended(c));
	stat_text = line('Z', 2, "app", 500);
	assert_null(nbmpi_mate_ended(c));
	stat_text = line('Z', 1, "app", 500);
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	stat_text = line('R', 1, "app", 501);
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	/* 511 characters are read, and no more. */
	stat_text = long_line(511);
	assert_null(nbmpi_mate_ended(c));
	stat_text = long_line(512);
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	/* What says nothing is no end. */
	stat_text = "77 (app R 1 2 3";
	assert_null(nbmpi_mate_ended(c));
	stat_text = "77 (app) R 1 77 77 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0";
	assert_null(nbmpi_mate_ended(c));
	stat_text = "";
	errno = ESRCH; /* of an earlier call */
	assert_null(nbmpi_mate_ended(c));
	read_error = EIO;
	assert_null(nbmpi_mate_ended(c));
	stat_error = EMFILE;
	assert_null(nbmpi_mate_ended(c));
	stat_error = 0;
	read_error = ESRCH;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	stat_error = ENOENT;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	nbmpi_memory_leave(c);
}

/* A rank that cannot read its own start is not checked by the others. */
static void a_rank_without_a_start(void **state)
{
	struct nbmpi_comm *c;

	stat_error = EMFILE;
	c = five();
	assert_int_equal(c->memory->mate[1].born, 0);
	stat_error = ENOENT;
	assert_null(nbmpi_mate_ended(c));
	nbmpi_memory_leave(c);
}

static void nothing_stays_open(void **state)
{
	struct nbmpi_comm *c = five();
	uint32_t before = unit_descriptors();

	nbmpi_mate_ended(c);
	read_error = ESRCH;
	nbmpi_mate_ended(c);
	read_error = EIO;
	nbmpi_mate_ended(c);
	assert_int_equal(unit_descriptors(), before);
	nbmpi_memory_leave(c);
}

/* If a program has closed its standard input, the file of a process gets descriptor 0. */
static void descriptor_0_is_as_good(void **state)
{
	struct nbmpi_comm *c = five();
	int kept = fcntl(0, F_DUPFD_CLOEXEC, 10);

	close(0);
	c->memory->mate[1].born++;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	nbmpi_memory_leave(c);
	if (kept >= 0)
		assert_int_equal(dup2(kept, 0), 0);
	close(kept);
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(processes_that_run, usual),
	  cmocka_unit_test_setup(the_first_is_to_blame, usual),
	  cmocka_unit_test_setup(zombies, usual), cmocka_unit_test_setup(lines_of_processes, usual),
	  cmocka_unit_test_setup(a_rank_without_a_start, usual),
	  cmocka_unit_test_setup(nothing_stays_open, usual),
	  cmocka_unit_test_setup(descriptor_0_is_as_good, usual))
