/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_control_client.c - clients of a daemon and of an in-process NIC: kicks, replies with
 * descriptors, clients that do not read, who is dropped for whom; private sockets and their names.
 */
#include "control_world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "nbar_hostnic.h"

static const uint32_t *draws; /* what getrandom gives, if this is not NULL */

ssize_t __real_getrandom(void *out, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags)
{
	if (!draws)
		return __real_getrandom(out, size, flags);
	if (*draws == UINT32_MAX)
		return -1;
	memcpy(out, draws++, sizeof(*draws));
	return (ssize_t)size;
}

static int begin(void **state)
{
	draws = NULL;
	world_begin();
	return 0;
}

static int begin_daemon(void **state)
{
	begin(state);
	assert_int_equal(control_begins(), 0);
	return 0;
}

static int end_daemon(void **state)
{
	daemon_ends();
	return 0;
}

static int comes(uint32_t nic)
{
	int fd = connects(nic);

	control_runs();
	return fd;
}

/* The status of the reply to a request, or NO_REPLY or ENDED. */
static int status_of(int fd, uint16_t op, const void *body, size_t n)
{
	asks(fd, op, body, n);
	all_run();
	return answered(fd);
}

static const struct nbar_req_port_open any_port = { .port = NBAR_PORT_ANY };

static int opens_port(int fd)
{
	return status_of(fd, NBAR_OP_PORT_OPEN, &any_port, sizeof(any_port));
}

static uint32_t opens_group(int fd)
{
	const struct nbar_req_group_open open = { .alg = "auto", .size = 2 };

	assert_int_equal(status_of(fd, NBAR_OP_GROUP_OPEN, &open, sizeof(open)), 0);
	return reply.group.group.cell;
}

static int stat_of(int fd)
{
	return status_of(fd, NBAR_OP_NIC_STAT, NULL, 0);
}

/* --- requests ------------------------------------------------------------------------------ */

/* Each message rings, and a kick has no reply. What is no kick has one. */
static void kicks(void **state)
{
	static const struct {
		struct nbar_request request;
		uint32_t n;
		int status;
	} row[] = {
		{ { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_KICK, 16, 1 }, 16, NO_REPLY },
		{ { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_NIC_STAT, 16, 1 }, 16, 0 },
		{ { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_KICK, 20, 1 }, 20, -NBAR_EINVAL },
		{ { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_KICK, 20, 1 }, 16, -NBAR_EINVAL },
		{ { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_KICK, 16, 1 }, 20, -NBAR_EINVAL },
		{ { NBAR_ABI_MAGIC + 1, NBAR_ABI_VERSION, NBAR_OP_KICK, 16, 1 }, 16, -NBAR_EPROTO },
		{ { NBAR_ABI_MAGIC, NBAR_ABI_VERSION + 1, NBAR_OP_KICK, 16, 1 }, 16, -NBAR_EPROTO },
		{ { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_KICK, 16, 1 }, 15, -NBAR_EINVAL },
	};
	int fd = comes(1), bell = world.nicd.mailbox.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint8_t byte[32] = { 0 };
	uint64_t n;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		int status;

		memcpy(byte, &row[i].request, sizeof(row[i].request));
		assert_int_equal(send(fd, byte, row[i].n, 0), row[i].n);
		users_run();
		assert_int_equal(read(bell, &n, sizeof(n)), sizeof(n));
		status = answered(fd);
		require(row[i].status < 0 ? status < 0 : status == row[i].status,
			"row %zu: status %d, %s", i, status, reply.head.text);
	}
	close(fd);
	users_run();
	assert_int_equal(read(bell, &n, sizeof(n)), -1); /* an end is no message */
}

static void one_descriptor_at_a_time(void **state)
{
	int fd = comes(0), got;
	const struct nbar_req_group_events events = {
		.cell = opens_port(fd) == 0 ? opens_group(fd) : 9,
	};
	const struct nbar_req_port_attach attach = { .port = 1 };
	const struct {
		uint16_t op;
		const void *body;
		size_t n;
	} row[] = { { NBAR_OP_PORT_OPEN, &any_port, sizeof(any_port) },
		    { NBAR_OP_GROUP_EVENTS, &events, sizeof(events) },
		    { NBAR_OP_PORT_ATTACH, &attach, sizeof(attach) } };

	for (uint32_t i = 0; i < 3; i++) {
		uint32_t seq;

		asks(fd, NBAR_OP_GROUP_EVENTS, &events, sizeof(events));
		seq = asks(fd, NBAR_OP_NIC_STAT, NULL, 0);
		asks(fd, row[i].op, row[i].body, row[i].n);
		users_run();
		assert_int_equal(answered_fd(fd, &got), 0);
		assert_true(got >= 0);
		close(got);
		assert_int_equal(answered_fd(fd, &got), 0);
		assert_true(got == -1 && reply.head.seq == seq);
		assert_int_equal(answered_fd(fd, &got), -NBAR_EINVAL);
		assert_int_equal(got, -1);
		assert_string_equal(reply.head.text,
				    "an earlier reply with a descriptor is unread on this "
				    "connection; read it before the next such request");
		assert_int_equal(reply.head.seq, seq + 1);
		assert_int_equal(reply.head.op, row[i].op);
	}
	assert_int_equal(world.nicd.nic[0]->device.nopen, 1);
	close(fd);
}

/* The replies that nobody reads fill the socket: then the client is gone, and so is its port. */
static void a_client_that_does_not_read(void **state)
{
	int fd = comes(0);

	assert_int_equal(opens_port(fd), 0);
	for (uint32_t i = 0; i < 10000 && world.control->nic[0].nclient > 0; i++) {
		asks(fd, NBAR_OP_NIC_STAT, NULL, 0);
		users_run();
	}
	assert_int_equal(world.control->nic[0].nclient, 0);
	assert_int_equal(world.nicd.nic[0]->device.nopen, 0);
	assert_null(world.control->user);
	close(fd);
}

/* A message of the size of the buffer is whole; of one byte more, truncated. */
static void long_messages(void **state)
{
	static uint8_t byte[NBAR_MESSAGE_MAX + 1];
	struct nbar_request head = { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_NIC_STAT,
				     NBAR_MESSAGE_MAX, 9 };
	char text[2][236];
	int fd = comes(0);

	for (uint32_t i = 0; i < 2; i++) {
		head.length = NBAR_MESSAGE_MAX + i;
		memcpy(byte, &head, sizeof(head));
		assert_int_equal(send(fd, byte, head.length, 0), head.length);
		users_run();
		assert_true(answered(fd) < 0);
		strcpy(text[i], reply.head.text);
	}
	assert_string_not_equal(text[0], text[1]);
	assert_int_equal(stat_of(fd), 0);
	close(fd);
}

/* A request takes one turn, whatever it asks for; and so does the end of a client. */
static void turns(void **state)
{
	int fd = comes(0), other = comes(1);
	uint64_t turn = world.control->turn;

	assert_int_equal(stat_of(fd), 0);
	assert_int_equal(opens_port(fd), 0);
	/* The control thread was interrupted twice. */
	assert_int_equal(world.control->turn - turn, 2 + 2 * 2);
	close(fd);
	close(other);
}

/* --- descriptors --------------------------------------------------------------------------- */

static void descriptors_are_counted(void **state)
{
	struct nbar_req_group_events events;
	int fd = comes(0), other;
	const struct control_user *u = world.control->user;

	assert_int_equal(u->nfd, 3);
	assert_int_equal(opens_port(fd), 0);
	assert_int_equal(u->nfd, 4);
	for (uint32_t i = 1; i < 4; i++) {
		events = (struct nbar_req_group_events){ .cell = opens_group(fd) };
		assert_int_equal(status_of(fd, NBAR_OP_GROUP_EVENTS, &events, sizeof(events)), 0);
		assert_int_equal(u->nfd, 4 + i);
	}
	assert_int_equal(status_of(fd, NBAR_OP_GROUP_CLOSE, &events, sizeof(events)), 0);
	assert_int_equal(u->nfd, 6);
	world.uid++;
	other = comes(0);
	world.limit.rlim_cur = 2 * (4 + u->nfd) + world.control->fds_own - 8; /* all are taken */
	events.cell = opens_group(fd);
	assert_int_equal(status_of(fd, NBAR_OP_GROUP_EVENTS, &events, sizeof(events)),
			 -NBAR_EMFILE);
	assert_int_equal(u->nfd, 6);
	assert_int_equal(world.naps, 0);
	assert_int_equal(stat_of(other), 0); /* a user who already has its share gets nothing */
	world.limit.rlim_cur += 2;           /* one is left */
	assert_int_equal(status_of(fd, NBAR_OP_GROUP_EVENTS, &events, sizeof(events)), 0);
	close(fd);
	close(other);
}

/* Without a descriptor for the page, a request waits until idle clients have been closed. */
static void idle_clients_make_room(void **state)
{
	static const struct {
		uint32_t idle, fails, naps;
		int status;
	} row[] = {
		{ 2, 0, 0, 0 },
		{ 2, 2, 2, 0 },
		{ 2, 3, 2, -NBAR_EMFILE },
		{ 8, 5, 5, 0 },
		{ 8, 6, 5, -NBAR_EMFILE }, /* not for ever */
	};
	int fd[9];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		world.naps = 0;
		world.napped_ns = 0;
		world.uid = 7;
		fd[8] = comes(0);
		world.uid = 8;
		for (uint32_t n = 0; n < row[i].idle; n++)
			fd[n] = comes(n % 2);
		world.memfds_fail = row[i].fails;
		assert_int_equal(opens_port(fd[8]), row[i].status);
		world.memfds_fail = 0;
		assert_int_equal(world.naps, row[i].naps);
		assert_int_equal(world.napped_ns, row[i].naps * UINT64_C(2000000));
		for (uint32_t n = 0; n < row[i].idle; n++) {
			/* The oldest first. */
			assert_int_equal(stat_of(fd[n]), n < row[i].naps ? ENDED : 0);
			close(fd[n]);
		}
		close(fd[8]);
		all_run();
	}
}

static void drops_the_asker(void)
{
	control_client_drop(world.control->nic[0].client);
}

static void the_daemon_ends(void)
{
	world.control->over = true;
}

/* While the request waits, its client is dropped, or the daemon ends. */
static void a_request_that_waits_is_not_alone(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		int fd = comes(0), idle = comes(1);

		world.memfds_fail = 9;
		world.at_nap = i == 0 ? drops_the_asker : the_daemon_ends;
		opens_port(fd);
		assert_int_equal(world.memfds_fail, 8);
		world.memfds_fail = 0;
		world.at_nap = NULL;
		close(fd);
		close(idle);
		all_run();
	}
}

/* A descriptor that cannot be sent: the client learns it, has no port, and may try again. */
static void a_descriptor_that_cannot_be_sent(void **state)
{
	static const int errors[] = { ETOOMANYREFS, ENOBUFS, EAGAIN, EPIPE, ECONNRESET };
	const struct nbnic_device *d = &world.nicd.nic[0]->device;
	struct nbar_req_group_events events = { 0 };

	for (uint32_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		int fd = comes(0), got;
		const struct control_user *u = world.control->user;
		bool ends = i >= 2; /* the client does not read, or has gone */
		uint32_t seq, fds = entries("/proc/self/fd");

		world.send_fails = 1;
		world.send_error = errors[i];
		seq = asks(fd, NBAR_OP_PORT_OPEN, &any_port, sizeof(any_port));
		users_run();
		assert_int_equal(answered_fd(fd, &got), ends ? ENDED : -NBAR_EMFILE);
		assert_int_equal(got, -1);
		assert_int_equal(d->nopen, 0);
		if (!ends) {
			assert_int_equal(reply.head.seq, seq);
			assert_int_equal(reply.head.op, NBAR_OP_PORT_OPEN);
			assert_string_equal(
				reply.head.text,
				"the daemon cannot send a descriptor now: too many are open "
				"or unread; try again, or restart it with a higher limit "
				"(ulimit -n)");
			assert_int_equal(entries("/proc/self/fd"), fds);
			assert_int_equal(u->nfd, 3);
			assert_int_equal(opens_port(fd), 0);
			/* A socket for poll() leaves the port alone. */
			events.cell = opens_group(fd);
			world.send_fails = 1;
			assert_int_equal(
				status_of(fd, NBAR_OP_GROUP_EVENTS, &events, sizeof(events)),
				-NBAR_EMFILE);
			assert_int_equal(d->nopen, 1);
			assert_int_equal(
				status_of(fd, NBAR_OP_GROUP_EVENTS, &events, sizeof(events)), 0);
		}
		close(fd);
		users_run();
	}
	assert_null(world.control->user);
}

static int of_wire[2]; /* what the wire has for the hosts of a port */

static bool wire_fds(const struct wire_base *base, uint32_t port, int fd[2])
{
	memcpy(fd, of_wire, sizeof(of_wire));
	return port == 0; /* of other ports: none */
}

/* A wire with descriptors of its own for the ports of NIC 0. */
static void wire_gives_fds(void)
{
	static struct wire_ops ops;

	ops = *world.wire[0].ops;
	ops.port_fds = wire_fds;
	world.wire[0].ops = &ops;
	for (uint32_t i = 0; i < 2; i++)
		of_wire[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static void wire_fds_are_whole(void)
{
	uint64_t n;

	for (uint32_t i = 0; i < 2; i++) {
		write_to(of_wire[i]);
		assert_int_equal(read(of_wire[i], &n, sizeof(n)), sizeof(n));
		close(of_wire[i]);
	}
}

/* Owners and attached clients get copies: of the page, and of what the wire has. */
static void ports_with_descriptors_of_the_wire(void **state)
{
	struct nbar_req_port_attach attach = { 0 };
	int fd = comes(0), other = comes(0), third = comes(0), got[DAEMON_FDS_MAX];
	const struct control_user *u = world.control->user;
	uint32_t fds = entries("/proc/self/fd");
	uint64_t n;

	wire_gives_fds();
	assert_int_equal(u->nfd, 5); /* three clients and a thread with two */
	for (uint32_t t = 0; t < 2; t++) {
		if (t == 0)
			asks(fd, NBAR_OP_PORT_OPEN, &any_port, sizeof(any_port));
		else
			asks(other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach));
		all_run();
		assert_int_equal(answered_fds(t == 0 ? fd : other, got), 0);
		attach.port = reply.open.port.port;
		memcpy(attach.secret, reply.open.port.secret, sizeof(attach.secret));
		assert_true(lseek(got[0], 0, SEEK_END) == sizeof(struct nbar_page));
		for (uint32_t i = 0; i < 2; i++) {
			write_to(got[1 + i]);
			assert_int_equal(read(of_wire[i], &n, sizeof(n)), sizeof(n));
		}
		for (uint32_t i = 0; i < 3; i++)
			close(got[i]);
		assert_int_equal(u->nfd, 8); /* an owner counts */
	}
	assert_int_equal(opens_port(third), 0);
	assert_int_equal(u->nfd, 9);
	/* The NIC has a page of each port, and of the copies none. */
	assert_int_equal(entries("/proc/self/fd"), fds + 2 + 2);
	close(fd);
	close(other);
	close(third);
	users_run();
	wire_fds_are_whole();
}

/* A port is refused if the user's share of descriptors does not suffice for it. */
static void ports_need_their_share(void **state)
{
	int fd = comes(0), got[DAEMON_FDS_MAX];
	uint32_t used = world.control->user->nfd;

	wire_gives_fds();
	for (uint32_t left = 2; left <= 3; left++) {
		world.limit.rlim_cur = 2 * (used + left) + world.control->fds_own;
		asks(fd, NBAR_OP_PORT_OPEN, &any_port, sizeof(any_port));
		users_run();
		assert_int_equal(answered_fds(fd, got), left == 3 ? 0 : -NBAR_EMFILE);
		assert_int_equal(got[0] >= 0, left == 3);
	}
	assert_int_equal(world.control->user->nfd, used + 3);
	for (uint32_t i = 0; i < 3; i++)
		close(got[i]);
	close(fd);
	users_run();
	wire_fds_are_whole();
}

/* All copies that were made are closed, once; and the client learns it. */
static void several_descriptors_that_cannot_be_sent(void **state)
{
	int fd = comes(0), got[DAEMON_FDS_MAX], kept[2];
	uint32_t fds;

	wire_gives_fds();
	memcpy(kept, of_wire, sizeof(kept));
	fds = entries("/proc/self/fd");
	for (uint32_t i = 0; i < 3; i++) {
		/* One of the wire's cannot be copied, or the message cannot be sent. */
		if (i < 2)
			of_wire[i] = -1;
		else
			world.send_fails = 1;
		world.send_error = ENOBUFS;
		asks(fd, NBAR_OP_PORT_OPEN, &any_port, sizeof(any_port));
		users_run();
		memcpy(of_wire, kept, sizeof(kept));
		assert_int_equal(answered_fds(fd, got), -NBAR_EMFILE);
		assert_int_equal(got[0], -1);
		assert_int_equal(world.nicd.nic[0]->device.nopen, 0);
		assert_int_equal(entries("/proc/self/fd"), fds);
		assert_int_equal(world.control->user->nfd, 3);
	}
	asks(fd, NBAR_OP_PORT_OPEN, &any_port, sizeof(any_port));
	users_run();
	assert_int_equal(answered_fds(fd, got), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(close(got[i]), 0);
	close(fd);
	users_run();
	wire_fds_are_whole();
}

/* --- who is dropped ------------------------------------------------------------------------ */

static void only_idle_clients_are_dropped(void **state)
{
	struct nbar_req_port_attach attach = { 0 };
	int fd[5];

	fd[4] = comes(1); /* the oldest of all */
	for (uint32_t i = 0; i < 4; i++)
		fd[i] = comes(0);
	assert_int_equal(opens_port(fd[0]), 0);
	attach.port = reply.open.port.port;
	memcpy(attach.secret, reply.open.port.secret, sizeof(attach.secret));
	assert_int_equal(status_of(fd[1], NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	assert_int_equal(stat_of(fd[2]), 0); /* later than fd[3] */
	world.control->nic[0].nclient += CONTROL_CLIENTS_MAX - 5;
	control_make_room(&world.control->nic[0]);
	world.control->nic[0].nclient++;
	control_make_room(&world.control->nic[1]);
	all_run();
	assert_int_equal(answered(fd[3]), NO_REPLY);
	control_make_room(&world.control->nic[0]);
	all_run();
	assert_int_equal(answered(fd[3]), ENDED);
	assert_int_equal(answered(fd[4]), NO_REPLY);
	assert_true(control_drop_idle(world.control, NULL));
	all_run();
	assert_int_equal(answered(fd[4]), ENDED);
	assert_true(control_drop_idle(world.control, NULL));
	assert_false(control_drop_idle(world.control, NULL));
	all_run();
	assert_int_equal(answered(fd[2]), ENDED);
	world.control->nic[0].nclient -= CONTROL_CLIENTS_MAX - 4;
	assert_int_equal(stat_of(fd[0]), 0);
	assert_int_equal(stat_of(fd[1]), 0);
	for (uint32_t i = 0; i < 5; i++)
		close(fd[i]);
}

/* --- an in-process NIC --------------------------------------------------------------------- */

static uint32_t asked, overs;
static bool is_unused;

static bool unused(void *arg)
{
	assert_ptr_equal(arg, &world);
	asked++;
	return is_unused;
}

static void over(void *arg)
{
	assert_ptr_equal(arg, &world);
	overs++;
	control_free(world.control);
	world.control = NULL;
}

static int begin_program(void **state)
{
	begin(state);
	world.config.run_dir = NULL;
	world.config.unused = unused;
	world.config.over = over;
	world.config.arg = &world;
	asked = overs = 0;
	is_unused = false;
	assert_int_equal(control_begins(), 0);
	return 0;
}

static int end_program(void **state)
{
	is_unused = true;
	if (world.control) {
		write_to(world.stop_fd);
		assert_true(control_runs());
	}
	assert_int_equal(overs, 1);
	world_end();
	return 0;
}

static int admitted(void)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
	assert_int_equal(control_admit(world.control, fd[1]), 0);
	return fd[0];
}

static int comes_by_id(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), NBAR_HOSTNIC_DIR "/" NBAR_HOSTNIC_SOCKET,
		 control_socket_id(world.control));
	fd = connects_to(path);
	control_runs();
	return fd;
}

/* While the program has a client or a group, its NIC is not asked whether it is needed. */
static void a_program_uses_its_nic(void **state)
{
	struct nbnic_device *d = &world.nicd.nic[0]->device;
	int guest, other;

	assert_int_equal(world.nthread, 1); /* users have no threads */
	assert_int_equal(world.wait_ms, 0);
	guest = admitted();
	assert_int_equal(stat_of(guest), 0);
	other = comes_by_id();
	assert_int_equal(asked, 0);
	assert_int_equal(world.wait_ms, -1);
	assert_int_equal(opens_port(guest), 0);
	opens_group(guest);
	assert_int_equal(world.wait_ms, CONTROL_PASS_MS);
	assert_int_equal(opens_port(other), -NBAR_EACCES);
	assert_int_equal(stat_of(other), 0);
	close(guest);
	control_runs();
	assert_int_equal(d->nopen, 0);
	assert_int_equal(asked, 0); /* its group lingers */
	world.clock += 20 * NBNIC_BUDGET_NS_DEFAULT;
	world.timeouts = 3;
	control_runs();
	nicd_pass(&world.nicd, world.clock);
	world.timeouts = 1;
	control_runs();
	assert_int_equal(d->nblock, 0);
	assert_true(asked > 0);
	asked = 0;
	is_unused = true;
	write_to(world.stop_fd);
	assert_true(control_runs());
	assert_int_equal(asked, 1);
	assert_int_equal(answered(other), ENDED);
	close(other);
}

/* A wait for the look of a wire, or of a host, does not end a NIC that is needed. */
static void it_is_asked_again(void **state)
{
	for (uint32_t i = 1; i < 3; i++) {
		write_to(world.stop_fd);
		assert_false(control_runs());
		assert_int_equal(asked, 2 * i); /* an interruption asks, too */
	}
}

static void a_socket_of_its_user_alone(void **state)
{
	uint32_t id = control_socket_id(world.control);
	const char *path = control_path(world.control, 0);
	char want[64];
	struct stat st;
	int fd;

	assert_int_equal(id >> 9, getpid());
	snprintf(want, sizeof(want), NBAR_HOSTNIC_DIR "/" NBAR_HOSTNIC_SOCKET, id);
	assert_string_equal(path, want);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	world.uid = geteuid() + 1; /* root could connect */
	fd = comes_by_id();
	assert_int_equal(answered(fd), ENDED);
	close(fd);
	world.uid--;
	fd = comes_by_id();
	assert_int_equal(stat_of(fd), 0);
	assert_int_equal(world.control->nic[0].nclient, 1);
	/* Full: the idle client of another process goes, never one of this process. */
	world.control->nic[0].nclient = CONTROL_CLIENTS_MAX;
	int guest = admitted();

	control_runs();
	control_make_room(&world.control->nic[0]);
	assert_int_equal(answered(fd), ENDED);
	assert_false(control_drop_idle(world.control, NULL));
	assert_int_equal(stat_of(guest), 0);
	close(guest);
	control_runs();
	close(fd);
}

/* Another process learns that this one has no descriptor for it. */
static void a_program_without_descriptors(void **state)
{
	int fd, got;

	world.fail_at = world.calls + 1;
	fd = comes_by_id();
	assert_int_equal(answered_fd(fd, &got), -NBAR_EMFILE);
	assert_int_equal(got, -1);
	assert_int_equal(answered(fd), ENDED);
	close(fd);
	assert_true(world.control->spare_fd >= 0);
}

/* In a child of fork(), all descriptors of the NIC are closed. */
static void a_child_closes_all(void **state)
{
	int guest = admitted(), other, status;
	uint32_t fds;

	assert_int_equal(stat_of(guest), 0); /* before its first message it is in no list */
	other = comes_by_id();
	fds = entries("/proc/self/fd");
	if (fork() == 0) {
		/* Two clients, epoll set, look, spare, listening socket. */
		control_forked(world.control);
		_exit(entries("/proc/self/fd") != fds - 6);
	}
	assert_true(wait(&status) > 0 && status == 0);
	assert_int_equal(stat_of(guest), 0);
	assert_int_equal(stat_of(other), 0);
	close(guest);
	close(other);
	control_runs();
}

/* --- names of private sockets -------------------------------------------------------------- */

/* Makes a socket with this name in the folder. Returns its descriptor. */
static int socket_at(const char *name, char path[128])
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = __real_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(path, 128, NBAR_HOSTNIC_DIR "/%s", name);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

static void sockets_of_killed_processes_are_removed(void **state)
{
	struct {
		const char *format;
		bool lives, listens, kept;
	} row[] = { { "nbar-%08x.sock", false, false, false },
		    { "nbar-%08x.sock", true, false, true },
		    { "nbar-%08x.sock", false, true, true },
		    { "nbar-%x.sock2", false, false, true },
		    { "nbar-0%08x.sock", false, false, true } };
	char name[64], path[5][128];
	pid_t gone = fork();
	int fd[5];

	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	for (uint32_t i = 0; i < 5; i++) {
		uint32_t pid = (uint32_t)(row[i].lives ? getppid() : gone);

		snprintf(name, sizeof(name), row[i].format, pid << 9 | i);
		fd[i] = socket_at(name, path[i]);
		if (row[i].listens)
			listen(fd[i], 1);
		else
			close(fd[i]);
	}
	begin_program(state);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(access(path[i], F_OK), row[i].kept ? 0 : -1);
		unlink(path[i]);
	}
	end_program(state);
	close(fd[2]);
}

/* A name is drawn 16 times. */
static void names_that_are_taken(void **state)
{
	static const uint32_t draw[] = { 0xfffffe01, 1, 1, 1, 1, 1, 1,     1, 1,
					 1,          1, 1, 1, 1, 1, 0x207, 3, UINT32_MAX };
	char name[64], path[2][128], socket[128];
	uint32_t own = (uint32_t)getpid() << 9;
	int fd[2];

	for (uint32_t i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), NBAR_HOSTNIC_SOCKET, own | (i == 0 ? 1 : 7));
		fd[i] = socket_at(name, path[i]);
		listen(fd[i], 1);
	}
	for (uint32_t i = 0; i < 4; i++) {
		static const uint32_t from[] = { 0, 1, 15, 17 };
		uint32_t want = i == 1 ? own | 3 : i == 2 ? own | 7 : 0;

		begin(state);
		draws = &draw[from[i]];
		if (i == 2)
			unlink(path[1]);
		world.config.run_dir = NULL;
		world.config.unused = unused;
		world.config.over = over;
		world.config.arg = &world;
		overs = 0;
		is_unused = false;
		assert_int_equal(control_begins(), 0);
		draws = NULL;
		assert_int_equal(control_socket_id(world.control), want);
		snprintf(socket, sizeof(socket), "%s", control_path(world.control, 0));
		end_program(state);
		if (want)
			assert_int_equal(access(socket, F_OK), -1);
	}
	for (uint32_t i = 0; i < 2; i++) {
		close(fd[i]);
		unlink(path[i]);
	}
}

#define DAEMON(name) UNIT_IN(name, begin_daemon, end_daemon)
#define PROGRAM(name) UNIT_IN(name, begin_program, end_program)

UNIT_MAIN(NULL, NULL, DAEMON(kicks), DAEMON(one_descriptor_at_a_time),
	  DAEMON(a_client_that_does_not_read), DAEMON(long_messages), DAEMON(turns),
	  DAEMON(descriptors_are_counted), DAEMON(idle_clients_make_room),
	  DAEMON(a_request_that_waits_is_not_alone), DAEMON(a_descriptor_that_cannot_be_sent),
	  DAEMON(ports_with_descriptors_of_the_wire), DAEMON(ports_need_their_share),
	  DAEMON(several_descriptors_that_cannot_be_sent), DAEMON(only_idle_clients_are_dropped),
	  PROGRAM(a_program_uses_its_nic), PROGRAM(it_is_asked_again),
	  PROGRAM(a_socket_of_its_user_alone), PROGRAM(a_program_without_descriptors),
	  PROGRAM(a_child_closes_all), UNIT(sockets_of_killed_processes_are_removed),
	  UNIT(names_that_are_taken))
