/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_signal.c - the signal service: the rings without a NIC, then the service with real
 * NICs.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/unit.h"
#include "cluster.h"
#include "unit/inproc.h"
#include "internal.h"

#define CELL 3u
#define RING NBAR_SIGNALS_MAX

static struct nbar_page page;
static struct nbar_port port;
static struct nbar_group group;
static int daemon_end;

/* Rings whose counts are at `sequence`. */
static void set_up(uint32_t sequence)
{
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	daemon_end = sv[1];
	memset(&page, 0, sizeof(page));
	page.sends_taken = sequence;
	for (uint32_t i = 0; i < RING; i++)
		page.recv[(sequence - RING + i) % RING].seq = sequence - RING + i + 1;
	port = (struct nbar_port){
		.link = { .sock = sv[0], .nic = "n0" },
		.page = &page,
		.sends_put = sequence,
		.sends_taken = sequence,
		.recvs_taken = sequence,
		.recvs_told = sequence,
	};
	group = (struct nbar_group){
		.port = &port,
		.connected = true,
		.is_signal = true,
		.cell = CELL,
		.size = 9,
		.npeer = 8,
	};
	port.group[CELL] = &group;
}

static void tear_down(void)
{
	close(port.link.sock);
	close(daemon_end);
}

/* The group was opened at count 0. It receives messages after 2^31 others, and when the counts
 * wrap. */
static const uint32_t sequences[] = { 0, 1000, INT32_MAX - 500, UINT32_MAX - 500 };

static int send_one(uint32_t value)
{
	const uint32_t word[NBAR_SIGNAL_WORDS] = { value, 1, 2, 3, ~value };

	return nbar_signal_send(&group, value % 8, word);
}

static void a_full_send_ring_says_so(void **state)
{
	for (size_t n = 0; n < sizeof(sequences) / sizeof(sequences[0]); n++) {
		uint32_t sequence = sequences[n];

		set_up(sequence);
		for (uint32_t i = 0; i < RING; i++)
			require_ok(send_one(i));
		for (uint32_t i = 0; i < RING; i++) {
			const struct nbar_signal *e = &page.send[(sequence + i) % RING];

			require(e->seq == sequence + i + 1 && e->cell == CELL && e->peer == i % 8 &&
					e->word[0] == i && e->word[4] == ~i,
				"entry %u", i);
		}
		/* At each 256th refusal the library also checks that the NIC is there; the result
		 * stays the same. */
		for (uint32_t i = 0; i < 600; i++)
			require(send_one(0) == -EAGAIN, "%s", nbar_error());
		assert_non_null(strstr(nbar_error(), "1024"));
		page.sends_taken += 10;
		for (uint32_t i = 0; i < 10; i++)
			require_ok(send_one(i));
		assert_int_equal(send_one(0), -EAGAIN);
		tear_down();
	}
}

static void a_dead_daemon_leaves_no_one_trying(void **state)
{
	int rc = 0;

	set_up(0);
	for (uint32_t i = 0; i < RING; i++)
		require_ok(send_one(i));
	shutdown(daemon_end, SHUT_RDWR);
	/* The call that notices the end says so. */
	for (uint32_t i = 0; i < 1000 && port.link.down == NBLIB_UP; i++)
		rc = send_one(0);
	assert_int_equal(rc, -ENETDOWN);
	tear_down();
}

static void bad_sends_are_refused(void **state)
{
	const uint32_t word[NBAR_SIGNAL_WORDS] = { 0 };

	set_up(0);
	assert_int_equal(nbar_signal_send(&group, 8, word), -EINVAL);
	assert_string_equal(nbar_error(), "peer 8: the group has peers 0 to 7");
	group.connected = false;
	assert_int_equal(nbar_signal_send(&group, 0, word), -ENOTCONN);
	group.is_signal = false;
	assert_int_equal(nbar_signal_send(&group, 0, word), -EINVAL);
	assert_int_equal(port.sends_put, 0);
	assert_int_equal(page.send[0].seq, 0);
	tear_down();
}

static void deliver(uint32_t sequence, uint32_t cell, uint32_t value)
{
	page.recv[sequence % RING] = (struct nbar_signal){
		.seq = sequence + 1,
		.cell = cell,
		.peer = value % 9,
		.word = { value },
	};
}

static void receives_in_order_and_tells(void **state)
{
	struct nbar_signal_in in;

	for (size_t n = 0; n < sizeof(sequences) / sizeof(sequences[0]); n++) {
		uint32_t sequence = sequences[n], told;

		set_up(sequence);
		assert_int_equal(nbar_signal_recv(&port, &in), 0);
		for (uint32_t i = 0; i < RING; i++)
			deliver(sequence + i, CELL, i);
		told = page.recvs_taken = sequence;
		for (uint32_t i = 0; i < RING; i++) {
			require(nbar_signal_recv(&port, &in) == 1, "message %u", i);
			require(in.group == &group && in.src == i % 9 && in.word[0] == i,
				"message %u", i);
			require(sequence + i + 1 - page.recvs_taken < 64, "told late at %u", i);
			told = page.recvs_taken;
		}
		deliver(sequence + RING, CELL, 1);
		assert_int_equal(nbar_signal_recv(&port, &in), 1);
		assert_int_equal(page.recvs_taken, told);
		assert_int_equal(nbar_signal_recv(&port, &in), 0);
		assert_int_equal(page.recvs_taken, sequence + RING + 1); /* the ring is empty */
		tear_down();
	}
}

static void messages_of_no_group_are_skipped(void **state)
{
	struct nbar_signal_in in = { .src = 77 };

	set_up(0);
	deliver(0, CELL + 1, 1);
	deliver(1, NBAR_GROUPS_MAX, 2);
	deliver(2, UINT32_MAX, 3);
	deliver(3, CELL, 4);
	assert_int_equal(nbar_signal_recv(&port, &in), 1);
	assert_int_equal(in.word[0], 4);
	assert_int_equal(nbar_signal_recv(&port, &in), 0);
	tear_down();
}

/* A new group in a cell does not get messages for the previous group; groups in other cells get
 * their messages. */
static void old_messages_are_dropped(void **state)
{
	struct nbar_group other = { .port = &port, .connected = true, .is_signal = true };
	struct nbar_signal_in in;

	for (size_t n = 0; n < sizeof(sequences) / sizeof(sequences[0]); n++) {
		uint32_t sequence = sequences[n];

		set_up(sequence);
		port.group[CELL + 1] = &other;
		/* The NIC may be writing a message that is not ready. */
		page.recv[(sequence + 3) % RING].cell = CELL;
		nblib_signal_drop(&port, CELL);
		assert_int_equal(page.recv[(sequence + 3) % RING].cell, CELL);
		for (uint32_t i = 0; i < RING; i++)
			deliver(sequence + i, i == 7 ? CELL + 1 : CELL, i);
		nblib_signal_drop(&port, CELL);
		assert_int_equal(nbar_signal_recv(&port, &in), 1);
		assert_ptr_equal(in.group, &other);
		assert_int_equal(in.word[0], 7);
		assert_int_equal(nbar_signal_recv(&port, &in), 0);
		deliver(sequence + RING, CELL, 5);
		assert_int_equal(nbar_signal_recv(&port, &in), 1);
		assert_int_equal(in.word[0], 5);
		tear_down();
	}
}

/* --- through real NICs --------------------------------------------------------------------- */

static int recv_some(struct nbar_port *p, struct nbar_signal_in *in)
{
	for (uint32_t i = 0; i < 20000; i++) {
		if (nbar_signal_recv(p, in) == 1)
			return 1;
		breathe();
	}
	return 0;
}

static void everyone_reaches_everyone(void **state)
{
	struct inproc *nics = inproc_start(3, NULL);
	struct cluster c;
	uint32_t got[5][5] = { { 0 } };

	cluster_start(&c, 5, 3, "signal");
	for (uint32_t r = 0; r < 5; r++) {
		const uint32_t *ranks;

		assert_int_equal(nbar_group_peers(c.g[r], &ranks), 4);
		for (uint32_t p = 0; p < 4; p++) {
			const uint32_t word[NBAR_SIGNAL_WORDS] = { r, ranks[p], 0, 0, 99 };

			assert_int_equal(ranks[p], p < r ? p : p + 1);
			require_ok(nbar_signal_send(c.g[r], p, word));
		}
	}
	for (uint32_t r = 0; r < 5; r++) {
		struct nbar_signal_in in;

		for (uint32_t i = 0; i < 4; i++) {
			assert_int_equal(recv_some(c.port[r], &in), 1);
			assert_ptr_equal(in.group, c.g[r]);
			assert_int_equal(in.word[0], in.src);
			assert_int_equal(in.word[1], r);
			assert_int_equal(in.word[4], 99);
			assert_int_equal(got[r][in.src]++, 0);
		}
		assert_int_equal(nbar_signal_recv(c.port[r], &in), 0);
	}
	assert_int_equal(nbar_post(c.g[0], NULL), -EINVAL);
	cluster_end(&c);
	inproc_stop(nics);
}

/* A host that does not receive loses only the messages that do not fit. Messages of an old group do
 * not reach a new group in the same cell. */
static void a_full_receive_ring_drops(void **state)
{
	struct inproc *nics = inproc_start(2, NULL);
	struct nbar_group_attr attr = { .rank = 1, .size = 2, .alg = "signal", .tag = 7 };
	struct nbar_rep_nic_stat stat;
	struct nbar_signal_in in;
	struct cluster c;

	cluster_start(&c, 2, 2, "signal");
	for (uint32_t i = 0; i < RING + 100; i++) {
		const uint32_t word[NBAR_SIGNAL_WORDS] = { i };
		int rc;

		while ((rc = nbar_signal_send(c.g[0], 0, word)) == -EAGAIN)
			breathe();
		require_ok(rc);
	}
	do {
		breathe();
		require_ok(nbar_nic_stat("n1", &stat));
	} while (stat.counter[NBAR_COUNTER_signals_received] +
			 stat.counter[NBAR_COUNTER_signals_dropped] <
		 RING + 100);
	assert_int_equal(stat.counter[NBAR_COUNTER_signals_dropped], 100);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(nbar_signal_recv(c.port[1], &in), 1);
		assert_int_equal(in.word[0], i);
	}
	nbar_group_close(c.g[1]);
	require_ok(nbar_group_open(c.port[1], &attr, &c.g[1], &c.endpoint[1]));
	assert_int_equal(nbar_signal_recv(c.port[1], &in), 0);
	cluster_end(&c);
	inproc_stop(nics);
}

UNIT_MAIN(NULL, NULL, UNIT(a_full_send_ring_says_so), UNIT(a_dead_daemon_leaves_no_one_trying),
	  UNIT(bad_sends_are_refused), UNIT(receives_in_order_and_tells),
	  UNIT(messages_of_no_group_are_skipped), UNIT(old_messages_are_dropped),
	  UNIT(everyone_reaches_everyone), UNIT(a_full_receive_ring_drops))
