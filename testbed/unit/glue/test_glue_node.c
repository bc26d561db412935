/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_glue_node.c - the place of a process: what makes two processes one host, which settings must
 * be equal, the missing NIC, processors, and the numbers of hosts.
 *
 * The test decides what the system says: names, namespaces, files, processors.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>

#include "comm.h"
#include "node.h"
#include "unit/said.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static struct {
	const char *name;     /* of the host; NULL: uname fails */
	const char *boot;     /* the file of the kernel's boot; NULL: there is none */
	bool boot_closed;     /* it cannot be read */
	ino_t pid_ns, net_ns; /* 0: stat fails */
	dev_t pid_dev, shm_dev;
	const char *sock; /* a socket's path that is there, or NULL */
	int access_error; /* of all others */
	int poor;         /* mallocs until one fails; -1: none */
} has;
static ino_t junk;

int __wrap_uname(struct utsname *out)
{
	if (!has.name)
		return -1;
	memset(out, 0, sizeof(*out));
	strcpy(out->nodename, has.name);
	return 0;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	if (strcmp(path, BOOT_ID) != 0)
		return __real_open(path, flags, 0600);
	if (has.boot)
		return __real_open("/dev/null", flags);
	errno = ENOENT;
	return -1;
}

ssize_t __wrap_read(int fd, void *out, size_t size)
{
	size_t n = strlen(has.boot);

	if (has.boot_closed) {
		errno = EIO;
		return -1;
	}
	n = n < size ? n : size;
	memcpy(out, has.boot, n);
	return (ssize_t)n;
}

int __real_stat(const char *path, struct stat *out);
int __wrap_stat(const char *path, struct stat *out)
{
	bool pid = strcmp(path, "/proc/self/ns/pid") == 0;

	if (strcmp(path, "/dev/shm") == 0) {
		out->st_ino = 1;
		out->st_dev = has.shm_dev;
		return 0;
	}
	if (!pid && strcmp(path, "/proc/self/ns/net") != 0)
		return __real_stat(path, out);
	out->st_ino = pid ? has.pid_ns : has.net_ns;
	out->st_dev = pid ? has.pid_dev : 4;
	if (out->st_ino)
		return 0;
	out->st_ino = ++junk; /* a failed call may leave anything */
	errno = ENOENT;
	return -1;
}

int __wrap_access(const char *path, int mode)
{
	if (strcmp(path, BOOT_ID) == 0 ? !!has.boot : has.sock && strcmp(path, has.sock) == 0) {
		errno = ENOENT; /* says nothing after a success */
		return 0;
	}
	errno = has.access_error;
	return -1;
}

static int blocks; /* in use */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	void *block;

	if (has.poor >= 0 && has.poor-- == 0)
		return NULL;
	/* As a rank or a host, the bytes in the block and behind it are wrong. */
	block = __real_malloc(size + 64);
	assert_non_null(block);
	blocks++;
	return memset(block, 0x7f, size + 64);
}

void __real_free(void *block);
void __wrap_free(void *block)
{
	blocks -= block != NULL;
	__real_free(block);
}

static struct nbmpi_config config;

static int usual(void **state)
{
	memset(&has, 0, sizeof(has));
	has.name = "node7";
	has.boot = "11111111-2222\n";
	has.pid_ns = 5;
	has.net_ns = 6;
	has.pid_dev = 4;
	has.shm_dev = 9;
	has.access_error = ENOENT;
	has.sock = "/run/test/n0.sock";
	has.poor = -1;
	nbmpi_config_init(&config);
	setenv("NBAR_RUN_DIR", "/run/test", 1);
	unsetenv("NBAR_NIC");
	return 0;
}

static struct nbmpi_node self(uint32_t rank)
{
	struct nbmpi_node node;

	memset(&node, 0xee, sizeof(node));
	nbmpi_node_self(&config, rank, &node);
	return node;
}

static bool same_host(const struct nbmpi_node *as)
{
	const struct nbmpi_node now = self(1);

	require((nbmpi_node_host(&now) == nbmpi_node_host(as)) == nbmpi_node_same(&now, as),
		"the number of the host");
	return nbmpi_node_same(&now, as);
}

static void one_host(void **state)
{
	const struct nbmpi_node first = self(0);

	assert_true(same_host(&first));
	assert_int_equal(self(3).terms, first.terms);
	assert_int_equal(nbmpi_node_host(&first) & 1, 1);
	/* Its two halves are two hashes. */
	assert_int_not_equal(first.boot[0], first.boot[1]);
	assert_int_not_equal(first.host[0], first.host[1]);
	assert_int_not_equal(first.boot[0], first.host[0]);
}

static void other_hosts(void **state)
{
	struct nbmpi_node first = self(0);

	has.name = "node8";
	assert_false(same_host(&first));
	usual(state);
	has.boot = "11111111-2223\n";
	assert_false(same_host(&first));
	assert_int_equal(self(0).host[0], first.host[0]);
	has.boot = "1";
	first = self(0);
	has.boot = "2";
	assert_false(same_host(&first));
	usual(state);
	first = self(0);
	has.pid_ns = 7;
	assert_false(same_host(&first));
	usual(state);
	has.pid_dev = 5;
	assert_false(same_host(&first));
	usual(state);
	has.net_ns = 7;
	assert_false(same_host(&first));
	usual(state);
	has.shm_dev = 8; /* containers that share their network, but no memory */
	assert_false(same_host(&first));
	usual(state);
	strcpy(config.nic, "n1");
	assert_false(same_host(&first));
	usual(state);
	setenv("NBAR_NIC", "n1", 1);
	assert_false(same_host(&first));
	usual(state);
	setenv("NBAR_RUN_DIR", "/run/other", 1);
	assert_false(same_host(&first));
	usual(state);
	assert_true(same_host(&first));
	/* The settings of the MPI come before those of the environment. */
	strcpy(config.nic, "n0");
	first = self(0);
	setenv("NBAR_NIC", "n1", 1);
	assert_true(same_host(&first));
}

static void each_rank_with_a_nic_is_a_host(void **state)
{
	struct nbmpi_node zero, one;

	strcpy(config.nic, "n%r");
	zero = self(0);
	one = self(1);
	assert_false(nbmpi_node_same(&zero, &one));
	assert_int_equal(zero.boot[0], one.boot[0]);
}

/* A program may have closed its standard input: then a file gets descriptor 0. */
static void descriptor_0_is_as_good(void **state)
{
	const struct nbmpi_node first = self(0);
	int kept = fcntl(0, F_DUPFD_CLOEXEC, 10);

	close(0);
	assert_true(same_host(&first));
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (kept >= 0)
		assert_int_equal(dup2(kept, 0), 0);
	close(kept);
}

/* A file that cannot be read says nothing, but other files still do. */
static void a_system_that_says_little(void **state)
{
	struct nbmpi_node first;

	has.pid_ns = has.net_ns = 0;
	has.boot_closed = true;
	first = self(0);
	assert_true(same_host(&first));
	has.boot_closed = false;
	assert_false(same_host(&first));
	/* Without a number of the boot, its host's name stands for it. */
	has.boot = NULL;
	first = self(0);
	assert_true(same_host(&first));
	has.name = "node8";
	assert_int_not_equal(self(0).boot[0], first.boot[0]);
	assert_int_not_equal(self(0).boot[1], first.boot[1]);
	has.name = NULL;
	first = self(0);
	assert_true(same_host(&first));
	/* With the number, the name does not count for the boot. */
	has.boot = "1\n";
	has.name = "node7";
	first = self(0);
	has.name = "node8";
	assert_int_equal(self(0).boot[0], first.boot[0]);
}

static void terms_are_settings(void **state)
{
	uint64_t first = self(0).terms;

	has.name = "node8";
	strcpy(config.nic, "n1");
	config.verbose = 2;
	config.wait = NBMPI_WAIT_BLOCK;
	assert_int_equal(self(0).terms, first);
	usual(state);
	config.enable = false;
	assert_int_not_equal(self(0).terms, first);
	usual(state);
	config.allreduce = false;
	assert_int_not_equal(self(0).terms, first);
	usual(state);
	config.min_hosts = 2;
	assert_int_not_equal(self(0).terms, first);
	usual(state);
	config.where = NBMPI_WHERE_HOST;
	assert_int_not_equal(self(0).terms, first);
	usual(state);
	strcpy(config.alg, "linear");
	assert_int_not_equal(self(0).terms, first);
}

/* --- a NIC ------------------------------------------------------------------------------------ */

static void the_nic_is_there(void **state)
{
	assert_int_equal(self(0).has_nic, 1);
	has.sock = "/run/test/n3.sock";
	strcpy(config.nic, "n%r");
	assert_int_equal(self(3).has_nic, 1);
	/* A port of it. */
	strcpy(config.nic, "n3:7");
	assert_int_equal(self(0).has_nic, 1);
	usual(state);
	has.sock = "/run/test/n5.sock";
	setenv("NBAR_NIC", "n5", 1);
	assert_int_equal(self(0).has_nic, 1);
	usual(state);
	setenv("NBAR_NIC", "", 1);
	assert_int_equal(self(0).has_nic, 1);
	assert_string_equal(nbmpi_node_lacks_nic(), "");
}

/* Nobody can tell before nbar_open. */
static void a_nic_may_be_there(void **state)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = "";

	has.sock = NULL;
	strcpy(config.nic, "/run/elsewhere/n0.sock");
	assert_int_equal(self(0).has_nic, 1);
	usual(state);
	has.sock = NULL;
	has.access_error = EACCES;
	assert_int_equal(self(0).has_nic, 1);
	usual(state);
	has.sock = NULL;
	config.where = NBMPI_WHERE_HOST;
	assert_int_equal(self(0).has_nic, 1);
	usual(state);
	has.sock = NULL;
	config.enable = false;
	assert_int_equal(self(0).has_nic, 1);
	usual(state);
	has.sock = NULL;
	strcpy(config.nic, "%x");
	assert_int_equal(self(0).has_nic, 1);
	usual(state);
	has.sock = NULL;
	/* A path in this directory is too long for a socket. */
	memset(dir, 'd', sizeof(dir) - 1);
	dir[0] = '/';
	setenv("NBAR_RUN_DIR", dir, 1);
	assert_int_equal(self(0).has_nic, 1);
	assert_string_equal(nbmpi_node_lacks_nic(), "");
}

static void the_nic_is_missing(void **state)
{
	has.sock = NULL;
	assert_int_equal(self(0).has_nic, 0);
	assert_string_equal(nbmpi_node_lacks_nic(),
			    "no NIC n0 at /run/test/n0.sock when MPI started: start one with "
			    "`nbar-nicd --nic name=n0`, or set NBAR_RUN_DIR to its run directory");
	setenv("NBAR_NIC", "n4:2", 1);
	assert_int_equal(self(0).has_nic, 0);
	assert_non_null(strstr(nbmpi_node_lacks_nic(), "no NIC n4 at /run/test/n4.sock"));
	setenv("NBAR_NIC", "n%d", 1);
	assert_int_equal(self(0).has_nic, 0);
	assert_non_null(strstr(nbmpi_node_lacks_nic(), "no NIC n%d at /run/test/n%d.sock"));
	strcpy(config.nic, "7");
	assert_int_equal(self(0).has_nic, 0);
	assert_non_null(strstr(nbmpi_node_lacks_nic(), "no NIC 7 at /run/test/7.sock"));
	strcpy(config.nic, "eth%r");
	assert_int_equal(self(12).has_nic, 0);
	assert_non_null(strstr(nbmpi_node_lacks_nic(), "no NIC eth12 at /run/test/eth12.sock"));
}

/* --- numbers of hosts ------------------------------------------------------------------------- */

static uint64_t host_of(void *arg, uint32_t rank)
{
	assert_in_range(rank, 0, 8);
	return ((const uint64_t *)arg)[rank];
}

static void hosts_are_numbered(void **state)
{
	uint64_t host[] = { 70, 9, 70, 1, 9, 1, 1, 70, UINT64_MAX };
	const uint32_t want[] = { 0, 1, 0, 2, 1, 2, 2, 0, 3 };
	int before = blocks;
	uint32_t *number = nbmpi_hosts_number(host_of, host, 9);

	assert_non_null(number);
	assert_memory_equal(number, want, sizeof(want));
	free(number);
	assert_int_equal(blocks, before);
	for (int i = 0; i < 2; i++) {
		has.poor = i;
		assert_null(nbmpi_hosts_number(host_of, host, 9));
		assert_int_equal(blocks, before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First, as long as no NIC has been missing. */
		cmocka_unit_test_setup(the_nic_is_there, usual),
		cmocka_unit_test_setup(a_nic_may_be_there, usual),
		cmocka_unit_test_setup(one_host, usual),
		cmocka_unit_test_setup(other_hosts, usual),
		cmocka_unit_test_setup(each_rank_with_a_nic_is_a_host, usual),
		cmocka_unit_test_setup(descriptor_0_is_as_good, usual),
		cmocka_unit_test_setup(a_system_that_says_little, usual),
		cmocka_unit_test_setup(terms_are_settings, usual),
		cmocka_unit_test_setup(the_nic_is_missing, usual),
		cmocka_unit_test_setup(hosts_are_numbered, usual),
	};

	return cmocka_run_group_tests_name("glue_node", tests, NULL, NULL);
}
