/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostnic_share.c - two hosts of three processes each: one process of each host has an
 * in-process NIC, the others share its member of the group. Barriers, ends of all kinds, and
 * refused clients.
 */
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "members.h"
#include "nbar_hostnic.h"
#include "internal.h"

#define LOCAL 3u /* processes of a host */
#define HOSTS 2u
#define KNOCKS 1000u

static struct hosts {
	struct nbar_process_team procs[HOSTS];
	struct nbar_share share[HOSTS];
	uint32_t attached, posted;
} * hosts;

static uint32_t host, mate; /* of this process */

static struct nbar_process_team *procs(void)
{
	return &hosts->procs[host];
}

static void join_host(const char *nic)
{
	const struct nbar_group_attr attr = { .rank = rank / LOCAL, .size = HOSTS };

	host = rank / LOCAL;
	mate = rank % LOCAL;
	if (mate == 0) {
		want_ok(nbar_open(nic, &port));
		want_ok(nbar_group_open(port, &attr, &group, &shared->endpoint[host]));
		nbar_group_share(group, &hosts->share[host]);
		want(hosts->share[host].socket_id != 0, "a share without a listening socket");
	}
	meet(&shared->opened);
	if (mate == 0) {
		want_ok(nbar_group_connect(group, shared->endpoint));
	} else {
		want_ok(nbar_attach(nic, &hosts->share[host], &port));
		want_ok(nbar_group_attach(port, &hosts->share[host], &group));
	}
	meet(&shared->connected);
}

static int arrive_and_wait(uint32_t ticket, uint64_t timeout_ns)
{
	int rc = nbar_process_team_post(procs(), group, mate, NULL);

	return rc < 0 ? rc : nbar_process_team_wait(procs(), group, ticket, NULL, timeout_ns);
}

/* A checked barrier: no process leaves before all have entered. */
static void barrier(uint32_t i)
{
	__atomic_store_n(&shared->entered[rank], i, __ATOMIC_RELEASE);
	want_ok(arrive_and_wait(i, NBAR_FOREVER));
	for (uint32_t r = 0; r < size; r++) {
		uint32_t e = __atomic_load_n(&shared->entered[r], __ATOMIC_ACQUIRE);

		want(e == i || e == i + 1, "left barrier %u, rank %u was in %u", i, r, e);
	}
}

static void sixes(void (*body)(void), uint32_t killed)
{
	memset(hosts, 0, sizeof(*hosts));
	for (uint32_t h = 0; h < HOSTS; h++)
		assert_int_equal(nbar_process_team_init(&hosts->procs[h], LOCAL), 0);
	members(HOSTS * LOCAL, body, killed);
}

/* --- barriers ------------------------------------------------------------------------------ */

static void many(void)
{
	static const char *const waits[] = { "", "spin", "yield", "block" };

	for (uint32_t w = 0; w < 4; w++) {
		struct nbar_wait_policy policy = { .block = 1 };

		if (w == 0)
			join_host(ANY);
		if (w == 1)
			policy = (struct nbar_wait_policy){ .spin_us = 1000, .yield_us = 1000000 };
		if (w == 2)
			policy = (struct nbar_wait_policy){ .yield_us = UINT32_MAX };
		if (waits[w][0])
			nbar_group_set_wait(group, &policy);
		for (uint32_t i = 1; i <= BARRIERS; i++)
			barrier(w * BARRIERS + i);
	}
	leave();
}

static void barriers_of_two_hosts(void **state)
{
	sixes(many, 0);
}

/* The process with the NIC arrives first and computes. The process that arrives last rings the
 * doorbell. */
static void owner_computes(void)
{
	join_host(QUICK);
	if (mate == 0)
		want_ok(nbar_process_team_post(procs(), group, mate, NULL));
	meet(&hosts->posted);
	if (mate != 0)
		want_ok(arrive_and_wait(1, NBAR_FOREVER));
	meet(&hosts->attached);
	want_ok(nbar_process_team_wait(procs(), group, 1, NULL, 0));
	leave();
}

static void nic_of_a_computing_process_goes_on(void **state)
{
	sixes(owner_computes, 0);
}

/* --- ends ---------------------------------------------------------------------------------- */

/* Runs barriers, beginning with this one. Returns the error of the first that fails. */
static int until_it_fails(uint32_t ticket)
{
	int rc = 0;

	for (uint32_t i = ticket; rc == 0; i++)
		rc = arrive_and_wait(i, NBAR_FOREVER);
	return rc;
}

static void dies(uint32_t who)
{
	join_host(QUICK);
	for (uint32_t i = 1; i <= 10; i++)
		barrier(i);
	if (rank == who) {
		nap_ms(20);
		kill(getpid(), SIGKILL);
	}
}

/* The dead process had no NIC: the NIC of its host informs both hosts. */
static void mate_dies(void)
{
	dies(5);
	want_error(until_it_fails(11), -ECONNRESET, "rank 1");
	nbar_close(port);
}

/* The NIC of the owner ends with the owner. The other processes of this host see that at once; to
 * the other host the NIC is silent. */
static void owner_dies(void)
{
	dies(3);
	if (host == 1)
		want_error(until_it_fails(11), -ENETDOWN, "the process that shared it has ended");
	else
		want_error(until_it_fails(11), -EHOSTUNREACH, "rank 1");
	nbar_close(port);
}

/* The owner closes and exits in good order, but before the others. */
static void owner_leaves(void)
{
	join_host(QUICK);
	barrier(1);
	meet(&hosts->posted);
	if (rank == 3) {
		nbar_close(port);
		exit(0);
	}
	want(until_it_fails(2) < 0, "a barrier without rank 3");
	nbar_close(port);
}

/* The owner closes: the NIC ends, although other processes are still connected to it. */
static void owner_closes(void)
{
	struct nbar_rep_nic_stat stat;

	join_host(QUICK);
	barrier(1);
	meet(&hosts->posted);
	if (rank == 3) {
		nbar_close(port);
		while (nbar_nic_stat(QUICK, &stat) == 0)
			nap_ms(10);
		want_error(nbar_nic_stat(QUICK, &stat), -ENOENT, "in this process");
	} else {
		want(until_it_fails(2) < 0, "a barrier without rank 3");
	}
	meet(&shared->done);
	if (rank != 3)
		nbar_close(port);
}

static void the_end_of_any_process_ends_the_group(void **state)
{
	sixes(owner_closes, 0);
	sixes(mate_dies, 1u << 5);
	sixes(owner_dies, 1u << 3);
	sixes(owner_leaves, 0);
}

/* --- admission --------------------------------------------------------------------------- */

/* A connection, or negative errno. */
static int knock(uint32_t socket_id)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc;

	want(fd >= 0, "no socket");
	snprintf(sun.sun_path, sizeof(sun.sun_path), NBAR_HOSTNIC_DIR "/" NBAR_HOSTNIC_SOCKET,
		 socket_id);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Other processes cannot open a port of this NIC. */
static void ask_for_a_port(void)
{
	struct {
		struct nbar_request head;
		struct nbar_req_port_open body;
	} ask = { .head = { .magic = NBAR_ABI_MAGIC,
			    .version = NBAR_ABI_VERSION,
			    .op = NBAR_OP_PORT_OPEN,
			    .length = sizeof(ask) },
		  .body = { .port = NBAR_PORT_ANY } };
	struct nbar_reply reply;
	int fd = knock(hosts->share[host].socket_id);

	want(send(fd, &ask, sizeof(ask), MSG_NOSIGNAL) == sizeof(ask), "not sent");
	want(recv(fd, &reply, sizeof(reply), 0) == sizeof(reply) && reply.status == -EACCES,
	     "status %d", reply.status);
	close(fd);
}

/* The listening socket gets garbage, or nothing. */
static void garbage(void)
{
	char byte[200];
	int fd[20];

	for (int i = 0; i < 20; i++) {
		fd[i] = knock(hosts->share[host].socket_id);
		want(fd[i] >= 0, "no connection: %d", fd[i]);
		for (size_t k = 0; k < sizeof(byte); k++)
			byte[k] = (char)(37 * i + (int)k);
		if (i % 2)
			want(send(fd[i], byte, (size_t)(10 * i), MSG_NOSIGNAL) > 0, "not sent");
	}
	for (int i = 0; i < 20; i++)
		close(fd[i]);
}

static void strangers(void)
{
	struct nbar_share share;
	struct nbar_port *own, *other;

	join_host(ANY);
	share = hosts->share[host];
	if (mate == 1) {
		garbage();
		ask_for_a_port();
		share.secret[1] ^= 1;
		want_error(nbar_attach(ANY, &share, &other), -ENOENT,
			   "is not shared under this secret");
		share.secret[1] ^= 1;
		share.socket_id = 0xfffff;
		want_error(nbar_attach(ANY, &share, &other), -ECONNREFUSED, "has ended");
		share.socket_id = UINT32_MAX;
		want_error(nbar_attach(ANY, &share, &other), -EINVAL, "socket id");
		share.socket_id = 0;
		want_error(nbar_attach(ANY, &share, &other), -ENOENT, "in this process");
		/* The NIC of the same name in this process is another NIC. */
		nbar_group_share(group, &share);
		want(share.socket_id == hosts->share[host].socket_id,
		     "another listening socket is passed on");
		want_ok(nbar_open(ANY, &own));
		want_ok(nbar_attach(ANY, &share, &other));
		nbar_close(other);
		nbar_close(own);
	}
	if (mate == 2 && geteuid() == 0) {
		want(setresuid(65534, 65534, 65534) == 0, "still root");
		want_error(nbar_attach(ANY, &share, &other), -EACCES, "one user");
		/* Another user does not even get into the queue of connections. */
		for (uint32_t i = 0; i < KNOCKS; i++)
			want(knock(share.socket_id) == -EACCES, "another user is let in");
	}
	meet(&hosts->posted);
	for (uint32_t i = 1; i <= 10; i++)
		barrier(i);
	leave();
}

static void path_of(uint32_t socket_id, char out[64])
{
	snprintf(out, 64, NBAR_HOSTNIC_DIR "/" NBAR_HOSTNIC_SOCKET, socket_id);
}

/* A NIC removes the sockets that a killed process of the same user has left, and no other files. */
static void killed_process_leaves_no_socket(void **state)
{
	const uint32_t no_process = (1u << 22) - 1, bits = (uint32_t)getpid() % 512;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), status;
	char live[64];
	pid_t child;

	path_of(no_process << 9 | bits, sun.sun_path);
	path_of((uint32_t)getpid() << 9 | bits, live);
	unlink(live);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(sun.sun_path, live, sizeof(live));
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(fd, 1), 0);
	path_of(no_process << 9 | bits, sun.sun_path);
	child = fork();
	if (child == 0)
		_exit(nbar_open(ANY, &port) < 0         ? 2
		      : access(sun.sun_path, F_OK) == 0 ? 3
		      : access(live, F_OK) < 0          ? 4
							: 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	unlink(live);
	close(fd);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void only_holders_of_the_share_get_in(void **state)
{
	sixes(strangers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(barriers_of_two_hosts),
		UNIT(nic_of_a_computing_process_goes_on),
		UNIT(the_end_of_any_process_ends_the_group),
		UNIT(killed_process_leaves_no_socket),
		UNIT(only_holders_of_the_share_get_in),
	};

	members_begin();
	hosts = mmap(NULL, sizeof(*hosts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (hosts == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
