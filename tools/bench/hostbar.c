/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostbar.c - see hostbar.h: a NIC of firmware/nic whose wire is the signal service of another NIC.
 *
 * A message has five words: epoch, slot and type, arg, info, and a half of a value. The other half
 * of a TOKEN's value has the place of arg, of which a TOKEN makes no use. The address of a member
 * is its rank. Messages have no handle and no cookie: the signal service has already found the
 * member, so the receiver fills in its own handle and cookie.
 *
 * The clock of this NIC stands still while messages arrive, so a message needs no clock read. A
 * timer's interval begins with the first clock read after the event that armed the timer.
 */
#include "hostbar.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic.h"
#include "tool.h"

/* Polls without a message between two looks at the clock. */
#define POLLS_PER_CLOCK 32u

#define TYPE_SHIFT 16 /* above the slot */
#define HAS_VALUE (UINT32_C(1) << 31)
_Static_assert(NBAR_SLOTS_MAX <= UINT32_C(1) << TYPE_SHIFT, "a slot has its bits");
#define SUM_BYTES (NBFW_VALUE_HEAD + HOSTBAR_VALUE)

struct hostbar {
	struct nbar_port *port;
	struct nbar_group *group;   /* of the algorithm "signal": the wire of this NIC */
	struct nbnic_group *member; /* the only group of the NIC */
	uint32_t completed;         /* epoch of the last barrier completed */
	uint32_t status, failed_rank;
	uint32_t polls; /* without a message */
	bool connected;
	bool moved;      /* the barrier made progress since the last look at the clock */
	uint64_t now;    /* of the NIC's clock */
	uint64_t looked; /* tool_now_ns of the last look */
	char error[160];
	double own, sum;        /* of the last barrier posted, and completed */
	struct nbnic_addr from; /* of the message being taken */
	struct nbnic nic;
};

static bool hostbar_transmit(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	struct hostbar *hb = ctx;
	uint32_t word[NBAR_SIGNAL_WORDS] = { t->epoch, t->slot | (uint32_t)t->type << TYPE_SHIFT,
					     t->arg, t->info };
	uint32_t rank;

	if (t->value_length) {
		word[1] |= HAS_VALUE;
		memcpy(&word[2], t->value->byte, sizeof(word[2]));
		memcpy(&word[4], t->value->byte + sizeof(word[2]), sizeof(word[4]));
	}
	memcpy(&rank, to->byte, sizeof(rank));
	return nbar_signal_send(hb->group, rank - (rank > hb->member->rank), word) != -EAGAIN;
}

static void complete(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, uint32_t status,
		     uint32_t failed_rank)
{
	struct hostbar *hb = ctx;

	(void)port;
	(void)cell;
	hb->completed = epoch;
	hb->status = status;
	hb->failed_rank = failed_rank;
}

static void stragglers(void *ctx, uint32_t port, uint32_t cell, const struct nbnic_straggler *ranks,
		       uint32_t n)
{
	(void)ctx;
	(void)port;
	(void)cell;
	(void)ranks;
	(void)n;
}

static void release(void *ctx, struct nbnic_group *block)
{
	(void)ctx;
	free(block);
}

/* Makes a value, in SUM_BYTES. */
static void make_sum(struct nbfw_value *out, const void *of)
{
	static const uint8_t head[NBFW_VALUE_HEAD] = { NBAR_SUM, NBAR_DOUBLE, 1 };

	memcpy(out, head, sizeof(head));
	memcpy(out->byte, of, HOSTBAR_VALUE);
}

static int operand(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, struct nbfw_value *out,
		   uint32_t most)
{
	const struct hostbar *hb = ctx;

	(void)port, (void)cell, (void)epoch, (void)most;
	make_sum(out, &hb->own);
	return sizeof(hb->own);
}

static void hostbar_result(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch,
			   const struct nbfw_value *v, uint32_t length)
{
	struct hostbar *hb = ctx;

	(void)port, (void)cell, (void)epoch, (void)length;
	memcpy(&hb->sum, v->byte, sizeof(hb->sum));
}

/* No `deliver`: there is no group for raw messages. */
static const struct nbnic_ops ops = {
	.transmit = hostbar_transmit,
	.complete = complete,
	.stragglers = stragglers,
	.release = release,
	.operand = operand,
	.result = hostbar_result,
};

static void hostbar_take(struct hostbar *hb, const struct nbar_signal_in *in)
{
	struct nbfw_value value;
	struct nbfw_token t = {
		.type = (uint8_t)(in->word[1] >> TYPE_SHIFT),
		.handle = hb->member->handle,
		.cookie = hb->member->cookie,
		.src = in->src,
		.epoch = in->word[0],
		.slot = in->word[1] & ((UINT32_C(1) << TYPE_SHIFT) - 1),
		.arg = in->word[2],
		.info = in->word[3],
		.sender = hb->member->handle,
		.reply_cookie = hb->member->cookie,
	};

	if (in->word[1] & HAS_VALUE) {
		make_sum(&value, (const uint32_t[]){ in->word[2], in->word[4] });
		t.value = &value;
		t.value_length = SUM_BYTES;
	}
	hb->moved |= t.type == NBFW_TOKEN;
	memcpy(hb->from.byte, &in->src, sizeof(in->src));
	nbnic_receive(&hb->nic, &hb->from, &t, hb->now);
}

static void look_at_clock(struct hostbar *hb)
{
	uint64_t now = tool_now_ns();

	if (!hb->moved)
		hb->now += now - hb->looked;
	hb->looked = now;
	hb->moved = false;
}

static bool is_complete(const struct hostbar *hb, uint32_t ticket)
{
	return (int32_t)(hb->completed - ticket) >= 0;
}

/* Takes messages until no message is left, or until `ticket` is complete. */
static void hostbar_progress(struct hostbar *hb, uint32_t ticket)
{
	struct nbar_signal_in in;

	nbnic_work(&hb->nic, hb->now); /* a pass of this NIC begins */
	while (nbar_signal_recv(hb->port, &in) == 1) {
		hb->polls = 0;
		if (in.group == hb->group)
			hostbar_take(hb, &in);
		if (is_complete(hb, ticket))
			return;
	}
	if (++hb->polls % POLLS_PER_CLOCK == 0)
		look_at_clock(hb);
}

static int hostbar_fail(struct hostbar *hb)
{
	static const struct {
		int error;
		const char *text;
	} cause[NBAR_STATUS_END] = {
		[NBAR_STATUS_OK] = { 0, "well" },
		[NBAR_STATUS_SILENT] = { EHOSTUNREACH, "does not answer" },
		[NBAR_STATUS_HOST_DIED] = { ECONNRESET, "has died" },
		[NBAR_STATUS_CLOSED] = { ESHUTDOWN, "has closed the group" },
		[NBAR_STATUS_NIC_DOWN] = { ENETDOWN, "has lost its NIC" },
		[NBAR_STATUS_ABORTED] = { ECANCELED, "has aborted the group" },
		[NBAR_STATUS_MISMATCH] = { EBADMSG, "has another value" },
	};

	snprintf(hb->error, sizeof(hb->error), "barrier %u cannot complete: rank %u %s",
		 hb->completed + 1, hb->failed_rank, cause[hb->status].text);
	return -cause[hb->status].error;
}

int hostbar_post(struct hostbar *hb, uint32_t *ticket)
{
	struct nbnic_group *g = hb->member;

	if (!hb->connected) {
		snprintf(hb->error, sizeof(hb->error), "the group is not connected");
		return -ENOTCONN;
	}
	if (hb->status != NBAR_STATUS_OK)
		return hostbar_fail(hb);
	if (g->posted - hb->completed >= (g->values ? 1 : NBAR_POSTED_MAX)) {
		snprintf(hb->error, sizeof(hb->error), "%u barriers are under way",
			 g->posted - hb->completed);
		return -EAGAIN;
	}
	hb->moved = true;
	nbnic_doorbell(&hb->nic, g, g->posted + 1, hb->now);
	if (ticket)
		*ticket = g->posted;
	return 0;
}

int hostbar_post_sum(struct hostbar *hb, double own, uint32_t *ticket)
{
	/* Not while the NIC may read it. */
	if (hb->member->posted == hb->completed)
		hb->own = own;
	return hostbar_post(hb, ticket);
}

double hostbar_sum(const struct hostbar *hb)
{
	return hb->sum;
}

int hostbar_test(struct hostbar *hb, uint32_t ticket)
{
	hostbar_progress(hb, ticket);
	if (is_complete(hb, ticket))
		return 1;
	return hb->status == NBAR_STATUS_OK ? 0 : hostbar_fail(hb);
}

const char *hostbar_error(const struct hostbar *hb)
{
	return hb->error;
}

/* The length of the plan (the caller's plan if it uploads one), or an error. */
static int32_t plan_length(struct nbfw_alg alg, const struct nbar_group_attr *attr)
{
	const char *why;
	uint64_t *scratch;
	int r;

	if (alg.kind != NBFW_ALG_CUSTOM)
		return nbfw_plan_generate(alg, attr->size, attr->rank, NULL, 0);
	if (!attr->plan || attr->plan_length > INT32_MAX)
		return -EINVAL;
	scratch = malloc((nbfw_plan_scratch(attr->plan_length) + 1) * sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	r = nbfw_plan_check(attr->plan, attr->plan_length, scratch, &why);
	free(scratch);
	return r ? r : (int32_t)attr->plan_length;
}

/* Makes the member and opens it at its NIC. */
static int hostbar_open_member(struct hostbar *hb, const struct nbar_group_attr *attr)
{
	struct nbnic_open arg = { .rank = attr->rank,
				  .size = attr->size,
				  .tag = attr->tag,
				  .value_max = attr->value_max };
	const struct nbar_plan *plan = attr->plan;
	struct nbar_plan *made = NULL;
	int32_t length;
	void *block;
	int r;

	arg.alg = attr->alg ? attr->alg : NBFW_ALG_AUTO;
	r = nbfw_alg_parse(arg.alg, &arg.kind);
	if (!r && arg.value_max && nbfw_alg_find(arg.alg) == NBFW_ALG_END) /* as NICs choose */
		arg.kind = (struct nbfw_alg){ NBFW_ALG_PAIRWISE, 0 };
	if (!r && arg.value_max && (arg.value_max != HOSTBAR_VALUE || !nbfw_value_plans(arg.kind)))
		r = -EINVAL;
	length = r ? r : plan_length(arg.kind, attr);
	if (length < 0)
		return length;
	if (arg.kind.kind != NBFW_ALG_CUSTOM) {
		plan = made = calloc(1, (size_t)length);
		if (!made)
			return -ENOMEM;
		nbfw_plan_generate(arg.kind, attr->size, attr->rank, made, (size_t)length);
	}
	arg.plan = plan;
	block = calloc(1, nbnic_group_size_values(plan, attr->size, arg.value_max));
	r = -ENOMEM;
	if (block) {
		hb->member = nbnic_group_build(&arg, block);
		r = nbnic_group_open(&hb->nic, hb->member);
	}
	free(made);
	return r;
}

static void hostbar_free(struct hostbar *hb)
{
	nbnic_fini(&hb->nic);
	free(hb);
}

int hostbar_open(struct nbar_port *port, const struct nbar_group_attr *attr,
		 const struct nbnic_config *config, struct hostbar **out,
		 struct nbar_endpoint *endpoint)
{
	static const struct nbnic_config usual = { .pull_ns = HOSTBAR_PULL_NS,
						   .budget_ns = HOSTBAR_BUDGET_NS };
	struct nbar_group_attr signal = *attr;
	struct hostbar *hb = calloc(1, sizeof(*hb));
	int r;

	if (!hb)
		return -ENOMEM;
	hb->port = port;
	r = nbnic_init(&hb->nic, &ops, hb, 0, &hb->from, config ? config : &usual);
	if (!r)
		r = hostbar_open_member(hb, attr);
	signal.alg = NBFW_ALG_SIGNAL_NAME;
	signal.value_max = 0;
	signal.plan = NULL;
	signal.plan_length = 0;
	if (!r)
		r = nbar_group_open(port, &signal, &hb->group, endpoint);
	if (r) {
		hostbar_free(hb);
		return r;
	}
	*out = hb;
	return 0;
}

/* Gives the NIC an endpoint address for each peer: the endpoint address of this member, with the
 * rank and the NIC address of the peer. */
static int hostbar_connect_member(struct hostbar *hb)
{
	struct nbnic_group *g = hb->member, peer = *g;
	struct nbar_endpoint endpoint;
	const char *why;
	uint32_t bad;
	int r = 0;

	for (uint32_t i = 0; i < g->npeer && !r; i++) {
		peer.rank = g->peer[i].rank;
		memcpy(hb->nic.addr.byte, &peer.rank, sizeof(peer.rank));
		nbnic_group_endpoint(&hb->nic, &peer, &endpoint);
		r = nbnic_group_connect(&hb->nic, g, &endpoint, 1, hb->now, &bad, &why);
	}
	return r;
}

int hostbar_connect(struct hostbar *hb, const struct nbar_endpoint *endpoints)
{
	int r = nbar_group_connect(hb->group, endpoints);

	if (r)
		snprintf(hb->error, sizeof(hb->error), "%s", nbar_error());
	else
		r = hostbar_connect_member(hb);
	hb->connected = !r;
	return r;
}

void hostbar_close(struct hostbar *hb)
{
	nbnic_group_close(&hb->nic, hb->member, NBAR_STATUS_CLOSED, hb->now);
	for (uint32_t i = 0; i < NBAR_SENDS_MAX && nbnic_next(&hb->nic) == 0; i++)
		nbnic_work(&hb->nic, hb->now); /* sends the messages that still wait */
	nbar_group_close(hb->group);
	hostbar_free(hb);
}
