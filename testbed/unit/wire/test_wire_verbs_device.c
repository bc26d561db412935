/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_verbs_device.c - which device, port, GID and MTU the wire "verbs" takes, what it asks
 * of the device, the text of each refusal, and what an open that fails leaves behind.
 *
 * No device is needed: the test replaces the calls of libibverbs.
 */
#include "unit/unit.h"

#ifdef WIRES_VERBS
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/descriptors.h"
#include "unit/said.h"
#include "verbs/verbs.h"

extern const struct wire_ops wire_verbs_ops;

static struct ibv_device device[2] = { { .name = "mlx0" }, { .name = "rxe0" } };
static struct ibv_context context[2];
static struct ibv_pd pd;
static struct ibv_mr mr[4];
static struct ibv_cq cq[3];
static struct ibv_qp qp[2]; /* of datagrams, and of a connection */

static struct {
	const char *fails; /* this call, ... */
	int nth;           /* ... the nth time */
	int error;
	int ndevice, ngid;
	int live; /* objects */
	int nmr, ncq, nqp, nreceive, nmodify;
	uint32_t inlined, inline_max; /* that was asked for; that the device has */
	/* Of the connection. */
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr modified[8];
	int mask[8], nchange;
	uint32_t vendor;
} fake;

static bool fails(const char *call)
{
	if (!fake.fails || strcmp(fake.fails, call) != 0 || fake.nth-- != 0)
		return false;
	errno = fake.error;
	return true;
}

struct ibv_device **verbs_devices(void)
{
	static struct ibv_device *list[3];

	for (int i = 0; i < 2; i++)
		list[i] = i < fake.ndevice ? &device[i] : NULL;
	return fails("list") ? NULL : list;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

static int post_recv(struct ibv_qp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	assert_ptr_equal(q, &qp[0]);
	assert_int_equal(wr->sg_list->lkey, 40);
	fake.nreceive++;
	return 0;
}

static int poll_cq(struct ibv_cq *q, int n, struct ibv_wc *wc)
{
	assert_true(q == &cq[2] && n == 1);
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	struct ibv_context *c = &context[d - device];

	if (fails("open"))
		return NULL;
	*c = (struct ibv_context){ .device = d,
				   .cmd_fd = eventfd(0, 0),
				   .async_fd = eventfd(0, 0) };
	c->ops.post_recv = post_recv;
	c->ops.poll_cq = poll_cq;
	fake.live++;
	return c;
}

int ibv_close_device(struct ibv_context *c)
{
	close(c->cmd_fd);
	close(c->async_fd);
	fake.live--;
	return 0;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){ .phys_port_cnt = c == &context[0] ? 1 : 2,
					  .vendor_id = fake.vendor };
	return fails("query") ? EIO : 0;
}

/* Port 2 of the second device is up. */
#undef ibv_query_port
int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;
	bool up = c == &context[1] && port == 2;

	attr->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	attr->active_mtu = IBV_MTU_1024;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->lid = 7;
	return fails("port") ? errno : 0;
}

/* The worst first; the last is of another port. */
static const struct ibv_gid_entry gids[] = {
	{ .gid_index = 0, .port_num = 2, .gid_type = IBV_GID_TYPE_ROCE_V1, .gid.raw = { 0x20, 1 } },
	{ .gid_index = 1,
	  .port_num = 2,
	  .gid_type = IBV_GID_TYPE_ROCE_V2,
	  .gid.raw = { 0xfe, 0xbf, [15] = 1 } },
	{ .gid_index = 2,
	  .port_num = 2,
	  .gid_type = IBV_GID_TYPE_ROCE_V2,
	  .gid.raw = { 0xfe, 0xc0, [15] = 2 } },
	{ .gid_index = 3,
	  .port_num = 2,
	  .gid_type = IBV_GID_TYPE_ROCE_V2,
	  .gid.raw = { 0x20, 1, [15] = 3 } },
	{ .gid_index = 5,
	  .port_num = 2,
	  .gid_type = IBV_GID_TYPE_ROCE_V2,
	  .gid.raw = { [10] = 0xff, 0xff, 192, 0, 2, 7 } },
	{ .gid_index = 6, .port_num = 2, .gid_type = IBV_GID_TYPE_IB, .gid.raw = { 0xfe, 0x80 } },
	{ .gid_index = 9, .port_num = 1, .gid_type = IBV_GID_TYPE_IB, .gid.raw = { 0xfe, 0x80 } },
};

ssize_t _ibv_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *out, size_t most,
			     uint32_t flags, size_t size)
{
	assert_true(c == &context[1] && most == 256 && flags == 0 && size == sizeof(*out));
	memcpy(out, gids, sizeof(gids));
	return fake.ngid;
}

int ibv_fork_init(void)
{
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	assert_ptr_equal(c, &context[1]);
	fake.live += fake.fails == NULL || strcmp(fake.fails, "pd") != 0;
	return fails("pd") ? NULL : &pd;
}

int ibv_dealloc_pd(struct ibv_pd *p)
{
	assert_ptr_equal(p, &pd);
	fake.live--;
	return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *p, void *at, size_t length, int access)
{
	/* Memory of received datagrams, of datagrams to send; slots of a connection, writes. */
	static const size_t lengths[] = { 512 * 384, 128 * 320, 64 * 128, 64 * 128 };
	static const int accesses[] = { IBV_ACCESS_LOCAL_WRITE, 0,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0 };

	if (fails("mr"))
		return NULL;
	while (fake.nmr < 4 && (length != lengths[fake.nmr] || access != accesses[fake.nmr]))
		fake.nmr++;
	assert_true(p == &pd && (uintptr_t)at % 4096 == 0 && fake.nmr < 4);
	fake.live++;
	mr[fake.nmr].lkey = 40 + (uint32_t)fake.nmr;
	mr[fake.nmr].rkey = 50 + (uint32_t)fake.nmr;
	return &mr[fake.nmr++];
}

int ibv_dereg_mr(struct ibv_mr *m)
{
	assert_true(m >= mr && m < mr + 4);
	fake.live--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *arg,
			     struct ibv_comp_channel *channel, int vector)
{
	assert_true(c == &context[1] && n == (fake.ncq < 2 ? 512 : 256) && !arg && !channel &&
		    vector == 0);
	if (fails("cq"))
		return NULL;
	fake.live++;
	cq[fake.ncq].context = c;
	return &cq[fake.ncq++];
}

int ibv_destroy_cq(struct ibv_cq *q)
{
	fake.ncq -= q == &cq[2]; /* another connection may take it */
	fake.nmr = fake.ncq > 1 ? 2 : fake.nmr;
	assert_true(q >= cq && q < cq + 3);
	fake.live--;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *init)
{
	assert_true(p == &pd);
	if (fake.nqp)
		fake.init = *init;
	else
		assert_true(init->recv_cq == &cq[0] && init->send_cq == &cq[1] &&
			    init->qp_type == IBV_QPT_UD && init->cap.max_send_wr == 128 &&
			    init->cap.max_recv_wr == 512 && init->cap.max_send_sge == 1 &&
			    init->cap.max_recv_sge == 1);
	fake.inlined = init->cap.max_inline_data;
	errno = EINVAL;
	if (fails("qp") || init->cap.max_inline_data > fake.inline_max)
		return NULL;
	fake.live++;
	qp[fake.nqp].qp_num = 1234 + (uint32_t)fake.nqp;
	qp[fake.nqp].context = &context[1];
	return &qp[fake.nqp++];
}

int ibv_destroy_qp(struct ibv_qp *q)
{
	assert_true(q == &qp[--fake.nqp]);
	fake.live--;
	return 0;
}

int ibv_modify_qp(struct ibv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	static const enum ibv_qp_state order[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };

	if (q == &qp[1]) {
		fake.modified[fake.nchange] = *attr;
		fake.mask[fake.nchange++] = mask;
	} else {
		assert_ptr_equal(q, &qp[0]);
		assert_int_equal(attr->qp_state, order[fake.nmodify++]);
		assert_int_equal(attr->port_num, 2);
	}
	return fails("modify") ? -1 : 0;
}

/* --- the wire -------------------------------------------------------------------------------- */

/* Finds the value in "key=value,key=value". */
static const char *option_of(void *args, const char *key)
{
	static char value[8][32];
	static uint32_t next;
	const char *at = args;
	size_t n = strlen(key);

	while (at && (strncmp(at, key, n) != 0 || at[n] != '='))
		at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
	if (!at)
		return NULL;
	snprintf(value[next % 8], sizeof(value[0]), "%.*s", (int)strcspn(at + n + 1, ","),
		 at + n + 1);
	return value[next++ % 8];
}

static struct verbs_wire *w;

static int open_wire(const char *options)
{
	struct wire_base *base = NULL;
	int rc;

	fake.nmr = fake.ncq = fake.nqp = fake.nreceive = fake.nmodify = fake.nchange = 0;
	rc = wire_verbs_ops.open("n7", option_of, (void *)(uintptr_t)options, &base);
	w = (struct verbs_wire *)base;
	return rc;
}

static void close_wire(void)
{
	const int was = fake.live;

	wire_verbs_ops.close(&w->base);
	assert_true(was > 0 && fake.live == 0);
}

static int begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.ndevice = 2;
	fake.ngid = 5;
	fake.inline_max = 1024;
	return 0;
}

static void refused(const char *options, int rc, const char *says)
{
	const int was = (int)unit_descriptors();
	const char *said;

	said_begin();
	assert_int_equal(open_wire(options), rc);
	said = said_end();
	require(strstr(said, says), "\"%s\" is not in: %s", says, said);
	assert_null(w);
	assert_int_equal(fake.live, 0);
	assert_int_equal(unit_descriptors(), was);
}

static void what_it_takes(void **state)
{
	const int was = (int)unit_descriptors();
	int status = -1, open;
	pid_t child;

	assert_int_equal(open_wire(""), 0);
	assert_string_equal(w->base.text, "::ffff:192.0.2.7/2:1234 ud");
	assert_true(w->port == 2 && w->gid_index == 5 && w->sl == 0 && w->send_inline);
	assert_true(w->self.qpn == 1234 && w->self.mtu == IBV_MTU_1024 && w->self.lid == 7 &&
		    w->self.link == IBV_LINK_LAYER_ETHERNET && w->self.mode == VERBS_UD &&
		    w->self.gid_type == 1 + IBV_GID_TYPE_ROCE_V2 && w->self.id != 0);
	assert_memory_equal(w->self.gid, gids[4].gid.raw, 16);
	assert_memory_equal(w->base.addr.byte, &w->self, sizeof(w->self));
	assert_true(fake.nreceive == 512 && fake.nmodify == 3 && fake.inlined == 64 &&
		    w->out.inlined == 64 && w->out.room && !w->base.no_values);
	open = (int)unit_descriptors();
	child = fork();
	if (child == 0) {
		wire_verbs_ops.forked(&w->base);
		_exit(open - (int)unit_descriptors());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 4);
	close_wire();
	assert_int_equal(unit_descriptors(), was);
	assert_int_equal(open_wire("inline=yes"), 0);
	close_wire();
	assert_int_equal(open_wire("inline=no,sl=15,mtu=512,gid=3,device=rxe0,port=2"), 0);
	assert_true(w->gid_index == 3 && w->sl == 15 && w->self.mtu == IBV_MTU_512 &&
		    !w->send_inline && w->out.room && !w->out.inlined && fake.inlined == 0 &&
		    fake.nmr == 2 && !w->base.no_values);
	close_wire();
	assert_int_equal(open_wire("mtu=256"), 0);
	assert_non_null(strstr(w->base.no_values, "its MTU is 256 bytes"));
	close_wire();
	assert_int_equal(unit_descriptors(), was);
}

/* Each GID is better than those before it. */
static void the_best_gid(void **state)
{
	for (fake.ngid = 1; fake.ngid <= 7; fake.ngid++) {
		const uint32_t best = fake.ngid < 7 ? (uint32_t)fake.ngid - 1 : 5;

		/* Of two with one rank, the first. */
		assert_int_equal(open_wire(""), 0);
		assert_int_equal(w->gid_index, best == 3 ? 2 : gids[best].gid_index);
		close_wire();
	}
	fake.ngid = 7;
	refused("gid=9", -EADDRNOTAVAIL,
		"nic n7: gid=9: port 2 of rxe0 has no such GID, its last is 6; see");
	refused("gid=256", -EINVAL, "nic n7: gid=256: it goes from 0 to 255");
	fake.ngid = 0;
	refused("", -EADDRNOTAVAIL,
		"gid=(any): port 2 of rxe0 has no such GID, its last is -1; see");
}

static void options_refused(void **state)
{
	static const struct {
		const char *options, *says;
		int rc;
	} cases[] = {
		{ "sl=16", "nic n7: sl=16: it goes from 0 to 15", -EINVAL },
		{ "sl=1x", "nic n7: sl=1x: it goes from 0 to 15", -EINVAL },
		{ "inline=maybe", "nic n7: inline=maybe: it is yes or no", -EINVAL },
		{ "mode=fast", "nic n7: mode=fast: it is ud, write", -EINVAL },
		{ "mtu=2048", "nic n7: mtu=2048: it goes from 256 to 1024", -EINVAL },
		{ "mtu=255", "nic n7: mtu=255: it goes from 256 to 1024", -EINVAL },
		{ "mtu=700", "nic n7: mtu=700: it is 256, 512, 1024", -EINVAL },
		{ "device=rxe0", "nic n7: port 1 of rxe0 is down; bring its", -ENETDOWN },
		{ "device=rxe0,port=3", "nic n7: port=3: it goes from 1 to 2", -EINVAL },
		{ "device=rxe1", "device=rxe1: there is no such RDMA device; there is: mlx0 rxe0",
		  -ENODEV },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].options, cases[i].rc, cases[i].says);
	fake.ndevice = 1;
	refused("", -ENODEV, "nic n7: no RDMA device has a port that is up (mlx0); bring one up");
	fake.ndevice = 0;
	refused("", -ENODEV, "nic n7: this machine has no RDMA device; load its driver");
	refused("device=x", -ENODEV,
		"nic n7: device=x: there is no such RDMA device; there is: none");
}

static void calls_that_fail(void **state)
{
	static const struct {
		const char *call;
		int nth, error;
		const char *options, *says;
		int rc;
	} cases[] = {
		{ "open", 0, EACCES, "device=rxe0", "device=rxe0: Permission denied; see the perm",
		  -EACCES },
		{ "open", 1, EACCES, "", "no RDMA device has a port that is up (mlx0 rxe0)",
		  -ENODEV },
		{ "query", 1, EIO, "", "no RDMA device has a port that is up (mlx0 rxe0)",
		  -ENODEV },
		{ "port", 3, EIO, "", "nic n7: rxe0: cannot make a path: Input", -EIO },
		{ "pd", 0, EPERM, "", "a protection domain: Operation not permitted; this user may",
		  -EPERM },
		{ "mr", 0, ENOMEM, "",
		  "cannot make a memory region: Cannot allocate memory; this pro", -ENOMEM },
		{ "mr", 1, EIO, "inline=no", "cannot make a memory region: Input/output error\n",
		  -EIO },
		{ "cq", 0, EIO, "", "cannot make a completion queue: Input/output error\n", -EIO },
		{ "cq", 1, EIO, "", "cannot make a completion queue: Input/output error\n", -EIO },
		{ "qp", 0, EIO, "", "cannot make a queue pair with inline sends (inline=no does",
		  -EIO },
		{ "qp", 0, EIO, "inline=no", "cannot make a queue pair: Input/output error\n",
		  -EIO },
		{ "mr", 2, EIO, "mode=write-rc", "a reliable connection (mode=ud does without): In",
		  -EIO },
		{ "mr", 3, EIO, "mode=write-uc,inline=no",
		  "an unreliable connection (mode=write-rc has", -EIO },
		{ "cq", 2, EIO, "mode=write-rc", "cannot make a reliable connection", -EIO },
		{ "qp", 1, EIO, "mode=write-rc,inline=no", "cannot make a reliable connection",
		  -EIO },
		{ "modify", 3, EIO, "mode=write-rc", "cannot make a reliable connection", -EIO },
		{ "modify", 0, EIO, "", "cannot make the queue pair ready: Input/output", -EIO },
		{ "modify", 1, EIO, "", "cannot make the queue pair ready: Input/output", -EIO },
		{ "modify", 2, EPERM, "", "cannot make the queue pair ready: Operation not",
		  -EPERM },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake.fails = cases[i].call;
		fake.nth = cases[i].nth;
		fake.error = cases[i].error;
		refused(cases[i].options, cases[i].rc, cases[i].says);
	}
}

static void call_now(struct wire_base *base, void (*fn)(void *arg, uint64_t now), void *arg)
{
	fn(arg, 9);
}

/* What a connection asks of the device. */
static void connects(const char *options, bool reliable, bool copies)
{
	const struct verbs_addr to = { .gid = { 1, 2, [15] = 3 }, .qpn = 77, .lid = 0x1234 };
	struct verbs_peer peer = { .qpn = 77 };
	struct verbs_connection *l;
	const struct ibv_qp_attr *a = fake.modified;
	const char *says;

	assert_int_equal(open_wire(options), 0);
	w->base.call = call_now;
	fake.nchange = 0;
	peer.connection = l = verbs_connection_make(w);
	assert_non_null(l);
	memcpy(peer.addr.byte, &to, sizeof(to));
	assert_true(fake.init.qp_type == (reliable ? IBV_QPT_RC : IBV_QPT_UC) &&
		    fake.init.send_cq == &cq[2] && fake.init.recv_cq == &cq[2] &&
		    fake.init.cap.max_send_wr == 64 && fake.init.cap.max_recv_wr == 1 &&
		    fake.init.cap.max_inline_data == (copies ? 0 : 128) &&
		    l->out.inlined == fake.init.cap.max_inline_data);
	assert_true(l->mine.qpn == 1235 && l->mine.rkey == 52 && l->mine.psn < 1 << 24 &&
		    l->mine.size == 128 && l->mine.slot == (uintptr_t)l->slot &&
		    !l->out.room == !copies);
	assert_true(a[0].qp_state == IBV_QPS_INIT && a[0].port_num == 2 &&
		    a[0].qp_access_flags == IBV_ACCESS_REMOTE_WRITE);
	/* It waits for the other end, then it is open. */
	l->posted = l->done = l->written = l->seen = 5;
	l->handshake_at = l->handshake_ns = 6;
	l->taken = true;
	verbs_connection_connect(w, &peer);
	assert_true(fake.nchange == 1 && l->state == VERBS_CONNECTION_IDLE && !l->taken);
	assert_int_equal(l->posted | l->done | l->written | l->seen, 0);
	assert_int_equal(l->handshake_at | l->handshake_ns, 0);
	l->its = (struct verbs_end){ .qpn = 88, .psn = 99 };
	verbs_connection_connect(w, &peer);
	assert_true(fake.nchange == 3 && l->state == VERBS_CONNECTION_OPEN);
	assert_true(a[1].qp_state == IBV_QPS_RTR && a[1].path_mtu == IBV_MTU_1024 &&
		    a[1].dest_qp_num == 88 && a[1].rq_psn == 99 && a[1].max_dest_rd_atomic == 1 &&
		    a[1].min_rnr_timer == 24);
	assert_true(a[1].ah_attr.is_global == 1 && a[1].ah_attr.grh.sgid_index == 5 &&
		    a[1].ah_attr.grh.hop_limit == 64 && a[1].ah_attr.dlid == 0x1234 &&
		    a[1].ah_attr.sl == 4 && a[1].ah_attr.port_num == 2);
	assert_memory_equal(a[1].ah_attr.grh.dgid.raw, to.gid, 16);
	assert_int_equal(fake.mask[1],
			 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				 IBV_QP_RQ_PSN |
				 (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	assert_true(a[2].qp_state == IBV_QPS_RTS && a[2].timeout == 14 && a[2].retry_cnt == 7 &&
		    a[2].rnr_retry == 6 && a[2].sq_psn == l->mine.psn && a[2].max_rd_atomic == 1);
	assert_int_equal(fake.mask[2],
			 IBV_QP_STATE | IBV_QP_SQ_PSN |
				 (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						     IBV_QP_MAX_QP_RD_ATOMIC
					   : 0));
	/* It breaks. The device refuses it at first: the next handshake finds it as new. */
	l->slot[3].line.sequence = 9;
	l->reset = true;
	l->error = IBV_WC_RETRY_EXC_ERR;
	fake.nchange = 0;
	fake.fails = "modify";
	fake.nth = 2;
	fake.error = EPERM;
	said_begin();
	verbs_connection_connect(w, &peer);
	says = said_end();
	assert_non_null(
		strstr(says, "nic n7: the connection to queue pair 77 broke: transport retry"));
	assert_non_null(
		strstr(says, "nic n7: no connection to queue pair 77: Operation not permitted"));
	assert_true(fake.nchange == 5 && l->state == VERBS_CONNECTION_IDLE && !l->error &&
		    !l->reset);
	assert_true(a[0].qp_state == IBV_QPS_RESET && a[1].qp_state == IBV_QPS_INIT &&
		    a[3].qp_state == IBV_QPS_RESET && a[4].qp_state == IBV_QPS_INIT);
	assert_int_equal(l->slot[3].line.sequence, 0);
	fake.fails = NULL;
	verbs_connection_free(l);
	close_wire();
}

/* Soft devices have the vendor 0, or none. */
static void mode_of_the_device(void **state)
{
	static const struct {
		uint32_t vendor;
		enum verbs_mode mode;
	} cases[] = { { 0, VERBS_WRITE_UC },
		      { 0xffffff, VERBS_WRITE_UC },
		      { 0x15b3, VERBS_WRITE_RC } };

	for (uint32_t i = 0; i < 3; i++) {
		fake.vendor = cases[i].vendor;
		assert_int_equal(open_wire("mode=write"), 0);
		assert_int_equal(w->self.mode, cases[i].mode);
		close_wire();
	}
}

/* Cards with little room for inline sends: frames without values are inline, or the NIC says what
 * to do. */
static void short_inline_sends(void **state)
{
	struct verbs_connection *l;

	fake.inline_max = 127;
	assert_int_equal(open_wire("mode=write-rc"), 0);
	l = verbs_connection_make(w);
	assert_non_null(l);
	assert_true(fake.init.cap.max_inline_data == 64 && l->out.inlined == 64 && !l->out.room);
	verbs_connection_free(l);
	close_wire();
	fake.inline_max = 63;
	refused("mode=write-rc", -EINVAL, "inline sends (inline=no does without)");
	fake.inline_max = 0;
	assert_int_equal(open_wire("mode=write-rc,inline=no"), 0);
	close_wire();
}

static void connections(void **state)
{
	connects("mode=write-rc,sl=4", true, false);
	connects("mode=write-uc,sl=4,inline=no", false, true);
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(connections, begin),
	  cmocka_unit_test_setup(short_inline_sends, begin),
	  cmocka_unit_test_setup(mode_of_the_device, begin),
	  cmocka_unit_test_setup(what_it_takes, begin), cmocka_unit_test_setup(the_best_gid, begin),
	  cmocka_unit_test_setup(options_refused, begin),
	  cmocka_unit_test_setup(calls_that_fail, begin))
#else
int main(void)
{
	puts("1..1\nok 1 - devices of verbs # SKIP this build has none: apt-get install libibverbs-dev");
	return 0;
}
#endif
