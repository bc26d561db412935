/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ports.c - the ports of a rank: when the glue keeps a port of another rank, and when it
 * closes it.
 *
 * Without an MPI, against a real NIC. The leader of the group is another port of this program.
 */
#include "comm_internal.h"
#include "unit/nics.h"
#include "unit/unit.h"

struct leader {
	struct nbar_port *port;
	struct nbar_group *group;
	struct nbar_share share, wrong; /* wrong: the port has no such group */
};

static void lead(struct leader *l)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 2 };
	struct nbar_endpoint endpoint;

	require(nbar_open("n0", &l->port) == 0, "%s", nbar_error());
	require(nbar_group_open(l->port, &attr, &l->group, &endpoint) == 0, "%s", nbar_error());
	nbar_group_share(l->group, &l->share);
	l->wrong = l->share;
	l->wrong.cell++;
}

static void lead_another(const struct leader *l, struct nbar_share *share)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 2 };
	struct nbar_endpoint endpoint;
	struct nbar_group *g;

	require(nbar_group_open(l->port, &attr, &g, &endpoint) == 0, "%s", nbar_error());
	nbar_group_share(g, share);
}

static void a_failed_attach_leaves_no_port(void **state)
{
	struct nbmpi_comm c = { .rank = 1, .size = 2 };
	struct leader l;

	lead(&l);
	assert_int_equal(nbmpi_port_attach_group(&c, "n0", &l.wrong), NBMPI_WHY_attach);
	assert_null(nbmpi_self.ports);
	assert_true(nbar_error()[0] != '\0');
	nbar_close(l.port);
}

/* The next group may be on the same port. If that group cannot be attached, nothing needs the port.
 */
static void a_port_is_kept_for_the_next_group(void **state)
{
	struct nbmpi_comm c = { .rank = 1, .size = 2 };
	struct leader l;

	lead(&l);
	assert_int_equal(nbmpi_port_attach_group(&c, "n0", &l.share), NBMPI_WHY_none);
	nbmpi_port_close_group(&c);
	assert_non_null(nbmpi_self.ports);
	assert_int_equal(nbmpi_port_attach_group(&c, "n0", &l.wrong), NBMPI_WHY_attach);
	assert_null(nbmpi_self.ports);
	nbar_close(l.port);
}

static void a_port_with_groups_stays(void **state)
{
	struct nbmpi_comm c = { .rank = 1, .size = 2 }, other = c;
	struct nbar_share second;
	struct leader l;

	lead(&l);
	assert_int_equal(nbmpi_port_attach_group(&c, "n0", &l.share), NBMPI_WHY_none);
	lead_another(&l, &second);
	assert_int_equal(nbmpi_port_attach_group(&other, "n0", &second), NBMPI_WHY_none);
	assert_ptr_equal(other.port, c.port);
	nbmpi_port_close_group(&other);
	assert_int_equal(nbmpi_port_attach_group(&other, "n0", &l.wrong), NBMPI_WHY_attach);
	assert_ptr_equal(nbmpi_self.ports, c.port);
	nbmpi_port_close_group(&c);
	nbmpi_ports_close();
	assert_null(nbmpi_self.ports);
	nbar_close(l.port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_failed_attach_leaves_no_port),
		UNIT(a_port_is_kept_for_the_next_group),
		UNIT(a_port_with_groups_stays),
	};

	return run_with_nics(1, tests);
}
