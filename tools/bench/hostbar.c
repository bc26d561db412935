/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostbar.c - see hostbar.h. The counterpart of firmware/nic/nic.c on the host's side of the page.
 *
 * A message is five words: epoch, slot, arg, info, type, as in struct nbfw_token. Its source is
 * what the receive ring says. A message that the send ring has no room for is lost, as on any wire:
 * whoever misses it asks again.
 */
#include "hostbar.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "plan.h"
#include "tool.h"

/* Polls without a message between two looks at the clock. */
#define POLLS_PER_CLOCK 32u

enum { WORD_EPOCH, WORD_SLOT, WORD_ARG, WORD_INFO, WORD_TYPE };

struct hostbar {
	struct nbar_port *port;
	struct nbar_group *group;
	struct nbar_plan *plan;
	struct nbfw_state *state;
	uint32_t posted;
	uint32_t polls; /* without a message */
	bool connected;
	bool armed;
	uint64_t deadline; /* 0: armed since the clock was last read */
	uint64_t budget_ns;
	uint64_t interval[NBFW_WINDOW];
	char error[160];
};

/* Epoch of the last barrier completed. */
static uint32_t completed(const struct hostbar *hb)
{
	return hb->state->epoch - hb->state->running;
}

static void send_message(struct hostbar *hb, uint32_t rank, const uint32_t *word)
{
	uint32_t peer = rank < hb->plan->rank ? rank : rank - 1;

	(void)nbar_signal_send(hb->group, peer, word);
}

static void send_range(struct hostbar *hb, const struct nbfw_action *a)
{
	const struct nbar_send *send = nbfw_plan_sends(hb->plan);
	bool abort = a->send_type == NBFW_ABORT;
	uint32_t word[NBAR_SIGNAL_WORDS] = {
		[WORD_EPOCH] = a->send_epoch,
		[WORD_ARG] = abort ? hb->state->culprit : NBAR_RANK_NONE,
		[WORD_INFO] = abort ? hb->state->cause : 0,
		[WORD_TYPE] = a->send_type,
	};

	for (uint32_t i = a->send_first; i < a->send_end; i++) {
		word[WORD_SLOT] = send[i].slot;
		send_message(hb, send[i].dst, word);
	}
}

static void send_pulls(struct hostbar *hb, const struct nbfw_action *a)
{
	uint32_t word[NBAR_SIGNAL_WORDS] = {
		[WORD_EPOCH] = hb->state->epoch,
		[WORD_ARG] = NBAR_RANK_NONE,
		[WORD_TYPE] = NBFW_PULL,
	};

	for (uint32_t slot = a->pull_first; slot < a->pull_end; slot++) {
		if (!nbfw_missing(hb->state, hb->plan, slot))
			continue;
		word[WORD_SLOT] = slot;
		send_message(hb, nbfw_plan_recvs(hb->plan)[slot].src, word);
	}
}

static void send_reply(struct hostbar *hb, const struct nbfw_action *a,
		       const struct nbfw_token *pull)
{
	const uint32_t word[NBAR_SIGNAL_WORDS] = {
		[WORD_EPOCH] = pull->epoch,  [WORD_SLOT] = pull->slot, [WORD_ARG] = a->reply_arg,
		[WORD_INFO] = a->reply_info, [WORD_TYPE] = a->reply,
	};

	send_message(hb, pull->src, word);
}

static void feed(struct hostbar *hb, const struct nbfw_event *ev)
{
	struct nbfw_action a;

	nbfw_step(hb->state, hb->plan, ev, &a);
	if (a.timer != NBFW_KEEP) {
		hb->armed = a.timer == NBFW_ARM;
		hb->deadline = 0;
	}
	if (a.send_first < a.send_end)
		send_range(hb, &a);
	if (a.pull_first < a.pull_end)
		send_pulls(hb, &a);
	if (a.reply)
		send_reply(hb, &a, &ev->token);
}

static void start_posted(struct hostbar *hb)
{
	const struct nbfw_event start = { .type = NBFW_EV_START };

	while (!hb->state->running && hb->state->cause == NBAR_STATUS_OK &&
	       hb->state->epoch != hb->posted)
		feed(hb, &start);
}

static void look_at_clock(struct hostbar *hb)
{
	const struct nbfw_event timeout = { .type = NBFW_EV_TIMEOUT };
	uint32_t tries = hb->state->tries;
	uint64_t now = tool_now_ns();

	if (!hb->deadline)
		hb->deadline = now + (tries < NBFW_WINDOW ? hb->interval[tries]
							  : hb->budget_ns / NBFW_WINDOW);
	else if (now >= hb->deadline)
		feed(hb, &timeout);
}

/* Takes messages until there are none or `ticket` is complete. */
static void progress(struct hostbar *hb, uint32_t ticket)
{
	struct nbar_signal_in in;

	while (nbar_signal_recv(hb->port, &in) == 1) {
		hb->polls = 0;
		if (in.group != hb->group || in.word[WORD_TYPE] >= NBFW_TYPE_END)
			continue;
		const struct nbfw_event ev = {
			.type = NBFW_EV_TOKEN,
			.token = {
				.type = (uint8_t)in.word[WORD_TYPE],
				.src = in.src,
				.epoch = in.word[WORD_EPOCH],
				.slot = in.word[WORD_SLOT],
				.arg = in.word[WORD_ARG],
				.info = in.word[WORD_INFO],
			},
		};

		feed(hb, &ev);
		if (hb->posted != hb->state->epoch)
			start_posted(hb);
		if ((int32_t)(completed(hb) - ticket) >= 0)
			return;
	}
	if (++hb->polls % POLLS_PER_CLOCK == 0 && hb->armed)
		look_at_clock(hb);
}

static int fail(struct hostbar *hb)
{
	static const struct {
		int error;
		const char *text;
	} cause[NBAR_STATUS_END] = {
		[NBAR_STATUS_OK] = { 0, "well" },
		[NBAR_STATUS_SILENT] = { ETIMEDOUT, "does not answer" },
		[NBAR_STATUS_HOST_DIED] = { ECONNRESET, "has died" },
		[NBAR_STATUS_CLOSED] = { ESHUTDOWN, "has closed the group" },
		[NBAR_STATUS_NIC_DOWN] = { ENETDOWN, "has lost its NIC" },
	};

	snprintf(hb->error, sizeof(hb->error), "barrier %u cannot complete: rank %u %s",
		 completed(hb) + 1, hb->state->culprit, cause[hb->state->cause].text);
	return -cause[hb->state->cause].error;
}

int hostbar_post(struct hostbar *hb, uint32_t *ticket)
{
	if (!hb->connected) {
		snprintf(hb->error, sizeof(hb->error), "the group is not connected");
		return -ENOTCONN;
	}
	if (hb->state->cause != NBAR_STATUS_OK)
		return fail(hb);
	if (hb->posted - completed(hb) >= NBAR_POSTED_MAX) {
		snprintf(hb->error, sizeof(hb->error), "%u barriers are under way",
			 NBAR_POSTED_MAX);
		return -EAGAIN;
	}
	hb->posted++;
	start_posted(hb);
	if (ticket)
		*ticket = hb->posted;
	return 0;
}

int hostbar_test(struct hostbar *hb, uint32_t ticket)
{
	progress(hb, ticket);
	if ((int32_t)(completed(hb) - ticket) >= 0)
		return 1;
	return hb->state->cause == NBAR_STATUS_OK ? 0 : fail(hb);
}

const char *hostbar_error(const struct hostbar *hb)
{
	return hb->error;
}

static void set_intervals(struct hostbar *hb, const struct hostbar_config *config)
{
	uint64_t even = config->budget_ns / NBFW_WINDOW, left = config->budget_ns;
	uint64_t wanted = config->pull_ns;

	hb->budget_ns = config->budget_ns;
	for (uint32_t i = 0; i < NBFW_WINDOW; i++, wanted *= 2) {
		if (wanted > even)
			wanted = even;
		hb->interval[i] = i == NBFW_WINDOW - 1 ? left : wanted;
		left -= hb->interval[i];
	}
}

/* The length of a plan, which is the caller's own if it uploads one; or an error. */
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

static int make_plan(struct hostbar *hb, const struct nbar_group_attr *attr)
{
	struct nbfw_alg alg;
	int r = nbfw_alg_parse(attr->alg ? attr->alg : NBFW_ALG_AUTO, &alg);
	int32_t length = r ? r : plan_length(alg, attr);

	if (length < 0)
		return length;
	hb->plan = calloc(1, (size_t)length);
	if (!hb->plan)
		return -ENOMEM;
	if (alg.kind == NBFW_ALG_CUSTOM)
		memcpy(hb->plan, attr->plan, (size_t)length);
	else
		nbfw_plan_generate(alg, attr->size, attr->rank, hb->plan, (size_t)length);
	hb->state = calloc(1, nbfw_state_size(hb->plan));
	if (!hb->state)
		return -ENOMEM;
	nbfw_init(hb->state, hb->plan, 0);
	return 0;
}

static void hostbar_free(struct hostbar *hb)
{
	free(hb->plan);
	free(hb->state);
	free(hb);
}

int hostbar_open(struct nbar_port *port, const struct nbar_group_attr *attr,
		 const struct hostbar_config *config, struct hostbar **out, struct nbar_blob *blob)
{
	static const struct hostbar_config usual = { HOSTBAR_PULL_NS, HOSTBAR_BUDGET_NS };
	struct nbar_group_attr signal = *attr;
	struct hostbar *hb = calloc(1, sizeof(*hb));
	int r;

	if (!hb)
		return -ENOMEM;
	hb->port = port;
	set_intervals(hb, config ? config : &usual);
	r = make_plan(hb, attr);
	signal.alg = NBFW_ALG_SIGNAL_NAME;
	signal.plan = NULL;
	signal.plan_length = 0;
	if (!r)
		r = nbar_group_open(port, &signal, &hb->group, blob);
	if (r) {
		hostbar_free(hb);
		return r;
	}
	*out = hb;
	return 0;
}

int hostbar_connect(struct hostbar *hb, const struct nbar_blob *blobs)
{
	int r = nbar_group_connect(hb->group, blobs);

	if (r)
		snprintf(hb->error, sizeof(hb->error), "%s", nbar_error());
	else
		hb->connected = true;
	return r;
}

void hostbar_close(struct hostbar *hb)
{
	const struct nbfw_event leave = { .type = NBFW_EV_LEAVE, .cause = NBAR_STATUS_CLOSED };

	if (hb->connected)
		feed(hb, &leave);
	nbar_group_close(hb->group);
	hostbar_free(hb);
}
