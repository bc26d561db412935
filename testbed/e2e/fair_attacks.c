/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair_attacks.c - the attacks on the bystander: legal requests, plans and doorbells, as many as a
 * client may have.
 *
 * The function pass() of an attack never blocks: it fills free entries, and sends a request only if
 * no request of this client is under way.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "fair.h"

#define WIDE NBAR_SENDS_MAX /* sends, or slots, of the largest plan */
#define LINEAR (NBAR_SLOTS_MAX + 1u)
#define ENDPOINTS_A_MESSAGE                                \
	((NBAR_MESSAGE_MAX - sizeof(struct nbar_request) - \
	  sizeof(struct nbar_req_group_connect)) /         \
	 sizeof(struct nbar_endpoint))
#define PAIRS_A_PASS 4u
#define ENTRIES_A_PASS NBAR_SIGNALS_MAX
#define HIGH_CELL 950u

static uint32_t tag = 1000; /* each group here has another tag */

static bool keep_said(struct fair *f, const struct raw *r)
{
	snprintf(f->said, sizeof(f->said), "%s", r->reply.head.text);
	return false;
}

/* --- plans that the client uploads ----------------------------------------------------------- */

/* A request for a plan of one step. */
struct plan_request {
	struct nbar_req_group_open open;
	struct nbar_plan head;
	struct nbar_step step;
	uint32_t word[3 * WIDE]; /* sends, receives */
};

static void plan_begin(struct plan_request *p, uint32_t rank, uint32_t size, uint32_t nsend,
		       uint32_t nrecv)
{
	memset(p, 0, sizeof(*p));
	strcpy(p->open.alg, "custom");
	p->open.rank = rank;
	p->open.size = size;
	p->open.tag = tag;
	p->head = (struct nbar_plan){ NBAR_PLAN_MAGIC, rank, size, 1, nsend, nrecv };
	p->step = (struct nbar_step){ 0, nsend, 0, nrecv };
	p->open.plan_length =
		(uint32_t)(sizeof(p->head) + sizeof(p->step) + nsend * sizeof(struct nbar_send) +
			   nrecv * sizeof(struct nbar_recv));
}

static void plan_send(struct plan_request *p, uint32_t i, uint32_t dst, uint32_t slot)
{
	p->word[2 * i] = dst;
	p->word[2 * i + 1] = slot;
}

static void plan_receive(struct plan_request *p, uint32_t i, uint32_t src)
{
	p->word[2 * p->head.nsend + i] = src;
}

static size_t plan_bytes(const struct plan_request *p)
{
	return sizeof(p->open) + p->open.plan_length;
}

static int plan_open(struct raw *r, const struct plan_request *p)
{
	return raw_ask(r, NBAR_OP_GROUP_OPEN, p, plan_bytes(p));
}

/* Makes the plan of a rank: rank 1 signals each of the WIDE slots of rank 0; rank 0 signals the
 * only slot of rank 1. */
static void wide_plan(struct plan_request *p, uint32_t rank)
{
	plan_begin(p, rank, 2, rank ? WIDE : 1, rank ? 1 : WIDE);
	for (uint32_t i = 0; i < p->head.nsend; i++)
		plan_send(p, i, !rank, i);
	for (uint32_t i = 0; i < p->head.nrecv; i++)
		plan_receive(p, i, !rank);
}

static void opened(struct raw *r, uint32_t *cell, struct nbar_endpoint *endpoint)
{
	struct nbar_rep_group_open rep;

	memcpy(&rep, r->reply.body, sizeof(rep));
	*cell = rep.cell;
	*endpoint = rep.endpoint;
}

/* Opens a group of two, with one request for each rank, and connects it. */
static bool pair_open(struct fair *f, struct raw *r[2], struct plan_request p[2])
{
	struct fair_pair *pair = &f->pair[f->npair];
	struct nbar_endpoint endpoint[2];

	for (uint32_t i = 0; i < 2; i++) {
		if (plan_open(r[i], &p[i]) != 0)
			return keep_said(f, r[i]);
		opened(r[i], &pair->cell[i], &endpoint[i]);
		pair->client[i] = r[i];
		pair->posted[i] = 0;
	}
	tag++;
	for (uint32_t i = 0; i < 2; i++)
		if (raw_group_connect(r[i], pair->cell[i], &endpoint[!i], 1) != 0)
			return keep_said(f, r[i]);
	f->npair++;
	return true;
}

bool fair_wide(struct fair *f, struct raw *receiver, struct raw *sender)
{
	static struct plan_request p[2];
	struct raw *r[2] = { receiver, sender };

	for (uint32_t i = 0; i < 2; i++)
		wide_plan(&p[i], i);
	return pair_open(f, r, p);
}

/* --- doorbells: as far ahead as a host may post ---------------------------------------------- */

static uint32_t completed(const struct fair_pair *p, int i)
{
	return (uint32_t)__atomic_load_n(&p->client[i]->page->completion[p->cell[i]].word,
					 __ATOMIC_ACQUIRE);
}

void fair_pass_pairs(struct fair *f)
{
	for (uint32_t k = 0; k < PAIRS_A_PASS && k < f->npair; k++) {
		struct fair_pair *p = &f->pair[f->next];

		f->next = f->next + 1 < f->npair ? f->next + 1 : 0;
		for (int i = 0; i < 2; i++) {
			uint32_t posted = completed(p, i) + NBAR_POSTED_MAX;

			if (posted != p->posted[i])
				raw_post(p->client[i], p->cell[i], posted);
			p->posted[i] = posted;
		}
	}
}

uint64_t fair_sent(const struct fair *f)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->npair; i++)
		n += (uint64_t)completed(&f->pair[i], 1) * WIDE;
	for (uint32_t c = 0; c < f->nclient; c++)
		if (f->client[c].page)
			n += __atomic_load_n(&f->client[c].page->sends_taken, __ATOMIC_RELAXED);
	return n;
}

static bool begin_wide(struct fair *f, uint32_t n)
{
	struct raw *receiver = fair_client(f, 1), *sender = fair_client(f, 0);

	for (uint32_t i = 0; i < n; i++)
		if (!receiver || !sender || !fair_wide(f, receiver, sender))
			return false;
	return true;
}

/* Opens rank 0 of a linear group. All its peers get the same endpoint address, of a member that
 * does not arrive. */
static bool linear_open(struct fair *f, struct raw *r, const struct nbar_endpoint *one)
{
	static struct nbar_endpoint endpoint[NBAR_SLOTS_MAX];
	struct fair_pair *p = &f->pair[f->npair];
	struct nbar_endpoint own;

	if (raw_group_open(r, "linear", 0, LINEAR, tag) != 0)
		return keep_said(f, r);
	opened(r, &p->cell[0], &own);
	p->client[0] = p->client[1] = r;
	p->cell[1] = p->cell[0];
	f->npair++;
	for (uint32_t i = 0; i < NBAR_SLOTS_MAX; i++) {
		uint32_t rank = i + 1;

		endpoint[i] = *one;
		memcpy(endpoint[i].byte + 12, &rank, sizeof(rank));
	}
	for (uint32_t i = 0, n; i < NBAR_SLOTS_MAX; i += n) {
		n = NBAR_SLOTS_MAX - i < ENDPOINTS_A_MESSAGE ? NBAR_SLOTS_MAX - i
							     : ENDPOINTS_A_MESSAGE;
		if (raw_group_connect(r, p->cell[0], &endpoint[i], n) != 0)
			return keep_said(f, r);
	}
	return true;
}

static bool begin_linear(struct fair *f, uint32_t n)
{
	struct raw *r = fair_client(f, 0), *other = fair_client(f, 1);
	struct nbar_endpoint one;
	uint32_t cell;

	if (!r || !other || raw_group_open(other, "linear", 1, LINEAR, ++tag) != 0)
		return other && keep_said(f, other);
	opened(other, &cell, &one);
	/* A NIC may refuse the last groups, because its memory is full. */
	bool all = true;

	for (uint32_t i = 0; all && i < n; i++)
		all = linear_open(f, r, &one);
	for (uint32_t i = 0; i < f->npair; i++)
		raw_post(r, f->pair[i].cell[0], 1);
	return all;
}

/* --- raw signals ----------------------------------------------------------------------------- */

static bool begin_signals(struct fair *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct raw *r = fair_client(f, 0), *to = r ? fair_client(f, 1) : NULL;
		struct nbar_endpoint endpoint, first;
		uint32_t cell;

		if (!to || raw_group_open(to, "signal", 1, 2, tag) != 0)
			return to && keep_said(f, to);
		opened(to, &cell, &endpoint);
		if (raw_group_open(r, "signal", 0, 2, tag) != 0)
			return keep_said(f, r);
		opened(r, &cell, &first);
		if (raw_group_connect(r, 0, &endpoint, 1) != 0)
			return keep_said(f, r);
		if (raw_group_connect(to, 0, &first, 1) != 0)
			return keep_said(f, to);
		tag++;
	}
	return true;
}

/* Clients 0, 2, 4 ... send. */
static void pass_signals(struct fair *f)
{
	for (uint32_t c = 0; c < f->nclient; c += 2) {
		struct nbar_page *page = f->client[c].page;
		uint32_t taken = __atomic_load_n(&page->sends_taken, __ATOMIC_ACQUIRE);

		for (uint32_t i = 0; i < ENTRIES_A_PASS && f->given[c] - taken < NBAR_SIGNALS_MAX;
		     i++) {
			struct nbar_signal *e = &page->send[f->given[c] % NBAR_SIGNALS_MAX];

			e->cell = e->peer = 0;
			__atomic_store_n(&e->seq, ++f->given[c], __ATOMIC_RELEASE);
		}
	}
}

/* --- cells and ports ------------------------------------------------------------------------- */

/* Each port keeps a group only in its highest cell. Groups of the algorithm "signal" fill the lower
 * cells until then, because such groups do not linger when closed. */
static bool begin_high_cells(struct fair *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct raw *r = fair_client(f, 0);

		for (uint32_t cell = 0; r && cell < HIGH_CELL; cell++)
			if (raw_group_open(r, "signal", 0, 2, tag) != 0)
				return keep_said(f, r);
		if (!r || raw_group_open(r, "pairwise", 0, 2, tag++) != 0)
			return r && keep_said(f, r);
		for (uint32_t cell = 0; cell < HIGH_CELL; cell++)
			if (raw_group_close(r, cell) != 0)
				return keep_said(f, r);
	}
	return true;
}

/* --- requests -------------------------------------------------------------------------------- */

static bool request_send(struct fair *f, uint32_t c, enum nbar_op op, const void *body, size_t n)
{
	f->request_pending[c] = raw_request(&f->client[c], op, body, n) == 0;
	return f->request_pending[c];
}

/* True if the reply has come. */
static bool request_heard(struct fair *f, uint32_t c)
{
	struct raw *r = &f->client[c];
	char byte;

	if (recv(r->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) <= 0)
		return false;
	raw_hear(r);
	f->request_pending[c] = false;
	f->replies++;
	return true;
}

/* Clients 0 and 1 have waiting groups with as many slots as a plan may have; the other clients ask
 * for the state of these groups. */
static bool begin_stat(struct fair *f, uint32_t n)
{
	struct raw *receiver = fair_client(f, 0), *sender = fair_client(f, 1);

	for (uint32_t i = 0; i < 8; i++)
		if (!receiver || !sender || !fair_wide(f, receiver, sender))
			return false;
	for (uint32_t i = 0; i < 8; i++)
		raw_post(receiver, f->pair[i].cell[0], 1);
	for (uint32_t i = 0; i < n; i++)
		if (!fair_client(f, 0))
			return false;
	return true;
}

static void pass_stat(struct fair *f)
{
	struct nbar_req_group_stat req = { 0 };
	struct nbar_rep_group_stat rep;

	for (uint32_t c = 2; c < f->nclient; c++) {
		if (f->request_pending[c] && request_heard(f, c)) {
			memcpy(&rep, f->client[c].reply.body, sizeof(rep));
			f->at[c] = rep.next;
		}
		req.first = f->at[c];
		if (!f->request_pending[c])
			request_send(f, c, NBAR_OP_GROUP_STAT, &req, sizeof(req));
	}
}

static bool begin_falling(struct fair *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!fair_client(f, 0))
			return false;
	return true;
}

/* Each client opens a group with the greatest number of peers, in descending order, and closes it.
 */
static void pass_falling(struct fair *f)
{
	static struct plan_request p;
	struct nbar_req_group_close close = { 0 };

	if (p.head.magic == 0) {
		plan_begin(&p, 0, WIDE + 1, WIDE, 1);
		for (uint32_t i = 0; i < WIDE; i++)
			plan_send(&p, i, WIDE - i, 0);
		plan_receive(&p, 0, WIDE);
	}
	for (uint32_t c = 0; c < f->nclient; c++) {
		struct raw *r = &f->client[c];

		if (f->request_pending[c] && request_heard(f, c))
			f->at[c] =
				r->reply.head.op == NBAR_OP_GROUP_OPEN && r->reply.head.status == 0;
		if (f->request_pending[c])
			continue;
		if (f->at[c])
			request_send(f, c, NBAR_OP_GROUP_CLOSE, &close, sizeof(close));
		else
			request_send(f, c, NBAR_OP_GROUP_OPEN, &p, plan_bytes(&p));
	}
}

/* --- the table ------------------------------------------------------------------------------- */

#define REPLIES NBAR_COUNTER_END

const struct fair_attack fair_attacks[] = {
	{ "wide-1", "a pair of plans with 4,096 sends and as many slots", FAIR_UDP, FAIR_PAIR, 1, 1,
	  begin_wide, fair_pass_pairs, WIDE, NBAR_COUNTER_tokens_sent },
	{ "wide-16", "16 such pairs", FAIR_UDP, FAIR_PAIR, 16, 16, begin_wide, fair_pass_pairs,
	  WIDE, NBAR_COUNTER_tokens_sent },
	{ "wide-64", "64 such pairs", FAIR_UDP, FAIR_PAIR, 64, 64, begin_wide, fair_pass_pairs,
	  WIDE, NBAR_COUNTER_tokens_sent },
	{ "wide-ring", "16 such pairs, on the wire ring", FAIR_RING, FAIR_RING, 16, 16, begin_wide,
	  fair_pass_pairs, WIDE, NBAR_COUNTER_tokens_sent },
	{ "signals-1", "one port sends signals without a pause", FAIR_UDP, FAIR_SMALL, 1, 1,
	  begin_signals, pass_signals, 1000, NBAR_COUNTER_signals_sent },
	{ "signals-4", "four ports do", FAIR_UDP, FAIR_SMALL, 4, 4, begin_signals, pass_signals,
	  1000, NBAR_COUNTER_signals_sent },
	{ "signals-ring", "four ports do, on the wire ring", FAIR_RING, FAIR_RING, 4, 4,
	  begin_signals, pass_signals, 1000, NBAR_COUNTER_signals_sent },
	{ "high-cells-34", "34 ports, each with one group in a high cell", FAIR_RING, FAIR_RING, 34,
	  8, begin_high_cells, NULL, 0, REPLIES },
	{ "high-cells-61", "61 ports, likewise", FAIR_RING, FAIR_RING, 61, 8, begin_high_cells,
	  NULL, 0, REPLIES },
	{ "stat-1", "one client asks for the state of groups that wait for 4,096 slots", FAIR_RING,
	  FAIR_RING, 1, 1, begin_stat, pass_stat, 10, REPLIES },
	{ "stat-4", "four clients do", FAIR_RING, FAIR_RING, 4, 4, begin_stat, pass_stat, 10,
	  REPLIES },
	{ "falling", "a client opens groups whose 4,096 peers come in falling order", FAIR_RING,
	  FAIR_RING, 1, 1, begin_falling, pass_falling, 2, REPLIES },
	{ "linear-udp", "32 linear groups of 4,097, of which one member arrives", FAIR_UDP,
	  FAIR_PAIR, 32, 32, begin_linear, NULL, 1000, NBAR_COUNTER_pulls_sent },
	{ "linear-ring", "the same on the wire ring", FAIR_RING, FAIR_RING, 32, 32, begin_linear,
	  NULL, 1000, NBAR_COUNTER_pulls_sent },
};
const uint32_t fair_nattack = sizeof(fair_attacks) / sizeof(fair_attacks[0]);
