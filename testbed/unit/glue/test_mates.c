/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mates.c - the memory that the ranks of a host share: its file, and files of strangers in its
 * place.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm_internal.h"
#include "unit/unit.h"
#include "unit/descriptors.h"

static int memory_make(uint64_t key, uint32_t leader, uint32_t nlocal)
{
	return nbmpi_memory_make(key, &(struct nbmpi_comm){ .leader = leader, .nlocal = nlocal });
}

/* Files have names, so tests that run at the same time need different keys. */
#define KEY (UINT64_C(0x123456789abcdef0) ^ (uint64_t)getpid() << 24)

static uid_t user = (uid_t)-1; /* of this process, as the glue sees it; -1: as it is */

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void)
{
	return user == (uid_t)-1 ? __real_geteuid() : user;
}

/* A call that succeeds may change errno. */
int __real_close(int fd);
int __wrap_close(int fd)
{
	int rc = __real_close(fd);

	errno = EIO;
	return rc;
}

static int usual(void **state)
{
	user = (uid_t)-1;
	return 0;
}

/* Mappings of the memory of a host's ranks. */
static uint32_t mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char text[512];
	uint32_t n = 0;

	assert_non_null(f);
	while (fgets(text, sizeof(text), f))
		n += strstr(text, ".procs") != NULL;
	fclose(f);
	return n;
}

/* --- memory ------------------------------------------------------------------------------------
 */

static void path_of(uint64_t key, uint32_t leader, char path[64])
{
	snprintf(path, 64, "/dev/shm/nbar-%016" PRIx64 "-%u.procs", key, leader);
}

static void memory_is_shared(void **state)
{
	struct nbmpi_comm leader = { .rank = 3, .nlocal = 2, .mate = 0 };
	struct nbmpi_comm other = { .rank = 7, .nlocal = 2, .mate = 1 };
	uint32_t before = unit_descriptors();
	int memory = memory_make(KEY, 3, 2), got = nbmpi_memory_open(KEY, 3);
	struct stat st;

	assert_true(memory >= 0 && got >= 0 && got != memory);
	assert_int_equal(mappings(), 0);
	assert_int_equal(fcntl(memory, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(got, F_GETFD), FD_CLOEXEC);
	/* Only this user may open it, and after the set-up nobody. */
	assert_int_equal(fstat(memory, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_true(st.st_blocks > 0);
	nbmpi_memory_unlink(KEY, 3);
	assert_int_equal(fstat(memory, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(nbmpi_memory_open(KEY, 3), -ENOENT);
	assert_int_equal(nbmpi_memory_join(&leader, memory), 0);
	assert_int_equal(nbmpi_memory_join(&other, got), 0);
	/* Both see the same bytes. */
	assert_int_equal(other.memory->procs.size, 2);
	assert_int_equal(other.memory->mate[0].rank, 3);
	assert_int_equal(other.memory->mate[0].pid, getpid());
	assert_int_equal(leader.memory->mate[1].rank, 7);
	assert_true(leader.memory->mate[1].born > 0);
	assert_int_equal(leader.memory->mate[1].born, leader.memory->mate[0].born);
	/* Another number of ranks. */
	struct nbmpi_comm wrong = { .rank = 7, .nlocal = 3 };

	assert_int_equal(nbmpi_memory_join(&wrong, got), -ESTALE);
	assert_null(wrong.memory);
	nbmpi_memory_leave(&leader);
	nbmpi_memory_leave(&other);
	nbmpi_memory_leave(&wrong);
	assert_null(leader.memory);
	assert_int_equal(mappings(), 0);
	close(got);
	close(memory);
	assert_int_equal(unit_descriptors(), before);
}

static void memories_have_an_owner(void **state)
{
	uint32_t before = unit_descriptors();
	int one = memory_make(KEY, 1, 2), two, other;

	/* The same name again; another leader; another set-up. */
	assert_int_equal(memory_make(KEY, 1, 2), -EEXIST);
	assert_int_equal(nbmpi_memory_open(KEY, 2), -ENOENT);
	two = memory_make(KEY, 2, 2);
	other = memory_make(KEY + 1, 1, 2);
	assert_true(one >= 0 && two >= 0 && other >= 0);
	nbmpi_memory_unlink(KEY, 1);
	nbmpi_memory_unlink(KEY, 2);
	nbmpi_memory_unlink(KEY + 1, 1);
	close(one);
	close(two);
	close(other);
	assert_int_equal(unit_descriptors(), before);
}

static void too_many_ranks(void **state)
{
	uint32_t before = unit_descriptors();
	int memory;

	assert_int_equal(memory_make(KEY, 0, NBAR_PROCESS_TEAM_MAX + 1), -ERANGE);
	/* The file of the failed attempt is gone. */
	memory = memory_make(KEY, 0, NBAR_PROCESS_TEAM_MAX);
	assert_true(memory >= 0);
	nbmpi_memory_unlink(KEY, 0);
	close(memory);
	assert_int_equal(nbmpi_memory_join(&(struct nbmpi_comm){ .nlocal = 2 }, -1), -EBADF);
	assert_int_equal(unit_descriptors(), before);
}

static void no_free_descriptor(void **state)
{
	struct rlimit usual_limit, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual_limit), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = usual_limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(i ? memory_make(KEY, 1, 2) : nbmpi_memory_open(KEY, 1), -EMFILE);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual_limit), 0);
}

/* --- strangers ---------------------------------------------------------------------------------
 */

/* A file of another user, of any kind, is refused, and no open() waits for it. */
static void files_of_strangers(void **state)
{
	uint32_t before = unit_descriptors();
	int memory = memory_make(KEY, 1, 2);
	char path[64], to[64];

	user = 4242;
	assert_int_equal(nbmpi_memory_open(KEY, 1), -EPERM);
	user = (uid_t)-1;
	path_of(KEY, 1, to);
	path_of(KEY, 2, path);
	assert_int_equal(symlink(to, path), 0);
	assert_int_equal(nbmpi_memory_open(KEY, 2), -ELOOP);
	assert_int_equal(memory_make(KEY, 2, 2), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(nbmpi_memory_open(KEY, 2), -EPERM);
	nbmpi_memory_unlink(KEY, 2);
	nbmpi_memory_unlink(KEY, 1);
	close(memory);
	assert_int_equal(unit_descriptors(), before);
}

/* If a program has closed its standard input, a new descriptor is 0. */
static void descriptor_0_is_as_good(void **state)
{
	int kept = fcntl(0, F_DUPFD_CLOEXEC, 10);

	close(0);
	assert_int_equal(memory_make(KEY, 7, 2), 0);
	close(0);
	assert_int_equal(nbmpi_memory_open(KEY, 7), 0);
	close(0);
	/* It is closed after a failure. */
	user = 4242;
	assert_int_equal(nbmpi_memory_open(KEY, 7), -EPERM);
	assert_int_equal(memory_make(KEY, 8, NBAR_PROCESS_TEAM_MAX + 1), -ERANGE);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	nbmpi_memory_unlink(KEY, 7);
	if (kept >= 0)
		assert_int_equal(dup2(kept, 0), 0);
	close(kept);
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(memory_is_shared, usual),
	  cmocka_unit_test_setup(memories_have_an_owner, usual),
	  cmocka_unit_test_setup(too_many_ranks, usual),
	  cmocka_unit_test_setup(no_free_descriptor, usual),
	  cmocka_unit_test_setup(files_of_strangers, usual),
	  cmocka_unit_test_setup(descriptor_0_is_as_good, usual))
