/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_verbs_peer.c - the peers of the wire "verbs": who becomes one, who is refused and why,
 * how long an address handle lives, and how many strangers a NIC remembers. No device is needed:
 * the test replaces the calls of libibverbs, and the files that it does not test.
 */
#include "unit/unit.h"

#ifdef WIRES_VERBS
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs/verbs.h"

static struct verbs_wire *w;
static struct ibv_ah handle[256];
static struct verbs_connection connection;

static struct {
	uint32_t made, destroyed; /* address handles */
	int error;    /* errno of the next one; 0: it is made; -1: fails without errno */
	uint32_t qpn; /* that the last path leads to */
	uint32_t calls, repairs, connects, freed;
	int connection_error;
	const struct ibv_ah *last_destroyed;
} fake;

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	fake.qpn = attr->dlid;
	if (fake.error) {
		errno = fake.error < 0 ? 0 : fake.error;
		return NULL;
	}
	assert_true(fake.made < 256);
	return &handle[fake.made++];
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	fake.destroyed++;
	fake.last_destroyed = ah;
	return 0;
}

struct ibv_ah_attr verbs_path(const struct verbs_wire *wire, const struct verbs_addr *a)
{
	assert_ptr_equal(wire, w);
	return (struct ibv_ah_attr){ .dlid = (uint16_t)a->qpn };
}

struct verbs_connection *verbs_connection_make(const struct verbs_wire *wire)
{
	assert_ptr_equal(wire, w);
	errno = fake.connection_error;
	return fake.connection_error ? NULL : &connection;
}

void verbs_connection_connect(struct verbs_wire *wire, struct verbs_peer *p)
{
	assert_ptr_equal(wire, w);
	assert_true(p->connection->taken);
	fake.connects++;
}

void verbs_connection_free(struct verbs_connection *l)
{
	assert_ptr_equal(l, &connection);
	fake.freed++;
}

void verbs_repair(struct verbs_wire *wire)
{
	assert_ptr_equal(wire, w);
	fake.repairs++;
}

void verbs_events(struct verbs_wire *wire)
{
	assert_ptr_equal(wire, w);
}

static void call(struct wire_base *base, wire_fn *fn, void *arg)
{
	assert_ptr_equal(base, &w->base);
	fake.calls++;
	fn(arg, 7);
}

static struct verbs_addr addr(uint32_t qpn)
{
	return (struct verbs_addr){ .gid = { 0xfe, 0x80 },
				    .qpn = qpn,
				    .mode = VERBS_UD,
				    .link = IBV_LINK_LAYER_ETHERNET,
				    .mtu = IBV_MTU_1024,
				    .gid_type = 1 + IBV_GID_TYPE_ROCE_V2,
				    .id = 1000 + qpn };
}

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	memset(&connection, 0, sizeof(connection));
	w = calloc(1, sizeof(*w));
	w->self = addr(1);
	w->base.call = call;
	w->wake_fd = eventfd(0, EFD_NONBLOCK);
	return 0;
}

static int teardown(void **state)
{
	verbs_peers_free(w);
	assert_int_equal(fake.destroyed, fake.made);
	close(w->wake_fd);
	free(w);
	return 0;
}

static int begin(struct verbs_addr a, const char **why)
{
	struct nbnic_addr out = { { 0 } };

	memcpy(out.byte, &a, sizeof(a));
	return verbs_peer_begin(&w->base, &out, why);
}

static void end(struct verbs_addr a)
{
	struct nbnic_addr out = { { 0 } };

	memcpy(out.byte, &a, sizeof(a));
	verbs_peer_end(&w->base, &out);
}

static struct verbs_peer *find(uint32_t qpn)
{
	struct verbs_addr a = addr(qpn);

	return verbs_peer_find(w, &a);
}

/* A peer of two groups lives until both have ended; one end more does nothing. */
static void groups_share_a_peer(void **state)
{
	const char *why;

	assert_int_equal(begin(addr(5), &why), 0);
	assert_int_equal(fake.qpn, 5);
	assert_int_equal(begin(addr(5), &why), 0);
	assert_int_equal(fake.made, 1);
	assert_ptr_equal(find(5)->ah, &handle[0]);
	assert_int_equal(find(5)->users, 2);
	assert_int_equal(w->nstranger, 0);
	end(addr(5));
	assert_non_null(find(5));
	assert_int_equal(fake.destroyed, 0);
	end(addr(5));
	assert_null(find(5));
	assert_int_equal(fake.destroyed, 1);
	end(addr(5));
	assert_int_equal(fake.destroyed, 1);
}

static void itself(void **state)
{
	const char *why;

	assert_int_equal(begin(addr(1), &why), 0);
	end(addr(1));
	assert_int_equal(fake.made, 0);
}

static void is_refused(struct verbs_addr a, int error, const char *words)
{
	const char *why = "";

	assert_int_equal(begin(a, &why), error);
	require(strstr(why, words) != NULL, "'%s' instead of '%s'", why, words);
	assert_int_equal(fake.made, 0);
	assert_int_equal(w->nstranger, 0);
}

static void refusals(void **state)
{
	struct verbs_addr a = addr(5);

	a.link = IBV_LINK_LAYER_INFINIBAND;
	is_refused(a, -EPROTO, "InfiniBand");
	a = addr(5);
	a.gid_type = 1 + IBV_GID_TYPE_ROCE_V1;
	is_refused(a, -EPROTO, "versions of RoCE");
	a = addr(5);
	memset(a.gid, 0, sizeof(a.gid));
	a.gid[10] = a.gid[11] = 0xff;
	is_refused(a, -EPROTO, "IPv4");
	a = addr(5);
	a.mode = VERBS_WRITE_RC;
	is_refused(a, -EPROTO, "the same mode=");
	w->self.mode = VERBS_WRITE_UC;
	is_refused(a, -EPROTO, "mode=write is what suits");
	w->self.mode = VERBS_UD;
	a = addr(5);
	a.mtu = IBV_MTU_4096;
	is_refused(a, -EPROTO, "MTU");
	fake.error = ETIMEDOUT;
	is_refused(addr(5), -ETIMEDOUT, "cannot be reached");
	fake.error = -1;
	is_refused(addr(5), -EHOSTUNREACH, "cannot be reached");
	fake.error = 0;
	w->dead = "it has no device";
	is_refused(addr(5), -ENETDOWN, "it has no device");
	is_refused(addr(1), -ENETDOWN, "it has no device");
}

/* A restarted NIC has the same queue pair, and another id. */
static void another_id(void **state)
{
	struct verbs_addr a = addr(5);
	const char *why;

	assert_int_equal(begin(a, &why), 0);
	a.id++;
	assert_int_equal(begin(a, &why), 0);
	assert_int_equal(fake.made, 1);
	assert_true(verbs_addr_of(&find(5)->addr).id == a.id);
}

/* Hosts number their queue pairs alike. */
static void another_host(void **state)
{
	struct verbs_addr a = addr(5);
	const char *why;

	a.gid[0]++;
	assert_int_equal(begin(addr(5), &why), 0);
	assert_int_equal(begin(a, &why), 0);
	assert_int_equal(fake.made, 2);
	end(addr(5));
	assert_null(find(5));
	assert_ptr_equal(verbs_peer_find(w, &a)->ah, &handle[1]);
}

static void serve(void)
{
	const uint64_t n = 1;

	assert_int_equal(write(w->wake_fd, &n, sizeof(n)), sizeof(n));
	verbs_serve(&w->base);
}

static void stranger(uint32_t qpn)
{
	w->want = addr(qpn);
	w->wanted = true;
	serve();
	assert_false(w->wanted);
}

/* The oldest stranger makes room, and never a peer of a group. */
static void strangers(void **state)
{
	const char *why;

	stranger(1); /* itself */
	assert_int_equal(fake.made, 0);
	for (uint32_t i = 0; i < VERBS_STRANGERS_MAX; i++)
		stranger(100 + i);
	stranger(100); /* known already */
	assert_int_equal(fake.made, VERBS_STRANGERS_MAX);
	assert_int_equal(begin(addr(100), &why), 0); /* now a peer */
	assert_int_equal(w->nstranger, VERBS_STRANGERS_MAX - 1);
	stranger(200);
	assert_int_equal(fake.destroyed, 0);
	stranger(201);
	assert_int_equal(fake.destroyed, 1);
	assert_ptr_equal(fake.last_destroyed, &handle[1]);
	assert_null(find(101));
	assert_non_null(find(100));
	assert_non_null(find(201));
	assert_int_equal(w->nstranger, VERBS_STRANGERS_MAX);
	end(addr(102)); /* a stranger has no group that could end */
	assert_non_null(find(102));
}

static void connections(void **state)
{
	struct verbs_addr a = addr(5);
	const char *why;

	w->self.mode = a.mode = VERBS_WRITE_RC;
	fake.connection_error = ENOMEM;
	assert_int_equal(begin(a, &why), -ENOMEM);
	assert_non_null(strstr(why, "ulimit -l"));
	fake.connection_error = EINVAL;
	assert_int_equal(begin(a, &why), -EINVAL);
	assert_non_null(strstr(why, "no queue pair left"));
	assert_int_equal(w->nstranger, 1); /* until a group has it */
	fake.connection_error = 0;
	assert_int_equal(begin(a, &why), 0);
	assert_int_equal(begin(a, &why), 0);
	assert_int_equal(w->nstranger, 0);
	assert_ptr_equal(w->connections, find(5));
	assert_null(find(5)->next_connection);
	/* The control thread connects it once. */
	serve();
	assert_int_equal(fake.connects, 0);
	connection.state = VERBS_CONNECTION_MAKING;
	serve();
	serve();
	assert_int_equal(fake.connects, 1);
	end(a);
	assert_int_equal(fake.freed, 0);
	end(a);
	assert_int_equal(fake.freed, 1);
	assert_null(w->connections);
}

static void repairs(void **state)
{
	w->broken = true;
	verbs_serve(&w->base); /* nobody has called */
	assert_int_equal(fake.repairs, 0);
	serve();
	assert_int_equal(fake.repairs, 1);
	w->broken = false;
	serve();
	assert_int_equal(fake.repairs, 1);
}

UNIT_MAIN(NULL, NULL, UNIT_IN(groups_share_a_peer, setup, teardown),
	  UNIT_IN(itself, setup, teardown), UNIT_IN(refusals, setup, teardown),
	  UNIT_IN(another_id, setup, teardown), UNIT_IN(another_host, setup, teardown),
	  UNIT_IN(strangers, setup, teardown), UNIT_IN(connections, setup, teardown),
	  UNIT_IN(repairs, setup, teardown))
#else
int main(void)
{
	puts("1..1\nok 1 - peers of verbs # SKIP this build has none: apt-get install libibverbs-dev");
	return 0;
}
#endif
