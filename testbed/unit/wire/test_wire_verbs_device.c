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
#include "unit/glue/said.h"
#include "verbs/verbs.h"

extern const struct wire_ops wire_verbs_ops;

static struct ibv_device device[2] = { { .name = "mlx0" }, { .name = "rxe0" } };
static struct ibv_device *list[] = { &device[0], &device[1], NULL };
static struct ibv_context context[2];
static struct ibv_pd pd;
static struct ibv_mr mr[2];
static struct ibv_cq cq[2];
static struct ibv_qp qp;

static struct {
	const char *fails; /* this call, ... */
	int nth;           /* ... the nth time */
	int error;
	int ndevice, ngid;
	int live; /* objects */
	int nmr, ncq, nreceive, nmodify;
	uint32_t inlined;
} fake;

static bool fails(const char *call)
{
	if (!fake.fails || strcmp(fake.fails, call) != 0 || fake.nth-- != 0)
		return false;
	errno = fake.error;
	return true;
}

struct ibv_device **ibv_get_device_list(int *n)
{
	*n = fails("list") ? 0 : fake.ndevice;
	fake.live += fake.ndevice > 0;
	return fake.ndevice ? list : NULL;
}

void ibv_free_device_list(struct ibv_device **l)
{
	assert_ptr_equal(l, list);
	fake.live--;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

static int post_recv(struct ibv_qp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)bad;
	assert_ptr_equal(q, &qp);
	assert_int_equal(wr->sg_list->lkey, 40);
	fake.nreceive++;
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
	*attr = (struct ibv_device_attr){ .phys_port_cnt = c == &context[0] ? 1 : 2 };
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
	const size_t want = fake.nmr ? VERBS_SENDS * VERBS_INLINE : VERBS_RECVS * VERBS_ROOM;

	assert_true(p == &pd && (uintptr_t)at % 4096 == 0 && length == want);
	assert_int_equal(access, fake.nmr ? 0 : IBV_ACCESS_LOCAL_WRITE);
	if (fails("mr"))
		return NULL;
	fake.live++;
	mr[fake.nmr].lkey = 40 + (uint32_t)fake.nmr;
	return &mr[fake.nmr++];
}

int ibv_dereg_mr(struct ibv_mr *m)
{
	assert_true(m == &mr[0] || m == &mr[1]);
	fake.live--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *arg,
			     struct ibv_comp_channel *channel, int vector)
{
	assert_true(c == &context[1] && n == 512 && !arg && !channel && vector == 0);
	if (fails("cq"))
		return NULL;
	fake.live++;
	return &cq[fake.ncq++];
}

int ibv_destroy_cq(struct ibv_cq *q)
{
	assert_true(q == &cq[0] || q == &cq[1]);
	fake.live--;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *init)
{
	assert_true(p == &pd && init->recv_cq == &cq[0] && init->send_cq == &cq[1]);
	assert_true(init->qp_type == IBV_QPT_UD && init->cap.max_send_wr == 128 &&
		    init->cap.max_recv_wr == 512 && init->cap.max_send_sge == 1 &&
		    init->cap.max_recv_sge == 1);
	fake.inlined = init->cap.max_inline_data;
	if (fails("qp"))
		return NULL;
	fake.live++;
	qp.qp_num = 1234;
	qp.context = &context[1];
	return &qp;
}

int ibv_destroy_qp(struct ibv_qp *q)
{
	assert_ptr_equal(q, &qp);
	fake.live--;
	return 0;
}

int ibv_modify_qp(struct ibv_qp *q, struct ibv_qp_attr *attr, int mask)
{
	static const enum ibv_qp_state order[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };

	(void)mask;
	assert_ptr_equal(q, &qp);
	assert_int_equal(attr->qp_state, order[fake.nmodify++]);
	assert_int_equal(attr->port_num, 2);
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

	fake.nmr = fake.ncq = fake.nreceive = fake.nmodify = 0;
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
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.ndevice = 2;
	fake.ngid = 5;
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

	(void)state;
	assert_int_equal(open_wire(""), 0);
	assert_string_equal(w->base.text, "::ffff:192.0.2.7/2:1234 ud");
	assert_true(w->port == 2 && w->gid_index == 5 && w->sl == 0 && w->send_inline);
	assert_true(w->self.qpn == 1234 && w->self.mtu == IBV_MTU_1024 && w->self.lid == 7 &&
		    w->self.link == IBV_LINK_LAYER_ETHERNET && w->self.mode == VERBS_UD &&
		    w->self.gid_type == 1 + IBV_GID_TYPE_ROCE_V2 && w->self.id != 0);
	assert_memory_equal(w->self.gid, gids[4].gid.raw, 16);
	assert_memory_equal(w->base.addr.byte, &w->self, sizeof(w->self));
	assert_true(fake.nreceive == 512 && fake.nmodify == 3 && fake.inlined == 64 &&
		    !w->out.room);
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
		    !w->send_inline && w->out.room && fake.inlined == 0 && fake.nmr == 2);
	close_wire();
	assert_int_equal(unit_descriptors(), was);
}

/* Each GID is better than those before it. */
static void the_best_gid(void **state)
{
	(void)state;
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

	(void)state;
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
		{ "modify", 0, EIO, "", "cannot make the queue pair ready: Input/output", -EIO },
		{ "modify", 1, EIO, "", "cannot make the queue pair ready: Input/output", -EIO },
		{ "modify", 2, EPERM, "", "cannot make the queue pair ready: Operation not",
		  -EPERM },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake.fails = cases[i].call;
		fake.nth = cases[i].nth;
		fake.error = cases[i].error;
		refused(cases[i].options, cases[i].rc, cases[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_it_takes, begin),
		cmocka_unit_test_setup(the_best_gid, begin),
		cmocka_unit_test_setup(options_refused, begin),
		cmocka_unit_test_setup(calls_that_fail, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	puts("1..1\nok 1 - devices of verbs # SKIP this build has none: apt-get install libibverbs-dev");
	return 0;
}
#endif
