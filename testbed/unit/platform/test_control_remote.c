/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_control_remote.c - remote hosts at a daemon with --attach: how they prove themselves, what
 * hostile hosts may send and how many may connect, and ports that get a copy.
 *
 * The library of RDMA devices is the test's own. The hosts connect by a stream socket of this
 * machine, whose messages come at once; the test says which IP address it has.
 */
#include "control_world.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/tcp.h>

#include "nbar_rdma.h"
#include "remote.h"

#define HELLO_MAX 64u /* bytes of the first two requests, at most */

static struct wire_auth auth; /* of the daemon */

static struct {
	const char *no_library; /* what dlerror says; NULL: there is one */
	uint32_t version;
	int listen, start; /* errors */
	int sock;          /* listens */
	struct sockaddr_un name;
	socklen_t name_size;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} peer; /* the address of all hosts */
	uint32_t opened, closed, joined, left, taken;
	int push; /* what push returns */
	void *arg;
	struct nbar_rdma_end its;
	int tcp[TCP_USER_TIMEOUT + 1], alive, room; /* options of the last host's socket */
} fake;

/* --- the library ----------------------------------------------------------------------------- */

static int fake_listen(const char *address, struct nbar_rdma **out, int *sock,
		       char text[NBAR_RDMA_TEXT])
{
	assert_string_equal(address, "192.0.2.1:7100");
	if (fake.listen) {
		snprintf(text, NBAR_RDMA_TEXT, "the text of the library");
		return fake.listen;
	}
	fake.name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	fake.name_size = sizeof(fake.name);
	*sock = fake.sock = __real_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(*sock, (struct sockaddr *)&fake.name, sizeof(sa_family_t)), 0);
	assert_int_equal(__real_listen(*sock, 64), 0);
	assert_int_equal(getsockname(*sock, (struct sockaddr *)&fake.name, &fake.name_size), 0);
	*out = (void *)&fake;
	fake.opened++;
	return 0;
}

static void fake_close(struct nbar_rdma *d)
{
	assert_int_equal(fake.joined, fake.left);
	fake.closed++;
}

static int fake_join(struct nbar_rdma *d, struct nbar_page *page, void *arg, int asks,
		     struct nbar_rdma_link **out, struct nbar_rdma_end *mine,
		     char text[NBAR_RDMA_TEXT])
{
	if (call_fails(EIO)) {
		snprintf(text, NBAR_RDMA_TEXT, "the device is full");
		return -EIO;
	}
	*out = (void *)&fake;
	*mine = (struct nbar_rdma_end){ .qpn = 77, .mtu = 3 };
	fake.arg = arg;
	assert_int_equal(asks, -1);
	fake.joined++;
	return 0;
}

static int fake_start(struct nbar_rdma_link *l, const struct nbar_rdma_end *its)
{
	fake.its = *its;
	return fake.start;
}

static void fake_leave(struct nbar_rdma_link *l)
{
	/* While a connection ends, a pass must not wait. */
	remote_take(world.nicd.remote);
	fake.left++;
}

static int fake_push(struct nbar_rdma_link *l, const void *at, size_t n, uint32_t cell)
{
	return fake.push;
}

static int fake_arrived(struct nbar_rdma_link *l, uint64_t *mark)
{
	return 1;
}

static int fake_descriptor(const struct nbar_rdma *d)
{
	return -1;
}

static void fake_take(struct nbar_rdma *d, void (*heard)(void *arg))
{
	fake.taken++;
	heard(fake.arg);
}

static struct nbar_rdma_ops ops = {
	.listen = fake_listen,
	.close = fake_close,
	.join = fake_join,
	.start = fake_start,
	.leave = fake_leave,
	.push = fake_push,
	.arrived = fake_arrived,
	.descriptor = fake_descriptor,
	.take = fake_take,
};

void *__wrap_dlopen(const char *file, int flags)
{
	assert_string_equal(file, NBAR_RDMA_LIBRARY);
	return fake.no_library ? NULL : &fake;
}

void *__wrap_dlsym(void *library, const char *symbol)
{
	assert_string_equal(symbol, NBAR_RDMA_SYMBOL);
	ops.version = fake.version;
	return &ops;
}

char *__wrap_dlerror(void)
{
	return (char *)(uintptr_t)fake.no_library;
}

int __real_getpeername(int fd, struct sockaddr *name, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *name, socklen_t *size)
{
	assert_true(*size >= sizeof(fake.peer));
	memcpy(name, &fake.peer, sizeof(fake.peer));
	return fake.peer.any.sa_family == AF_UNSPEC ? -1 : 0;
}

/* The sockets are none of TCP. */
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	int *to = level == IPPROTO_TCP && option <= TCP_USER_TIMEOUT ? &fake.tcp[option]
		  : option == SO_SNDBUF                              ? &fake.room
		  : option == SO_KEEPALIVE                           ? &fake.alive
								     : NULL;

	if (to)
		memcpy(to, value, sizeof(*to));
	return 0;
}

/* No hash, but enough to tell keys, sides and nonces apart. */
static int sum(unsigned char *out, const unsigned char *in, unsigned long long n,
	       const unsigned char *key)
{
	memset(out, 0, NBAR_PROOF_SIZE);
	for (uint32_t i = 0; i < n; i++)
		out[i % NBAR_PROOF_SIZE] = (uint8_t)(out[i % NBAR_PROOF_SIZE] * 3 + in[i] + *key);
	return 0;
}

/* --- the world ------------------------------------------------------------------------------- */

static int begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.version = NBAR_RDMA_VERSION;
	fake.peer.in.sin_family = AF_INET;
	inet_pton(AF_INET, "192.0.2.9", &fake.peer.in.sin_addr);
	auth = (struct wire_auth){ .hash = NULL };
	world_begin();
	return 0;
}

static void daemon_begins(void)
{
	assert_int_equal(remote_open(&world.nicd, "192.0.2.1:7100", &auth), 0);
	assert_int_equal(control_begins(), 0);
}

static int begin_daemon(void **state)
{
	begin(state);
	daemon_begins();
	return 0;
}

static int begin_keyed(void **state)
{
	begin(state);
	auth.hash = sum;
	auth.key[0] = 5;
	daemon_begins();
	return 0;
}

static int end_daemon(void **state)
{
	daemon_ends();
	assert_int_equal(fake.closed, 1);
	assert_int_equal(fake.joined, fake.left);
	return 0;
}

static int comes(void)
{
	int fd = __real_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&fake.name, fake.name_size), 0);
	control_runs();
	return fd;
}

/* A host that keeps the thread of remote hosts alive. */
static int stays(void)
{
	int fd = comes();

	users_run();
	return fd;
}

static const struct control_user *remote_user(void)
{
	const struct control_user *u = world.control->user;

	while (u && u->uid != CONTROL_UID_REMOTE)
		u = u->next;
	assert_non_null(u);
	return u;
}

/* How many clients there are. */
static uint32_t clients(void)
{
	return world.control->nic[0].nclient + world.control->nic[1].nclient;
}

static int status_of(int fd, uint16_t op, const void *body, size_t n)
{
	asks(fd, op, body, n);
	all_run();
	return answered(fd);
}

static int stat_of(int fd)
{
	return status_of(fd, NBAR_OP_NIC_STAT, NULL, 0);
}

static struct nbar_rep_link_open hello; /* the last reply */

static int says_hello(int fd, const char *nic)
{
	struct nbar_req_link_open req = { .nonce = { 1, 2, 3 } };
	int status;

	strcpy(req.nic, nic);
	status = status_of(fd, NBAR_OP_LINK_OPEN, &req, sizeof(req));
	memcpy(&hello, reply.byte + sizeof(reply.head), sizeof(hello));
	return status;
}

/* After the hello: the proof of a host with this key. */
static int proves(int fd, uint8_t first)
{
	uint8_t nonce[2 * NBAR_NONCE_SIZE] = { [NBAR_NONCE_SIZE] = 1, 2, 3 };
	struct wire_auth its = { .hash = sum, .key = { first } };
	struct nbar_req_link_prove req;

	memcpy(nonce, hello.nonce, NBAR_NONCE_SIZE);
	wire_auth_prove(&its, "nbar nic", nonce, req.proof);
	assert_int_equal(memcmp(req.proof, hello.proof, sizeof(req.proof)) == 0,
			 first == auth.key[0]);
	wire_auth_prove(&its, "nbar host", nonce, req.proof);
	return status_of(fd, NBAR_OP_LINK_PROVE, &req, sizeof(req));
}

static const struct nbar_req_port_open any_port = { .port = NBAR_PORT_ANY };

static int opens_port(int fd)
{
	return status_of(fd, NBAR_OP_PORT_OPEN, &any_port, sizeof(any_port));
}

static struct nbar_rdma_end end_of_host(void)
{
	struct nbar_rdma_end e = { .qpn = 9, .mtu = 3 };

	nbar_rdma_gid(&fake.peer.any, e.gid);
	return e;
}

static int joins(int fd)
{
	const struct nbar_rdma_end e = end_of_host();

	return status_of(fd, NBAR_OP_PORT_JOIN, &e, sizeof(e));
}

static void says(const char *text)
{
	require(strstr(reply.head.text, text), "it says: %s", reply.head.text);
}

/* --- hosts that behave ----------------------------------------------------------------------- */

static void a_port_with_a_copy(void **state)
{
	struct nbar_rdma_end mine;
	int fd = comes();

	assert_int_equal(says_hello(fd, "n1"), 0);
	assert_int_equal(hello.keyed, 0);
	assert_int_equal(world.control->nic[1].nclient, 1);
	assert_int_equal(world.control->nic[0].nclient, 0);
	assert_int_equal(opens_port(fd), 0);
	assert_int_equal(joins(fd), 0);
	memcpy(&mine, reply.byte + sizeof(reply.head), sizeof(mine));
	assert_int_equal(mine.qpn, 77);
	assert_int_equal(fake.its.qpn, 9);
	assert_non_null(world.nicd.nic[1]->remote[0]);
	remote_take(world.nicd.remote);
	assert_int_equal(fake.taken, 1);
	/* A kick needs no reply. */
	asks(fd, NBAR_OP_KICK, NULL, 0);
	users_run();
	assert_int_equal(answered(fd), NO_REPLY);
	assert_int_equal(stat_of(fd), 0);
	close(fd);
	all_run();
	assert_int_equal(fake.left, 1);
	assert_int_equal(fake.taken, 1); /* the pass did not wait for the end */
	assert_null(world.control->user);
}

static void a_connection_that_breaks(void **state)
{
	uint64_t word = 0;
	int fd = comes();

	assert_int_equal(says_hello(fd, "n0"), 0);
	assert_int_equal(opens_port(fd), 0);
	assert_int_equal(joins(fd), 0);
	assert_true(remote_push(world.nicd.nic[0], 0, &word, sizeof(word), UINT32_MAX));
	fake.push = -EAGAIN;
	assert_false(remote_push(world.nicd.nic[0], 0, &word, sizeof(word), UINT32_MAX));
	assert_int_equal(stat_of(fd), 0);
	fake.push = -ENOTCONN;
	assert_false(remote_push(world.nicd.nic[0], 0, &word, sizeof(word), UINT32_MAX));
	assert_false(remote_push(world.nicd.nic[0], 0, &word, sizeof(word), UINT32_MAX));
	all_run();
	assert_int_equal(answered(fd), ENDED);
	assert_int_equal(fake.left, 1);
	close(fd);
}

static void proofs(void **state)
{
	int fd = comes();

	assert_int_equal(says_hello(fd, "n0"), 0);
	assert_int_equal(hello.keyed, 1);
	assert_int_equal(proves(fd, 5), 0);
	assert_int_equal(opens_port(fd), 0);
	/* Once is enough, and does not take the port away. */
	assert_int_equal(proves(fd, 5), -NBAR_EALREADY);
	assert_int_equal(says_hello(fd, "n1"), -NBAR_EALREADY);
	assert_int_equal(joins(fd), 0);
	close(fd);
}

static void what_a_remote_host_cannot_do(void **state)
{
	const struct nbar_req_group_events events = { 0 };
	int fd = comes();

	assert_int_equal(says_hello(fd, "n0"), 0);
	assert_int_equal(status_of(fd, NBAR_OP_GROUP_EVENTS, &events, sizeof(events)),
			 -NBAR_EOPNOTSUPP);
	assert_int_equal(opens_port(fd), 0);
	close(fd);
}

/* Each with a connection of its own. They end with the port. */
static void processes_of_a_remote_host_share_a_port(void **state)
{
	int owner[2], attached[2];

	for (int i = 0; i < 2; i++) {
		struct nbar_rep_port_open port;
		struct nbar_req_port_attach req = { 0 };

		owner[i] = comes();
		attached[i] = comes();
		assert_int_equal(says_hello(owner[i], "n0"), 0);
		assert_int_equal(says_hello(attached[i], "n0"), 0);
		assert_int_equal(opens_port(owner[i]), 0);
		memcpy(&port, reply.byte + sizeof(reply.head), sizeof(port));
		assert_int_equal(joins(owner[i]), 0);
		req.port = port.port;
		assert_int_equal(status_of(attached[i], NBAR_OP_PORT_ATTACH, &req, sizeof(req)),
				 -NBAR_ENOENT);
		memcpy(req.secret, port.secret, sizeof(req.secret));
		assert_int_equal(status_of(attached[i], NBAR_OP_PORT_ATTACH, &req, sizeof(req)), 0);
		assert_int_equal(joins(attached[i]), -NBAR_EIO);
	}
	close(attached[1]);
	all_run();
	assert_int_equal(stat_of(owner[1]), 0);
	close(owner[0]);
	all_run();
	assert_int_equal(answered(attached[0]), ENDED);
	assert_int_equal(stat_of(owner[1]), 0);
	close(attached[0]);
	close(owner[1]);
}

/* A process of this machine learns that a remote host has the port. */
static void a_remote_host_has_no_process_id(void **state)
{
	const struct nbar_req_port_open first = { .port = 0 };
	int fd = comes(), local = connects(0);

	assert_int_equal(says_hello(fd, "n0"), 0);
	assert_int_equal(opens_port(fd), 0);
	assert_int_equal(status_of(local, NBAR_OP_PORT_OPEN, &first, sizeof(first)), -NBAR_EBUSY);
	says("in use by a remote host, or");
	close(fd);
	close(local);
}

/* A host that falls silent counts as dead after 8 s: TCP asks it each second. A reply is sent at
 * once and whole. */
static void silence(void **state)
{
	close(comes());
	assert_int_equal(fake.alive, 1);
	assert_int_equal(fake.tcp[TCP_KEEPIDLE], 1);
	assert_int_equal(fake.tcp[TCP_KEEPINTVL], 1);
	assert_int_equal(fake.tcp[TCP_KEEPCNT], 8);
	assert_int_equal(fake.tcp[TCP_USER_TIMEOUT], 8000);
	assert_int_equal(fake.tcp[TCP_NODELAY], 1);
	assert_true(fake.room >= (int)NBAR_MESSAGE_MAX);
}

/* --- hosts that do not ----------------------------------------------------------------------- */

/* Whoever fails the hello hears why, and is gone. */
static void one_try(void **state)
{
	static const struct {
		uint16_t op;
		uint32_t n;
		bool named;
		int status;
	} row[] = {
		{ NBAR_OP_NIC_STAT, 0, false, -NBAR_EPROTO },
		{ NBAR_OP_KICK, 0, false, -NBAR_EPROTO },
		{ NBAR_OP_LINK_PROVE, sizeof(struct nbar_req_link_prove), false, -NBAR_EPROTO },
		{ NBAR_OP_LINK_OPEN, sizeof(struct nbar_req_link_open) - 1, false, -NBAR_EPROTO },
		{ NBAR_OP_LINK_OPEN, sizeof(struct nbar_req_link_open), false, -NBAR_ENOENT },
		{ NBAR_OP_NIC_STAT, 0, true, -NBAR_EACCES },
		{ NBAR_OP_KICK, 0, true, -NBAR_EACCES },
		{ NBAR_OP_PORT_OPEN, sizeof(any_port), true, -NBAR_EACCES },
		{ NBAR_OP_PORT_JOIN, sizeof(struct nbar_rdma_end), true, -NBAR_EACCES },
		{ NBAR_OP_LINK_OPEN, sizeof(struct nbar_req_link_open), true, -NBAR_EACCES },
		{ NBAR_OP_LINK_PROVE, sizeof(struct nbar_req_link_prove) - 1, true, -NBAR_EPROTO },
		{ NBAR_OP_LINK_PROVE, sizeof(struct nbar_req_link_prove), true, -NBAR_EACCES },
	};
	static const uint8_t body[64] = "n9";
	int bell = world.nicd.mailbox.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), fd;
	int kept = stays();
	uint64_t n;

	for (uint32_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fd = comes();
		if (row[i].named)
			assert_int_equal(says_hello(fd, "n0"), 0);
		require(status_of(fd, row[i].op, body, row[i].n) == row[i].status,
			"row %u: status %d, %s", i, reply.head.status, reply.head.text);
		assert_true(reply.head.op == row[i].op && reply.head.text[0]);
		assert_int_equal(stat_of(fd), ENDED);
		close(fd);
	}
	/* With another key. */
	fd = comes();
	assert_int_equal(says_hello(fd, "n0"), 0);
	assert_int_equal(proves(fd, 6), -NBAR_EACCES);
	says("another key");
	assert_int_equal(stat_of(fd), ENDED);
	close(fd);
	assert_int_equal(read(bell, &n, sizeof(n)), -1); /* all this wakes no polling thread */
	fd = comes();
	assert_int_equal(says_hello(fd, "n0"), 0);
	assert_int_equal(proves(fd, 5), 0);
	assert_int_equal(stat_of(fd), 0);
	assert_int_equal(read(bell, &n, sizeof(n)), sizeof(n));
	close(fd);
	close(kept);
}

static void versions(void **state)
{
	struct {
		struct nbar_request head;
		struct nbar_req_link_open body;
	} m = { { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_LINK_OPEN, sizeof(m), 1 },
		{ .nic = "n0" } };
	int kept = stays();

	for (uint32_t i = 0; i < 3; i++) {
		int fd = comes();

		m.head.magic = NBAR_ABI_MAGIC + (i == 0);
		m.head.version = NBAR_ABI_VERSION + (i == 1);
		memset(m.body.nic, i == 2 ? 'n' : 0, sizeof(m.body.nic));
		assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
		users_run();
		assert_int_equal(answered(fd), -NBAR_EPROTO);
		says("install the same nbar");
		close(fd);
	}
	close(kept);
}

/* The bytes of a message may come one by one, and may never end. */
static void parts_of_messages(void **state)
{
	struct {
		struct nbar_request head;
		struct nbar_req_link_open body;
	} m = { { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_LINK_OPEN, sizeof(m), 1 },
		{ .nic = "n0" } };
	struct nbar_request head[2] = {
		{ NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_NIC_STAT, sizeof(*head), 7 },
		{ NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_NIC_STAT, sizeof(*head), 8 },
	};
	int kept = stays(), fd = comes();

	for (uint32_t i = 0; i < sizeof(m); i++) {
		assert_int_equal(answered(fd), NO_REPLY);
		assert_int_equal(send(fd, (const char *)&m + i, 1, 0), 1);
		users_run();
	}
	assert_int_equal(answered(fd), 0);
	/* Two at once, and the rest of the second later. */
	assert_int_equal(send(fd, head, sizeof(head) - 1, 0), sizeof(head) - 1);
	users_run();
	assert_int_equal(answered(fd), 0);
	assert_int_equal(reply.head.seq, 7);
	assert_int_equal(send(fd, (const char *)head + sizeof(head) - 1, 1, 0), 1);
	users_run();
	assert_int_equal(answered(fd), 0);
	assert_int_equal(reply.head.seq, 8);
	close(fd);
	/* The host ends within each part of its hello, or of a later message. */
	for (uint32_t i = 0; i < sizeof(m); i++) {
		fd = comes();
		assert_int_equal(send(fd, &m, i, 0), i);
		users_run();
		close(fd);
		users_run();
		assert_int_equal(clients(), 1);
	}
	fd = comes();
	assert_int_equal(says_hello(fd, "n1"), 0);
	assert_int_equal(opens_port(fd), 0);
	assert_int_equal(joins(fd), 0);
	assert_int_equal(send(fd, head, 9, 0), 9);
	close(fd);
	users_run();
	assert_int_equal(fake.left, 1);
	assert_int_equal(clients(), 1);
	close(kept);
}

/* A length that cannot be ends the connection, before a byte of the body has come. */
static void lengths(void **state)
{
	static const struct {
		uint32_t length;
		bool proven, ends;
	} row[] = {
		{ 0, false, true },
		{ sizeof(struct nbar_request) - 1, false, true },
		{ HELLO_MAX, false, false },
		{ HELLO_MAX + 1, false, true },
		{ NBAR_MESSAGE_MAX, false, true },
		{ UINT32_MAX, false, true },
		{ 0, true, true },
		{ sizeof(struct nbar_request) - 1, true, true },
		{ HELLO_MAX + 1, true, false },
		{ NBAR_MESSAGE_MAX, true, false },
		{ NBAR_MESSAGE_MAX + 1, true, true },
		{ UINT32_MAX, true, true },
	};
	struct nbar_request head = { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_LINK_OPEN, 0, 1 };
	int kept = stays();

	assert_int_equal(HELLO_MAX, sizeof(head) + sizeof(struct nbar_req_link_open));
	for (uint32_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		int fd = comes();

		if (row[i].proven)
			assert_int_equal(says_hello(fd, "n0"), 0);
		head.length = row[i].length;
		assert_int_equal(send(fd, &head, sizeof(head), 0), sizeof(head));
		users_run();
		require(answered(fd) == (row[i].ends ? ENDED : NO_REPLY), "row %u", i);
		close(fd);
		users_run();
	}
	close(kept);
}

/* What a request says of its own contents is not believed. */
static void counts(void **state)
{
	struct nbar_req_group_connect connect = { .nendpoint = UINT32_MAX };
	struct nbar_req_group_open open = { .alg = "auto", .size = UINT32_MAX };
	int fd = comes();

	assert_int_equal(says_hello(fd, "n0"), 0);
	assert_int_equal(opens_port(fd), 0);
	assert_int_equal(joins(fd), 0);
	assert_true(status_of(fd, NBAR_OP_GROUP_OPEN, &open, sizeof(open)) < 0);
	open.size = 2;
	assert_int_equal(status_of(fd, NBAR_OP_GROUP_OPEN, &open, sizeof(open)), 0);
	connect.cell = reply.group.group.cell;
	for (uint32_t i = 0; i < 32; i++) {
		connect.nendpoint = UINT32_MAX >> i;
		assert_int_equal(status_of(fd, NBAR_OP_GROUP_CONNECT, &connect, sizeof(connect)),
				 -NBAR_EBADMSG);
	}
	assert_int_equal(stat_of(fd), 0);
	close(fd);
}

static void ports_join_once_and_from_their_machine(void **state)
{
	struct nbar_rdma_end e;
	int fd = comes();

	assert_int_equal(says_hello(fd, "n0"), 0);
	assert_int_equal(joins(fd), -NBAR_EIO); /* no port is open */
	assert_int_equal(opens_port(fd), 0);
	e = end_of_host();
	assert_int_equal(status_of(fd, NBAR_OP_PORT_JOIN, &e, sizeof(e) - 1), -NBAR_EBADMSG);
	for (uint32_t i = 0; i < 16; i++) { /* another machine */
		e = end_of_host();
		e.gid[i]++;
		assert_int_equal(status_of(fd, NBAR_OP_PORT_JOIN, &e, sizeof(e)), -NBAR_EIO);
		says("another address");
	}
	fake.peer.any.sa_family = AF_UNSPEC; /* the connection has just ended */
	assert_int_equal(joins(fd), -NBAR_EIO);
	assert_int_equal(fake.joined, 0);
	fake.peer.in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	inet_pton(AF_INET6, "2001:db8::9", &fake.peer.in6.sin6_addr);
	fake.start = -EINVAL;
	assert_int_equal(joins(fd), -NBAR_EIO);
	says("the device refuses");
	assert_true(fake.joined == 1 && fake.left == 1);
	fake.start = 0;
	assert_int_equal(joins(fd), 0);
	assert_int_equal(joins(fd), -NBAR_EIO);
	says("cannot have a page now");
	assert_int_equal(fake.joined, 2);
	close(fd);
}

/* --- room ------------------------------------------------------------------------------------ */

/* Silent hosts take no other host's place, nor that of a process of this machine. */
static void silent_hosts(void **state)
{
	int good[3], fd[40], local = connects(0);

	world.limit.rlim_cur = world.control->fds_own + 2 * 12; /* 10 connections beside a thread */
	good[0] = comes();                                      /* has a port */
	assert_int_equal(says_hello(good[0], "n0"), 0);
	assert_int_equal(proves(good[0], 5), 0);
	assert_int_equal(opens_port(good[0]), 0);
	good[1] = comes(); /* is idle, but proven, and heard of first */
	assert_int_equal(says_hello(good[1], "n1"), 0);
	assert_int_equal(proves(good[1], 5), 0);
	for (uint32_t i = 0; i < 40; i++) {
		fd[i] = comes();
		if (i % 3 == 0)
			assert_int_equal(says_hello(fd[i], i % 2 ? "n0" : "n1"), 0);
		users_run();
	}
	assert_true(world.control->nic[0].nclient + world.control->nic[1].nclient <= 10);
	good[2] = comes();
	assert_int_equal(says_hello(good[2], "n0"), 0);
	users_run();
	assert_int_equal(proves(good[2], 5), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(stat_of(good[i]), 0);
	assert_int_equal(stat_of(local), 0);
	for (uint32_t i = 1; i < 3; i++) {
		assert_int_equal(control_user_fds_left(remote_user()), 0);
		assert_int_equal(opens_port(good[i]), 0);
		assert_int_equal(joins(good[i]), 0);
	}
	all_run();
	/* The oldest have gone. */
	assert_int_equal(stat_of(fd[0]), ENDED);
	assert_int_equal(answered(fd[39]), NO_REPLY);
	for (uint32_t i = 0; i < 40; i++)
		close(fd[i]);
	for (uint32_t i = 0; i < 3; i++)
		close(good[i]);
	close(local);
}

/* The daemon has no descriptor: silent hosts go, then new ones are turned away. */
static void no_descriptors(void **state)
{
	int idle = connects(0), silent = -1, fd;

	assert_int_equal(stat_of(idle), 0);
	assert_int_equal(stat_of(idle), 0);
	silent = comes();
	world.fail_at = world.calls + 1;
	fd = comes();
	all_run();
	assert_int_equal(answered(silent), ENDED);
	assert_int_equal(stat_of(idle), 0);
	assert_int_equal(says_hello(fd, "n0"), 0);
	assert_int_equal(proves(fd, 5), 0);
	assert_int_equal(opens_port(fd), 0);
	close(silent);
	close(idle);
	users_run();
	world.fail_at = world.calls + 1;
	silent = comes();
	all_run();
	assert_int_equal(answered(silent), -NBAR_EMFILE);
	says("no file descriptors left");
	assert_int_equal(stat_of(fd), 0);
	close(silent);
	close(fd);
}

/* A host that goes to its NIC needs room there. */
static void a_nic_with_many_clients(void **state)
{
	int idle = connects(1), fd;

	assert_int_equal(stat_of(idle), 0);
	world.control->nic[1].nclient = CONTROL_CLIENTS_MAX;
	fd = comes();
	assert_int_equal(says_hello(fd, "n1"), 0);
	assert_int_equal(world.control->nic[1].nclient, CONTROL_CLIENTS_MAX);
	world.control->nic[1].nclient = 1;
	users_run();
	assert_int_equal(answered(idle), ENDED);
	assert_int_equal(proves(fd, 5), 0);
	close(fd);
	close(idle);
}

/* --- errors ---------------------------------------------------------------------------------- */

static int opens(void)
{
	return remote_open(&world.nicd, "192.0.2.1:7100", &auth);
}

static void daemons_that_cannot_attach(void **state)
{
	fake.no_library = "it is not there";
	assert_int_equal(opens(), -EINVAL);
	assert_non_null(strstr(logged, "it is not there; install"));
	fake.no_library = NULL;
	fake.version++;
	assert_int_equal(opens(), -EINVAL);
	assert_non_null(strstr(logged, "is of another version; install"));
	fake.version--;
	fake.listen = -ENODEV;
	assert_int_equal(opens(), -ENODEV);
	assert_non_null(strstr(logged, "--attach 192.0.2.1:7100: the text of the library"));
	fake.listen = 0;
	world.running = true;
	world.fail_at = world.calls + 1;
	assert_int_equal(opens(), -ENOMEM);
	world.running = false;
	assert_non_null(strstr(logged, "--attach 192.0.2.1:7100: no memory"));
	assert_int_equal(fake.opened, 0);
	world_end();
}

/* Each call fails once. What is left behind, the end of the daemon finds. */
static void calls_that_fail(void **state)
{
	int kept = stays();
	uint32_t done = 0;

	for (uint32_t n = 1; done < 3; n++) {
		int fd = comes();

		world.fail_at = world.calls + n;
		done = !says_hello(fd, "n0") && !proves(fd, 5);
		done += done && !opens_port(fd);
		done += done == 2 && !joins(fd);
		world.fail_at = 0;
		close(fd);
		all_run();
		assert_true(n < 100);
	}
	for (uint32_t n = 1; n <= 4; n++) { /* while it arrives */
		int fd;

		world.fail_at = world.calls + n;
		fd = comes();
		world.fail_at = 0;
		users_run();
		close(fd);
		all_run();
	}
	close(kept);
}

#define DAEMON(name) UNIT_IN(name, begin_daemon, end_daemon)
#define KEYED(name) UNIT_IN(name, begin_keyed, end_daemon)

UNIT_MAIN(NULL, NULL, DAEMON(a_port_with_a_copy), DAEMON(a_connection_that_breaks), KEYED(proofs),
	  DAEMON(silence), DAEMON(what_a_remote_host_cannot_do),
	  DAEMON(processes_of_a_remote_host_share_a_port), DAEMON(a_remote_host_has_no_process_id),
	  KEYED(one_try), KEYED(versions), DAEMON(parts_of_messages), DAEMON(lengths),
	  DAEMON(counts), DAEMON(ports_join_once_and_from_their_machine), KEYED(silent_hosts),
	  KEYED(no_descriptors), KEYED(a_nic_with_many_clients),
	  cmocka_unit_test_setup(daemons_that_cannot_attach, begin), KEYED(calls_that_fail))
