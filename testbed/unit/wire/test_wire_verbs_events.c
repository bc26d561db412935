/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_verbs_events.c - how the wire "verbs" handles each event of a device, and how it
 * repairs the queue pair of datagrams.
 *
 * No device is needed: the test replaces the calls of libibverbs. The tests in guests
 * (testbed/verbs) use soft devices, which send few of these events.
 */
#include "unit/unit.h"

#ifdef WIRES_VERBS
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/verbs.h"

#define PORT 2u
#define SECOND UINT64_C(1000000000)

static struct verbs_wire *w;
static struct ibv_device device;
static struct ibv_context context = { .device = &device };
static struct ibv_cq recv_cq = { .context = &context }, send_cq = { .context = &context };
static struct ibv_cq line_cq = { .context = &context };
static struct ibv_qp qp = { .context = &context }, line_qp = { .context = &context };
static struct ibv_mr mr;
static struct verbs_peer peer[2];
static struct verbs_connection connection[2];
static uint8_t room[VERBS_RECVS * VERBS_ROOM];
static int log_fd, usual_stderr;

static struct {
	struct ibv_async_event event[4];
	uint32_t nevent, next, acks;
	int end; /* errno behind the last event */
	enum ibv_port_state state;
	uint8_t gid;       /* first byte of the GID; 0: there is none */
	uint32_t modifies; /* calls of ibv_modify_qp */
	uint32_t bad;      /* the call that fails; 0: none */
	uint32_t left[2];  /* completions of datagrams and of sends before the failure */
	uint32_t put;      /* receive buffers */
	uint64_t now;
} fake;

/* --- the calls of the device ------------------------------------------------------------------ */

int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
	assert_ptr_equal(c, &context);
	if (fake.next < fake.nevent) {
		*e = fake.event[fake.next++];
		return 0;
	}
	errno = fake.end;
	return -1;
}

void ibv_ack_async_event(struct ibv_async_event *e)
{
	fake.acks++;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	assert_int_equal(port, PORT);
	((struct ibv_port_attr *)attr)->state = fake.state;
	return fake.state == IBV_PORT_NOP ? ENODEV : 0;
}

int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	assert_int_equal(port, PORT);
	assert_int_equal(index, 5);
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = fake.gid;
	return fake.gid ? 0 : -1;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	assert_ptr_equal(d, &device);
	return "dev0";
}

int ibv_modify_qp(struct ibv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	static const struct {
		enum ibv_qp_state state;
		int mask; /* as the manual of ibv_modify_qp demands of datagrams */
	} order[] = {
		{ IBV_QPS_RESET, IBV_QP_STATE },
		{ IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
		{ IBV_QPS_RTR, IBV_QP_STATE },
		{ IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN },
	};
	const uint32_t step = fake.modifies++ % 4;

	assert_ptr_equal(q, &qp);
	assert_int_equal(attr->qp_state, order[step].state);
	assert_int_equal(mask, order[step].mask);
	if (mask & IBV_QP_PORT)
		assert_true(attr->port_num == PORT && attr->qkey == VERBS_QKEY);
	if (fake.modifies != fake.bad)
		return 0;
	fake.modifies = 0;
	return errno = EIO;
}

static int fake_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	uint32_t *left = cq == &recv_cq ? &fake.left[0] : &fake.left[1];

	assert_true(cq == &recv_cq || cq == &send_cq);
	*wc = (struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR };
	if (*left == 0)
		return 0;
	--*left;
	return 1;
}

static int fake_post_recv(struct ibv_qp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	assert_ptr_equal(q, &qp);
	assert_int_equal(fake.left[0] + fake.left[1], 0); /* else they would count as new ones */
	assert_int_equal(wr->wr_id, fake.put);
	assert_int_equal(wr->sg_list->addr, (uintptr_t)room + fake.put * VERBS_ROOM);
	fake.put++;
	return 0;
}

/* --- the wire -------------------------------------------------------------------------------- */

static void call(struct wire_base *base, wire_fn *fn, void *arg)
{
	assert_ptr_equal(base, &w->base);
	fn(arg, fake.now);
}

static int setup(void **state)
{
	struct epoll_event in = { .events = EPOLLIN };

	memset(&fake, 0, sizeof(fake));
	fake.end = EAGAIN;
	fake.state = IBV_PORT_ACTIVE;
	fake.gid = 7;
	fake.now = 5 * SECOND;
	context.ops.poll_cq = fake_poll_cq;
	context.ops.post_recv = fake_post_recv;
	context.async_fd = eventfd(0, EFD_CLOEXEC);
	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	strcpy(w->nic, "n0");
	w->context = &context;
	w->port = PORT;
	w->gid_index = 5;
	w->self.gid[0] = 7;
	w->recv_cq = &recv_cq;
	w->send_cq = &send_cq;
	w->qp = &qp;
	w->mr = &mr;
	w->room = room;
	w->base.call = call;
	w->base.fd = epoll_create1(EPOLL_CLOEXEC);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(epoll_ctl(w->base.fd, EPOLL_CTL_ADD, context.async_fd, &in), 0);
	for (uint32_t i = 0; i < 2; i++) {
		connection[i] = (struct verbs_connection){ .state = VERBS_CONNECTION_READY };
		peer[i] = (struct verbs_peer){ .connection = &connection[i] };
	}
	peer[0].next_connection = &peer[1];
	w->connections = &peer[0];
	connection[1].qp = &line_qp;
	connection[1].cq = &line_cq;
	log_fd = memfd_create("log", MFD_CLOEXEC);
	usual_stderr = dup(STDERR_FILENO);
	assert_true(log_fd >= 0 && dup2(log_fd, STDERR_FILENO) == STDERR_FILENO);
	return 0;
}

static int teardown(void **state)
{
	dup2(usual_stderr, STDERR_FILENO);
	close(usual_stderr);
	close(log_fd);
	close(context.async_fd);
	close(w->base.fd);
	close(w->wake_fd);
	free(w);
	return 0;
}

/* The last messages contain this text; NULL: there is none. They are gone then. */
static void said(const char *text)
{
	char log[2000] = "";

	assert_true(pread(log_fd, log, sizeof(log) - 1, 0) >= 0);
	if (text && !strstr(log, text))
		fail_msg("\"%s\" is not in: %s", text, log);
	if (!text && *log)
		fail_msg("unexpected: %s", log);
	assert_int_equal(ftruncate(log_fd, 0), 0);
	assert_int_equal(lseek(log_fd, 0, SEEK_SET), 0);
}

static bool woken(void)
{
	uint64_t n;

	return read(w->wake_fd, &n, sizeof(n)) == sizeof(n);
}

static void events(struct ibv_async_event one)
{
	fake.event[0] = one;
	fake.nevent = 1;
	fake.next = fake.acks = 0;
	verbs_events(w);
	assert_int_equal(fake.acks, 1); /* without it, a queue pair could never be destroyed */
}

static void port_says(enum ibv_event_type type, int port)
{
	events((struct ibv_async_event){ .event_type = type, .element.port_num = port });
}

/* --- tests ----------------------------------------------------------------------------------- */

static void ports(void **state)
{
	port_says(IBV_EVENT_PORT_ERR, 1);
	said(NULL); /* it is another port */
	port_says(IBV_EVENT_PORT_ERR, PORT);
	said("n0: port 2 of dev0 is down: barriers fail if that lasts longer than");
	assert_false(woken());
	port_says(IBV_EVENT_PORT_ACTIVE, PORT);
	said("n0: port 2 of dev0 is up again");
	assert_true(woken()); /* the queue pair may wait for a repair */
	port_says(IBV_EVENT_SM_CHANGE, PORT);
	said(NULL);
	assert_false(w->broken || w->failing || w->fatal || w->dead);
}

/* Each change of the address is told once. */
static void addresses(void **state)
{
	fake.gid = 8;
	port_says(IBV_EVENT_GID_CHANGE, 1);
	said(NULL);
	port_says(IBV_EVENT_GID_CHANGE, PORT);
	said("n0: GID 5 of dev0 is another now, or none: peers cannot reach this NIC");
	fake.gid = 0;
	port_says(IBV_EVENT_LID_CHANGE, PORT);
	said(NULL);
	fake.gid = 7;
	port_says(IBV_EVENT_GID_CHANGE, PORT);
	said("n0: GID 5 of dev0 is back");
	port_says(IBV_EVENT_GID_CHANGE, PORT);
	said(NULL);
	fake.gid = 0;
	port_says(IBV_EVENT_GID_CHANGE, PORT);
	said("another now, or none");
}

/* The queue pair of datagrams must be repaired, one of a connection is made again. */
static void queue_pairs(void **state)
{
	static const enum ibv_event_type types[] = { IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR,
						     IBV_EVENT_QP_ACCESS_ERR };
	struct ibv_qp other = { .context = &context };

	for (uint32_t i = 0; i < 3; i++) {
		w->broken = false;
		events((struct ibv_async_event){ .event_type = types[i], .element.qp = &qp });
		assert_true(w->broken);
		assert_int_equal(w->base.errors, 1);
		assert_false(woken());
		connection[1].its = (struct verbs_end){ .qpn = 88, .slot = 4096 };
		events((struct ibv_async_event){ .event_type = types[i], .element.qp = &other });
		assert_int_equal(w->base.errors, 1);
		events((struct ibv_async_event){ .event_type = types[i], .element.qp = &line_qp });
		assert_int_equal(w->base.errors, 2);
		assert_int_equal(connection[0].state, VERBS_CONNECTION_READY);
		assert_int_equal(connection[1].state, VERBS_CONNECTION_MAKING);
		assert_true(connection[1].reset && !connection[1].renew);
		assert_true(!connection[1].its.qpn && !connection[1].its.slot); /* of the old one */
		assert_int_equal(connection[1].error, IBV_WC_FATAL_ERR);
		assert_true(woken());
		/* The control thread has it: a second event changes nothing. */
		events((struct ibv_async_event){ .event_type = types[i], .element.qp = &line_qp });
		assert_int_equal(w->base.errors, 2);
		assert_false(woken());
		connection[1].state = i ? VERBS_CONNECTION_READY : VERBS_CONNECTION_OPEN;
		connection[1].reset = false;
		w->base.errors = 0;
	}
	assert_false(w->failing || w->dead);
	said(NULL);
}

/* Without its completion queue, a connection needs new queues, whatever its state is; the datagrams
 * cannot go on. */
static void completion_queues(void **state)
{
	connection[1].state = VERBS_CONNECTION_IDLE;
	events((struct ibv_async_event){ .event_type = IBV_EVENT_CQ_ERR, .element.cq = &line_cq });
	assert_true(connection[1].renew && !connection[0].renew);
	assert_int_equal(connection[1].state, VERBS_CONNECTION_IDLE);
	connection[1].state = VERBS_CONNECTION_READY;
	events((struct ibv_async_event){ .event_type = IBV_EVENT_CQ_ERR, .element.cq = &line_cq });
	assert_int_equal(connection[1].state, VERBS_CONNECTION_MAKING);
	assert_false(w->broken || w->fatal);
	said(NULL);
	for (uint32_t i = 0; i < 2; i++) {
		w->fatal = w->failing = w->broken = false;
		w->dead = NULL;
		events((struct ibv_async_event){ .event_type = IBV_EVENT_CQ_ERR,
						 .element.cq = i ? &recv_cq : &send_cq });
		assert_true(w->fatal && w->failing && w->broken);
		said("n0: dev0 says: the completion queue of datagrams is in an error; its groups fail");
	}
}

/* A device that has failed is told once, and its groups fail once. */
static void devices(void **state)
{
	port_says(IBV_EVENT_DEVICE_FATAL, 0);
	assert_true(w->fatal && w->failing && w->broken);
	assert_non_null(strstr(w->dead, "RDMA device has failed; restart its process"));
	said("n0: dev0 says: ");
	w->failing = false; /* the groups have failed */
	port_says(IBV_EVENT_DEVICE_FATAL, 0);
	assert_false(w->failing);
	said(NULL);
	w->repair_at = 0;
	verbs_repair(w);
	assert_int_equal(fake.modifies, 0);
	assert_int_equal(w->repair_at, fake.now + SECOND / 10);
}

/* The device was pulled out: the wire asks it for no more events. */
static void no_device(void **state)
{
	struct epoll_event in = { .events = EPOLLIN };

	verbs_events(w);
	assert_false(w->fatal);
	fake.end = EIO;
	verbs_events(w);
	assert_true(w->fatal && w->failing);
	said("n0: dev0 says: it is gone; its groups fail; restart the daemon");
	assert_int_equal(epoll_ctl(w->base.fd, EPOLL_CTL_ADD, context.async_fd, &in), 0);
}

/* After a repair the queue pair is as new. Many repairs within a second make one message. */
static void repairs(void **state)
{
	w->posted = 9;
	w->done = 3;
	for (uint32_t i = 1; i <= 3; i++) {
		fake.left[0] = 5;
		fake.left[1] = 3;
		fake.put = 0;
		w->broken = true;
		verbs_repair(w);
		assert_false(w->broken);
		assert_int_equal(w->posted + w->done, 0);
		assert_int_equal(fake.put, VERBS_RECVS);
		assert_int_equal(fake.modifies, 4 * i);
		assert_int_equal(w->repairs, i);
		said(i == 1   ? "has been started again (1 so far)"
		     : i == 2 ? NULL
			      : "has been started again (3 so far)");
		fake.now += i == 1 ? SECOND - 1 : 1;
	}
}

/* While the port is down, a repair waits. */
static void no_repair_without_a_port(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		fake.state = i ? IBV_PORT_NOP : IBV_PORT_DOWN; /* NOP: the call fails */
		w->repair_at = 0;
		w->broken = false;
		verbs_repair(w);
		assert_int_equal(fake.modifies, 0);
		assert_int_equal(w->repair_at, fake.now + SECOND / 10);
		assert_true(w->broken && !w->failing && !w->dead);
	}
	said(NULL);
}

/* If the repair fails, the groups fail once, and the NIC says so once. It tries again, and may
 * succeed. */
static void a_repair_that_fails(void **state)
{
	for (fake.bad = 1; fake.bad <= 4; fake.bad++) {
		w->dead = NULL;
		w->failing = false;
		verbs_repair(w);
		assert_true(w->broken && w->failing);
		assert_non_null(strstr(w->dead, "cannot be started again; restart its process"));
		assert_int_equal(w->repair_at, fake.now + SECOND / 10);
		said("n0: the queue pair is in an error and cannot be started again: Input/output");
		verbs_repair(w);
		assert_true(w->failing); /* the polling thread has not looked yet */
		w->failing = false;
		verbs_repair(w);
		assert_true(w->dead && !w->failing);
		said(NULL);
	}
	fake.bad = 0;
	verbs_repair(w);
	assert_null(w->dead);
	assert_false(w->broken);
	said("has been started again (1 so far)");
}

#define EVENTS(test) UNIT_IN(test, setup, teardown)
UNIT_MAIN(NULL, NULL, EVENTS(ports), EVENTS(addresses), EVENTS(queue_pairs),
	  EVENTS(completion_queues), EVENTS(devices), EVENTS(no_device), EVENTS(repairs),
	  EVENTS(no_repair_without_a_port), EVENTS(a_repair_that_fails))
#else
int main(void)
{
	puts("1..1\nok 1 - events of verbs # SKIP this build has none: apt-get install libibverbs-dev");
	return 0;
}
#endif
