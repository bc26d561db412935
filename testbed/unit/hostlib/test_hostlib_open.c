/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_open.c - names, ports and groups: errors and their messages.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/unit.h"
#include "cluster.h"
#include "unit/descriptors.h"
#include "unit/nics.h"
#include "internal.h"

/* The call fails with this error, and the message contains this text. */
#define expect(call, error, part)                                                                \
	do {                                                                                     \
		int expect_rc = (call);                                                          \
		require(expect_rc == (error), "returned %d: %s", expect_rc, nbar_error());       \
		require(strstr(nbar_error(), part), "\"%s\" is not in: %s", part, nbar_error()); \
	} while (0)

/* --- names --------------------------------------------------------------------------------- */

static void names_are_checked(void **state)
{
	struct nbar_port *port = NULL;
	char longer[200];
	int lowest = unit_lowest_free();

	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	expect(nbar_open("", &port), -EINVAL, "1 to 31 characters");
	expect(nbar_open(":1", &port), -EINVAL, "1 to 31 characters");
	expect(nbar_open(longer, &port), -EINVAL, "1 to 31 characters");
	expect(nbar_open("hosts", &port), -ENOENT, "no NIC hosts at ");
	expect(nbar_open("n0:", &port), -EINVAL, "n0:3");
	expect(nbar_open("n0:x", &port), -EINVAL, "n0:3");
	expect(nbar_open("n0:1x", &port), -EINVAL, "n0:3");
	expect(nbar_open("n0:-1", &port), -EINVAL, "n0:3");
	expect(nbar_open("n0:1024", &port), -EINVAL, "0 to 1023");
	longer[32] = 0;
	expect(nbar_open(longer, &port), -EINVAL, "1 to 31 characters");
	longer[32] = 'x';
	longer[0] = '/';
	expect(nbar_open(longer, &port), -EINVAL, "too long (107 bytes at most)");
	longer[sizeof(((struct sockaddr_un *)NULL)->sun_path)] = 0; /* no room for its end */
	expect(nbar_open(longer, &port), -EINVAL, "too long");
	longer[sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1] = 0;
	expect(nbar_open(longer, &port), -ENOENT, longer);
	longer[100] = 0;
	setenv("NBAR_RUN_DIR", longer, 1);
	expect(nbar_open("n123456789", &port), -EINVAL, "too long");
	setenv("NBAR_RUN_DIR", inproc_run_dir(nics), 1);
	expect(nbar_open("/none/5%%.sock", &port), -ENOENT, "no NIC 5%% at /none/5%%.sock");
	assert_null(port);
	assert_int_equal(unit_lowest_free(), lowest);
}

static void the_run_directory_has_a_rule(void **state)
{
	/* Here no user has a run directory of his own; a service of this machine may have one. */
	const bool of_system = geteuid() == 0 || access("/run/nbar", F_OK) == 0;
	char text[64];
	struct nbar_port *port;

	setenv("NBAR_RUN_DIR", "/tmp/there-is-none", 1);
	expect(nbar_open("q7", &port), -ENOENT, "no NIC q7 at /tmp/there-is-none/q7.sock: ");
	expect(nbar_open("q7:3", &port), -ENOENT, "`nbar-nicd --nic name=q7`");
	setenv("NBAR_RUN_DIR", "", 1);
	setenv("XDG_RUNTIME_DIR", "/tmp/none-here", 1);
	expect(nbar_open("q7", &port), -ENOENT,
	       of_system ? " /run/nbar/q7.sock" : " /tmp/none-here/nbar/q7.sock");
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("NBAR_RUN_DIR");
	snprintf(text, sizeof(text), " /tmp/nbar-%u/q7.sock", (unsigned)geteuid());
	expect(nbar_open("q7", &port), -ENOENT, of_system ? " /run/nbar/q7.sock" : text);
	setenv("NBAR_NIC", "q9", 1);
	expect(nbar_open(NULL, &port), -ENOENT, "no NIC q9 ");
	unsetenv("NBAR_NIC");
	expect(nbar_open(NULL, &port), -ENOENT, "no NIC n0 ");
	setenv("NBAR_RUN_DIR", inproc_run_dir(nics), 1);
	require_ok(nbar_open(NULL, &port));
	nbar_close(port);
}

/* A listening socket of some type. Without listen() it looks like the socket of a killed daemon. */
static int socket_at(const char *path, int type, bool listens)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	unlink(path);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	if (listens)
		assert_int_equal(listen(fd, 5), 0);
	return fd;
}

static void what_is_no_daemon_is_told(void **state)
{
	char path[128];
	struct nbar_rep_nic_stat stat;
	struct nbar_port *port;

	snprintf(path, sizeof(path), "%s/x.sock", inproc_run_dir(nics));
	int fd = socket_at(path, SOCK_SEQPACKET, false);

	close(fd);
	expect(nbar_open("x", &port), -ECONNREFUSED, "start it again");
	expect(nbar_nic_stat("x", &stat), -ECONNREFUSED, "start it again");
	expect(nbar_nic_groups(path, NULL, NULL), -ECONNREFUSED, path);
	fd = socket_at(path, SOCK_STREAM, true);
	expect(nbar_open("x", &port), -EPROTO, "no NIC of nbar");
	close(fd);
	unlink(path);
	expect(nbar_open(path, &port), -ENOENT, path);
}

/* Another user may make /tmp/nbar-UID first: the library must not use a NIC there. */
static void another_user_is_no_nic_of_ours(void **state)
{
	enum { THIEF = 54320, VICTIM };
	struct nbar_port *port = NULL;
	char dir[32], path[48];
	int fd, rc;

	if (geteuid() != 0)
		skip(); /* root can become two other users */
	snprintf(dir, sizeof(dir), "/tmp/nbar-%u", VICTIM);
	snprintf(path, sizeof(path), "%s/n0.sock", dir);
	unlink(path);
	rmdir(dir);
	unsetenv("NBAR_RUN_DIR");
	assert_int_equal(seteuid(THIEF), 0);
	rc = mkdir(dir, 0755) < 0 ? -errno : 0;
	fd = rc ? -1 : socket_at(path, SOCK_SEQPACKET, true);
	chmod(path, 0666);
	assert_int_equal(seteuid(0), 0); /* whatever has failed: other tests need it */
	if (rc == -EACCES) {
		print_message("# other users cannot make a folder in /tmp here: chmod 755 / and "
			      "chmod 1777 /tmp\n");
		setenv("NBAR_RUN_DIR", inproc_run_dir(nics), 1);
		skip();
	}
	assert_int_equal(rc, 0);
	assert_int_equal(seteuid(VICTIM), 0);
	rc = nbar_open("n0", &port);
	assert_int_equal(seteuid(0), 0);
	expect(rc, -EACCES, "belongs to uid 54320, not to uid 54321");
	assert_null(port);
	close(fd);
	unlink(path);
	rmdir(dir);
	setenv("NBAR_RUN_DIR", inproc_run_dir(nics), 1);
}

/* --- ports --------------------------------------------------------------------------------- */

static void a_port_has_one_owner(void **state)
{
	struct nbar_port *port[NBAR_PORTS_MAX], *other;
	char path[128];

	require_ok(nbar_open("n1:0", &port[0]));
	assert_int_equal(port[0]->number, 0);
	nbar_close(port[0]);
	require_ok(nbar_open("n1:90", &port[0]));
	expect(nbar_open("n1:90", &other), -EBUSY, "port 90");
	/* A port that was closed is free at once. */
	for (uint32_t i = 0; i < 20; i++) {
		nbar_close(port[0]);
		require_ok(nbar_open("n1:90", &port[0]));
	}
	nbar_close(port[0]);
	snprintf(path, sizeof(path), "%s/n1.sock", inproc_run_dir(nics));
	for (uint32_t i = 0; i < NBAR_PORTS_MAX; i++)
		require_ok(nbar_open(i % 2 ? path : "n1", &port[i]));
	expect(nbar_open("n1", &other), -ENOSPC, "1024");
	for (uint32_t i = 0; i < NBAR_PORTS_MAX; i++)
		nbar_close(port[i]);
	nbar_close(NULL);
	nbar_group_close(NULL);
}

/* The child of a fork cannot use the port of its parent, and does no harm to it. */
static void a_port_stays_with_the_parent(void **state)
{
	struct pollfd end = { .events = POLLRDHUP };
	struct cluster c;
	uint32_t ticket;
	int status;
	pid_t child;

	cluster_start(&c, 2, 2, NULL);
	require_ok(nbar_post(c.g[0], &ticket));
	end.fd = nbar_group_fd(c.g[0]);
	assert_true(end.fd >= 0);
	child = fork();
	if (child == 0) {
		bool good = nbar_test(c.g[0], ticket) == -ENETDOWN &&
			    nbar_wait(c.g[0], ticket, NBAR_FOREVER) == -ENETDOWN &&
			    nbar_post(c.g[1], NULL) == -ENETDOWN &&
			    strstr(nbar_error(), "open one in the child") &&
			    c.port[0]->page->version == 0 && /* not the page of the parent */
			    nbar_group_abort(c.g[0]) == 0;

		cluster_end(&c);
		_exit(good ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(poll(&end, 1, 0), 0); /* the child has not shut it down */
	require_ok(nbar_barrier(c.g[1]));
	require_ok(nbar_wait(c.g[0], ticket, NBAR_FOREVER));
	cluster_end(&c);
}

/* --- groups -------------------------------------------------------------------------------- */

static void bad_groups_are_refused(void **state)
{
	const struct nbar_plan plan = { NBAR_PLAN_MAGIC, 0, 1, 0, 0, 0 };
	const struct nbar_group_attr good = { .rank = 0, .size = 2 };
	struct nbar_group_attr a = good;
	struct nbar_group *g;
	struct nbar_port *port;
	struct nbar_endpoint endpoint;

	require_ok(nbar_open("n0", &port));
	a.size = 0;
	expect(nbar_group_open(port, &a, &g, &endpoint), -ERANGE, "size 0");
	a.size = NBAR_SIZE_MAX + 1;
	expect(nbar_group_open(port, &a, &g, &endpoint), -ERANGE, "1048576");
	a = good;
	a.rank = 3;
	expect(nbar_group_open(port, &a, &g, &endpoint), -ERANGE,
	       "rank 3: a group of 2 has ranks 0 to 1");
	a = good;
	a.alg = "";
	expect(nbar_group_open(port, &a, &g, &endpoint), -EINVAL, "1 to 31");
	a.alg = "a name that is one byte too long";
	expect(nbar_group_open(port, &a, &g, &endpoint), -EINVAL, "1 to 31");
	a.alg = "wishful";
	expect(nbar_group_open(port, &a, &g, &endpoint), -EINVAL, "NIC n0: unknown algorithm");
	a.alg = "dissemination:99";
	expect(nbar_group_open(port, &a, &g, &endpoint), -ERANGE, "NIC n0: ");
	a.alg = "custom";
	a.plan = &plan;
	expect(nbar_group_open(port, &a, &g, &endpoint), -EINVAL, "go together");
	a.plan_length = sizeof(plan);
	expect(nbar_group_open(port, &a, &g, &endpoint), -EINVAL, "NIC n0: ");
	a.plan_length = NBAR_MESSAGE_MAX;
	expect(nbar_group_open(port, &a, &g, &endpoint), -EINVAL, "65536");
	setenv("NBAR_WAIT", "now", 1);
	expect(nbar_group_open(port, &good, &g, &endpoint), -EINVAL, "NBAR_WAIT");
	unsetenv("NBAR_WAIT");
	require_ok(nbar_group_open(port, &good, &g, &endpoint));
	nbar_close(port);
}

static void a_bad_endpoint_can_be_mended(void **state)
{
	const uint32_t *ranks;
	struct nbar_endpoint saved;
	struct cluster c;

	cluster_open(&c, 4, 2, "dissemination:3");
	expect(nbar_post(c.g[0], NULL), -ENOTCONN, "nbar_group_connect");
	assert_int_equal(nbar_group_peers(c.g[0], &ranks), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(ranks[i], i + 1);
	saved = c.endpoint[2];
	memset(&c.endpoint[0], 0xff, sizeof(c.endpoint[0])); /* of rank 0: not read */
	memset(&c.endpoint[2], 0, sizeof(c.endpoint[2]));
	expect(nbar_group_connect(c.g[0], c.endpoint), -EPROTO, "rank 2");
	c.endpoint[2] = c.endpoint[1];
	expect(nbar_group_connect(c.g[0], c.endpoint), -EPROTO, "rank 2");
	c.endpoint[2] = saved;
	require_ok(nbar_group_connect(c.g[0], c.endpoint));
	expect(nbar_group_connect(c.g[0], c.endpoint), -EISCONN, "already");
	require_ok(nbar_post(c.g[0], NULL));
	cluster_end(&c);
}

/* More peers than one message has room for. Addresses sent before an error stay valid. */
static void many_peers_connect_in_several_messages(void **state)
{
	enum { SIZE = 1500 };
	static struct nbar_endpoint endpoint[SIZE];
	struct nbar_group_attr attr = { .rank = 1, .size = SIZE, .alg = "signal" };
	const uint32_t *ranks;
	struct nbar_port *port;
	struct nbar_group *g;

	require_ok(nbar_open("n0", &port));
	require_ok(nbar_group_open(port, &attr, &g, &endpoint[1]));
	assert_int_equal(nbar_group_peers(g, &ranks), SIZE - 1);
	assert_int_equal(ranks[0], 0);
	assert_int_equal(ranks[1], 2);
	assert_int_equal(ranks[SIZE - 2], SIZE - 1);
	for (uint32_t r = 0; r < SIZE; r++) {
		endpoint[r] = endpoint[1];
		memcpy(endpoint[r].byte + 12, &r, sizeof(r)); /* the rank, as WIRE.md says */
	}
	endpoint[1000].byte[0] ^= 1;
	expect(nbar_group_connect(g, endpoint), -EPROTO, "endpoint address");
	endpoint[1000].byte[0] ^= 1;
	require_ok(nbar_group_connect(g, endpoint));
	nbar_close(port);
}

static int count_groups(void *arg, const struct nbar_group_info *info)
{
	uint32_t *n = arg;

	assert_int_equal(info->size, 1);
	assert_int_equal(info->life, NBAR_LIFE_CONNECTED);
	return ++*n == 1000 ? 7 : 0;
}

static void monitors_see_all_groups(void **state)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 1 };
	struct nbar_rep_nic_stat stat;
	struct nbar_port *port;
	struct nbar_group *g;
	struct nbar_endpoint endpoint;
	uint32_t n = 0;

	require_ok(nbar_open("n2", &port));
	for (uint32_t i = 0; i < 200; i++) {
		require_ok(nbar_group_open(port, &attr, &g, &endpoint));
		require_ok(nbar_group_connect(g, &endpoint));
		require_ok(nbar_barrier(g));
	}
	require_ok(nbar_nic_stat("n2:5", &stat));
	assert_string_equal(stat.nic, "n2");
	assert_int_equal(stat.nport, 1);
	assert_int_equal(stat.ngroup, 200);
	assert_int_equal(stat.counter[NBAR_COUNTER_barriers_completed], 200);
	require_ok(nbar_nic_groups("n2", count_groups, &n));
	assert_int_equal(n, 200);
	n = 900;
	assert_int_equal(nbar_nic_groups("n2", count_groups, &n), 7);
	nbar_close(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(names_are_checked),
		UNIT(the_run_directory_has_a_rule),
		UNIT(what_is_no_daemon_is_told),
		UNIT(another_user_is_no_nic_of_ours),
		UNIT(a_port_has_one_owner),
		UNIT(a_port_stays_with_the_parent),
		UNIT(bad_groups_are_refused),
		UNIT(a_bad_endpoint_can_be_mended),
		UNIT(many_peers_connect_in_several_messages),
		UNIT(monitors_see_all_groups),
	};

	return run_with_nics(3, tests);
}
