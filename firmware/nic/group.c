/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - the life of groups at a NIC: open, connect, close, linger.
 *
 * Called for requests, between two passes (nbnic_group_build: at any time), and by the pass for
 * groups that have lingered. Never on the path from token to completion.
 */
#include "nic.h"
#include "nic_internal.h"
#include "sort.h"

#define ENDPOINT_MAGIC 0x6c62626eu /* "nbbl" */

int nbnic_init(struct nbnic *nic, const struct nbnic_ops *ops, void *ctx, uint16_t wire,
	       const struct nbnic_addr *addr, const struct nbnic_config *config)
{
	uint64_t even = config->budget_ns / NBFW_WINDOW, left = config->budget_ns;
	uint32_t quota = config->quota ? config->quota : NBNIC_QUOTA;

	if (config->pull_ns == 0 || config->pull_ns > even || quota < NBNIC_QUOTA_MIN)
		return -NBFW_EINVAL;
	*nic = (struct nbnic){ .ops = ops, .ctx = ctx, .wire = wire, .addr = *addr };
	nic->budget_ns = config->budget_ns;
	nic->linger_bytes_max =
		config->linger_bytes ? config->linger_bytes : NBNIC_MEMORY_BYTES / 4;
	nic->pace_ns = config->pull_ns / 2;
#if NBNIC_ADAPT
	nic->sweep_ns = nic->pace_ns;
#endif
	nic->due = UINT64_MAX;
	nic->pass = 2; /* so that every port is fresh: rota.h */
	nic->quota = quota;
	nbnic_link_init(&nic->linger);
	for (uint32_t i = 0; i < NBNIC_USERS_MAX; i++)
		nbnic_link_init(&nic->user[i].groups);
	nbnic_rota_init(&nic->sends, nic->sends_port, &nic->pass);
	nbnic_rota_init(&nic->pulls, nic->pulls_port, &nic->pass);
	nbnic_rota_init(&nic->probes, nic->probes_port, &nic->pass);
	/* Intervals double until they reach an even share of the budget; the last one gets the
	 * rest. */
	for (uint32_t i = 0; i < NBFW_WINDOW; i++) {
		uint64_t before =
			i ? nic->interval[i - 1] * 2 : config->pull_ns << config->patience;

		nic->interval[i] = i == NBFW_WINDOW - 1 ? left : before < even ? before : even;
		left -= nic->interval[i];
	}
	return 0;
}

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static size_t last_size(const struct nbar_plan *plan)
{
	return NBNIC_LATENCY * (1 + (size_t)plan->nrecv) * sizeof(struct nbnic_last);
}

static uint32_t peers_max(const struct nbar_plan *plan, uint32_t size)
{
	uint32_t n = plan ? plan->nsend + plan->nrecv : size - 1;

	return n < NBAR_PEERS_MAX ? n : NBAR_PEERS_MAX;
}

/* A block has these parts, in order of alignment: group, peers, last tokens, state, plan, NICs of
 * the slots, peers of the slots, peers of the sends, and what has reached the peers. "signal":
 * group, peers, their order. */
size_t nbnic_group_size(const struct nbar_plan *plan, uint32_t size)
{
	size_t n = sizeof(struct nbnic_group) + peers_max(plan, size) * sizeof(struct nbnic_peer);

	if (plan)
		n += last_size(plan) + align8(nbfw_state_size(plan)) +
		     align8((size_t)nbfw_plan_length(plan)) +
		     plan->nrecv * (sizeof(uint32_t) + sizeof(uint16_t)) +
		     plan->nsend * sizeof(uint16_t) + peers_max(plan, size);
	else
		n += peers_max(plan, size) * sizeof(uint16_t);
	return n;
}

size_t nbnic_group_size_values(const struct nbar_plan *plan, uint32_t size, uint32_t value_max)
{
	size_t n = nbnic_group_size(plan, size);

	return NBNIC_VALUES && value_max ? align8(n) + nbfw_values_size(plan, value_max) : n;
}

/*
 * Finds the peers of the sends and slots, each once, in order of rank. The memory of the peers also
 * holds the keys while they are sorted. The keys fit: at most two keys come to each peer that has
 * room, and two keys are no larger than a peer. nbfw_plan_check has limited the distinct peers.
 */
static void peers_install(struct nbnic_group *g)
{
	const struct nbar_plan *plan = g->plan;
	uint32_t n = plan->nsend + plan->nrecv, rank = NBAR_RANK_NONE;
	uint64_t *key = (void *)g->peer; /* rank << 16 | index of the send, or nsend + slot */

	for (uint32_t i = 0; i < n; i++) {
		bool is_send = i < plan->nsend;
		uint64_t r = is_send ? nbfw_plan_sends(plan)[i].dst
				     : nbfw_plan_recvs(plan)[i - plan->nsend].src;

		key[i] = r << 16 | i;
	}
	nbfw_sort(key, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = (uint32_t)key[i] & 0xffff;

		if (i == 0 || key[i] >> 16 != rank) {
			rank = (uint32_t)(key[i] >> 16);
			key[g->npeer++] = rank;
		}
		if (at < plan->nsend)
			g->send_peer[at] = (uint16_t)(g->npeer - 1);
		else
			g->recv_peer[at - plan->nsend] = (uint16_t)(g->npeer - 1);
	}
	/* From the last to the first: so no peer overwrites a key that this loop has not read. */
	for (uint32_t i = g->npeer; i > 0; i--) {
		uint32_t r = (uint32_t)key[i - 1];

		g->peer[i - 1] = (struct nbnic_peer){ .rank = r, .addr = nbnic_addr_nobody };
	}
}
_Static_assert(sizeof(struct nbnic_peer) >= 2 * sizeof(uint64_t), "keys fit where the peers go");
_Static_assert(NBAR_SENDS_MAX + NBAR_SLOTS_MAX <= 2 * NBAR_PEERS_MAX, "two keys a peer at most");

/* Places the parts of a plan in the block of the group. */
static void plan_install(struct nbnic_group *g, const struct nbar_plan *plan)
{
	uint8_t *at = (uint8_t *)(g->peer + g->npeer_max) + last_size(plan);
	size_t length = (size_t)nbfw_plan_length(plan);
	struct nbar_plan *copy = (void *)(at + align8(nbfw_state_size(plan)));

#if NBNIC_LATENCY
	g->last = (void *)(g->peer + g->npeer_max);
	__builtin_memset(g->last, 0, last_size(plan));
#endif
	g->state = (void *)at;
	__builtin_memcpy(copy, plan, length);
	g->plan = copy;
	g->recv_nic = (void *)((uint8_t *)copy + align8(length));
	g->recv_peer = (void *)(g->recv_nic + plan->nrecv);
	g->send_peer = g->recv_peer + plan->nrecv;
	g->reached = (void *)(g->send_peer + plan->nsend);
	__builtin_memset(g->reached, 0, g->npeer_max);
	for (uint32_t i = 0; i < plan->nrecv; i++)
		g->recv_nic[i] = 0; /* not connected yet */
	nbfw_init(g->state, copy, 0);
	peers_install(g);
}

/* What all members of a group must have in common: FNV-1a of algorithm, size and tag, and of the
 * length of values if there are any. */
static uint32_t digest_of(const struct nbnic_open *arg)
{
	const uint32_t word[] = { arg->kind.kind, arg->kind.n, arg->size, arg->tag,
				  arg->value_max };
	uint32_t hash = UINT32_C(2166136261);

	for (uint32_t i = 0; i < (arg->value_max ? 20 : 16); i++)
		hash = (hash ^ (word[i / 4] >> (i % 4 * 8) & 0xff)) * UINT32_C(16777619);
	return hash;
}

static void forget_oldest_of(struct nbnic *nic, const struct nbnic_user_linger *user)
{
	const struct nbnic_group *g = NBNIC_CONTAINER(user->groups.next, user_linger);

	nbnic_group_release(nic, nbnic_index(g->handle));
	nbnic_count(nic, NBAR_COUNTER_linger_cut);
}

void nbnic_group_forget_user(struct nbnic *nic, uint32_t user)
{
	while (nic->user[user].n > 0)
		forget_oldest_of(nic, &nic->user[user]);
}

/* Forgets a lingering group to make room for a group of `user`: takes the user with the most
 * lingering groups (or the most bytes, with by_bytes), and of that user the oldest. So a user with
 * no more than an equal part loses no group to another user. A lingering group must exist. */
static void forget_oldest(struct nbnic *nic, uint32_t user, bool by_bytes)
{
	const struct nbnic_user_linger *most = &nic->user[user];

	for (uint32_t i = 0; i < NBNIC_USERS_MAX; i++) {
		const struct nbnic_user_linger *u = &nic->user[i];

		if (by_bytes ? u->bytes > most->bytes : u->n > most->n)
			most = u;
	}
	forget_oldest_of(nic, most);
}

static uint32_t take_index(struct nbnic *nic, uint32_t user)
{
	if (nic->nfree == 0 && nic->fresh == NBNIC_HANDLES)
		forget_oldest(nic, user, false);
	return nic->nfree ? nic->free[--nic->nfree] : nic->fresh++;
}

struct nbnic_group *nbnic_group_build(const struct nbnic_open *arg, void *block)
{
	struct nbnic_group *g = block;

	*g = (struct nbnic_group){
		.port = arg->port,
		.cell = arg->cell,
		.user = arg->user,
		.life = NBAR_LIFE_OPEN,
		.is_signal = !arg->plan,
		.is_special = !arg->plan || arg->value_max,
		.bytes = (uint32_t)nbnic_group_size_values(arg->plan, arg->size, arg->value_max),
		.rank = arg->rank,
		.size = arg->size,
		.digest = digest_of(arg),
		.cookie = arg->cookie,
		.npeer_max = peers_max(arg->plan, arg->size),
		.peer = (struct nbnic_peer *)(g + 1),
	};
	for (uint32_t i = 0; i < NBAR_NAME_MAX - 1 && arg->alg[i]; i++)
		g->alg[i] = arg->alg[i];
	g->recv_peer = (void *)(g->peer + g->npeer_max);
	if (arg->plan)
		plan_install(g, arg->plan);
	if (NBNIC_VALUES && arg->value_max) {
		g->values =
			(void *)((uint8_t *)block + align8(nbnic_group_size(arg->plan, arg->size)));
		nbfw_values_init(g->values, arg->kind, g->plan, arg->value_max);
	}
	if (arg->plan && g->npeer == 0) /* alone: nobody to connect */
		g->life = NBAR_LIFE_CONNECTED;
	return g;
}

int nbnic_group_open(struct nbnic *nic, struct nbnic_group *g)
{
	if (g->port >= NBNIC_PORTS_MAX || g->user >= NBNIC_USERS_MAX)
		return -NBFW_EINVAL;
	if (nic->nopen == NBNIC_GROUPS_MAX)
		return -NBFW_ENOSPC;
	uint32_t index = take_index(nic, g->user);

	if (++nic->generation[index] == 0) /* a handle is never 0 */
		nic->generation[index] = 1;
	g->handle = (uint32_t)nic->generation[index] << 16 | index;
#if NBNIC_ADAPT
	nbnic_rtt_begin(nic, g);
#endif
	nic->group[index] = g;
	nic->nopen++;
	nic->nsignal += g->is_signal;
	if (nic->high <= index)
		nic->high = index + 1;
	return 0;
}

static void group_put32(uint8_t *at, uint32_t v)
{
	for (uint32_t i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t group_get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* A NIC that knows no values refuses groups that have some. */
static uint32_t version_of(const struct nbnic_group *g)
{
	return nbnic_values(g) ? NBFW_FRAME_VERSION_VALUE : NBFW_FRAME_VERSION;
}

/* Endpoint address: magic, version | wire << 16, handle, rank, size, digest (of algorithm, size and
 * tag), cookie (8), address (48), 0. Both ends must have the same version, wire, size, digest. */
void nbnic_group_endpoint(const struct nbnic *nic, const struct nbnic_group *g,
			  struct nbar_endpoint *out)
{
	const uint32_t word[] = {
		ENDPOINT_MAGIC,
		version_of(g) | (uint32_t)nic->wire << 16,
		g->handle,
		g->rank,
		g->size,
		g->digest,
		(uint32_t)g->cookie,
		(uint32_t)(g->cookie >> 32),
	};

	*out = (struct nbar_endpoint){ { 0 } };
	for (uint32_t i = 0; i < 8; i++)
		group_put32(out->byte + 4 * i, word[i]);
	__builtin_memcpy(out->byte + 32, nic->addr.byte, NBNIC_ADDR_SIZE);
}

bool nbnic_endpoint_addr(const struct nbar_endpoint *endpoint, uint16_t wire,
			 struct nbnic_addr *out, uint32_t *rank)
{
	uint32_t version = group_get32(endpoint->byte + 4) ^ (uint32_t)wire << 16;

	if (group_get32(endpoint->byte) != ENDPOINT_MAGIC ||
	    (version != NBFW_FRAME_VERSION && version != NBFW_FRAME_VERSION_VALUE))
		return false;
	__builtin_memcpy(out->byte, endpoint->byte + 32, NBNIC_ADDR_SIZE);
	*rank = group_get32(endpoint->byte + 12);
	return true;
}

/* Reads the endpoint address of another member into *out, or returns the reason why it does not
 * fit. */
static const char *endpoint_refused(const struct nbnic *nic, const struct nbnic_group *g,
				    const struct nbar_endpoint *endpoint, struct nbnic_peer *out)
{
	const uint8_t *b = endpoint->byte;

	if (group_get32(b) != ENDPOINT_MAGIC || group_get32(b + 8) == 0)
		return "not the endpoint address of a NIC";
	if ((group_get32(b + 4) & 0xffff) != version_of(g))
		return g->values ? "it was opened without values, or its NIC knows none"
				 : "it was opened with values, or its NIC speaks another version "
				   "of the protocol";
	if (group_get32(b + 4) >> 16 != nic->wire)
		return "its NIC is on another kind of wire";
	if (group_get32(b + 16) != g->size || group_get32(b + 20) != g->digest)
		return "it was opened with another size, algorithm or tag";
	*out = (struct nbnic_peer){
		.rank = group_get32(b + 12),
		.handle = group_get32(b + 8),
		.cookie = group_get32(b + 24) | (uint64_t)group_get32(b + 28) << 32,
	};
	__builtin_memcpy(out->addr.byte, b + 32, NBNIC_ADDR_SIZE);
	return out->rank < g->size && out->rank != g->rank ? NULL
							   : "its rank is not that of a peer";
}

int nbnic_group_check(const struct nbnic *nic, const struct nbnic_group *g, uint32_t first,
		      const struct nbar_endpoint *endpoint, uint32_t n, uint32_t *bad,
		      const char **why)
{
	uint32_t room = (g->is_signal ? g->npeer_max : g->npeer) - g->nconnected;
	struct nbnic_peer peer;

	*bad = room;
	*why = "these are more endpoint addresses than the group has peers";
	if (first + n > room)
		return -NBNIC_EPROTO;
	for (uint32_t i = 0; i < n; i++) {
		*bad = first + i;
		*why = endpoint_refused(nic, g, &endpoint[i], &peer);
		if (!*why && !g->is_signal && peer.rank != g->peer[g->nconnected + first + i].rank)
			*why = "it is the endpoint address of another rank";
		if (*why)
			return -NBNIC_EPROTO;
	}
	return 0;
}

/* A peer of a "signal" group, the next in the order of connecting, gets its place in the order of
 * ranks. */
static void signal_insert(struct nbnic_group *g, const struct nbnic_peer *p)
{
	uint32_t at = nbnic_signal_find(g, p->rank, p->handle, &p->addr), n = g->nconnected - at;

	__builtin_memmove(g->recv_peer + at + 1, g->recv_peer + at, n * sizeof(*g->recv_peer));
	g->recv_peer[at] = (uint16_t)g->nconnected;
}

/* Connects the next peer. Tokens that came before must have come from this peer: if not, the group
 * forgets all that have come, and PULLs ask for them again. */
static void peer_connect(struct nbnic *nic, struct nbnic_group *g,
			 const struct nbar_endpoint *endpoint)
{
	struct nbnic_peer *p = &g->peer[g->nconnected];
	const struct nbnic_peer before = *p;

	(void)endpoint_refused(nic, g, endpoint, p);
	if (g->is_signal) {
		signal_insert(g, p);
	} else if ((before.cookie != p->handle || !nbnic_addr_same(&before.addr, &p->addr)) &&
		   !nbnic_addr_same(&before.addr, &nbnic_addr_nobody)) {
		nbnic_count(nic, NBAR_COUNTER_frames_bad);
		if (g->state->cause == NBAR_STATUS_OK)
			nbfw_init(g->state, g->plan, g->state->epoch);
	}
	g->nconnected++;
}

int nbnic_group_connect(struct nbnic *nic, struct nbnic_group *g,
			const struct nbar_endpoint *endpoint, uint32_t n, uint64_t now,
			uint32_t *bad, const char **why)
{
	int rc = nbnic_group_check(nic, g, 0, endpoint, n, bad, why);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < n; i++)
		peer_connect(nic, g, &endpoint[i]);
	if (g->is_signal)
		g->npeer = g->nconnected;
	if (g->nconnected == g->npeer)
		g->life = NBAR_LIFE_CONNECTED;
	if (!g->is_signal && g->life == NBAR_LIFE_CONNECTED) {
		for (uint32_t i = 0; i < g->plan->nrecv; i++)
			g->recv_nic[i] = nbnic_addr_hash(&g->peer[g->recv_peer[i]].addr);
		nbnic_start_posted(nic, g, NBNIC_STARTS_A_CALL, now);
	}
	return 0;
}

void nbnic_group_release(struct nbnic *nic, uint32_t index)
{
	struct nbnic_group *g = nic->group[index];

	if (g->life == NBAR_LIFE_LINGER) {
		nic->nlinger--;
		nic->linger_bytes -= g->bytes;
		nic->user[g->user].n--;
		nic->user[g->user].bytes -= g->bytes;
		nbnic_link_remove(&g->linger);
		nbnic_link_remove(&g->user_linger);
	} else {
		nic->nopen--;
		nic->nsignal -= g->is_signal;
	}
	nbnic_rota_remove(&nic->sends, g->port, &g->send);
	nbnic_rota_remove(&nic->pulls, g->port, &g->pull);
	nbnic_rota_remove(&nic->probes, g->port, &g->probe);
	nic->group[index] = NULL;
	nic->free[nic->nfree++] = (uint16_t)index;
	while (nic->high > 0 && !nic->group[nic->high - 1])
		nic->high--;
	nic->ops->release(nic->ctx, g);
}

void nbnic_group_close(struct nbnic *nic, struct nbnic_group *g, uint8_t cause, uint64_t now)
{
	const struct nbfw_event leave = { .type = NBFW_EV_LEAVE, .cause = cause };
	const uint32_t user = g->user;

	nbnic_take(nic, g, now);
	/* A host that closes or ends needs no message; a host whose NIC stops does. */
	if (cause == NBAR_STATUS_NIC_DOWN && (g->is_signal || g->state->cause == NBAR_STATUS_OK))
		nic->ops->complete(nic->ctx, g->port, g->cell,
				   g->is_signal ? 0 : g->state->epoch - g->state->running, cause,
				   g->rank);
	if (g->is_signal) {
		nbnic_group_release(nic, nbnic_index(g->handle));
		return;
	}
	g->life = NBAR_LIFE_LINGER;
	nic->nopen--;
	nic->nlinger++;
	nbnic_link_append(&nic->linger, &g->linger);
	nbnic_link_append(&nic->user[g->user].groups, &g->user_linger);
	nic->user[g->user].n++;
	nic->user[g->user].bytes += g->bytes;
	nbnic_feed(nic, g, &leave, now);
	g->deadline = now + nic->budget_ns;
	nic->linger_bytes += g->bytes;
	/* A client may open and close large groups again and again: the memory has a bound. */
	while (nic->linger_bytes > nic->linger_bytes_max)
		forget_oldest(nic, user, true);
}

void nbnic_group_fail(struct nbnic *nic, struct nbnic_group *g, uint8_t cause, uint64_t now)
{
	const struct nbfw_event leave = { .type = NBFW_EV_LEAVE, .cause = cause };

	nbnic_take(nic, g, now);
	if (!g->is_signal)
		nbnic_feed(nic, g, &leave, now);
}

void nbnic_fail(struct nbnic *nic, uint8_t cause, uint64_t now)
{
	for (uint32_t i = 0; i < nic->high; i++) {
		struct nbnic_group *g = nic->group[i];

		if (!g || g->life == NBAR_LIFE_LINGER)
			continue;
		nbnic_group_fail(nic, g, cause, now);
		if (g->is_signal)
			nic->ops->complete(nic->ctx, g->port, g->cell, 0, cause, g->rank);
	}
}

void nbnic_fini(struct nbnic *nic)
{
	for (uint32_t i = 0; i < NBNIC_HANDLES; i++)
		if (nic->group[i])
			nbnic_group_release(nic, i);
}

void nbnic_group_info(const struct nbnic_group *g, struct nbar_group_info *out)
{
	const struct nbfw_state *s = g->state;

	*out = (struct nbar_group_info){
		.index = nbnic_index(g->handle),
		.port = g->port,
		.cell = g->cell,
		.life = g->life,
		.rank = g->rank,
		.size = g->size,
		.posted = g->posted,
		.failed_rank = NBAR_RANK_NONE,
		.waits_for = NBAR_RANK_NONE,
		.nstragglers = g->nstragglers,
	};
	for (uint32_t i = 0; i < NBAR_NAME_MAX; i++)
		out->alg[i] = g->alg[i];
	for (uint32_t i = 0; i < g->nstragglers; i++) {
		out->straggler[i] = g->straggler[i].rank;
		out->why[i] = g->straggler[i].why;
	}
	if (!s)
		return;
	out->epoch = s->epoch;
	out->running = s->running;
	out->status = s->cause;
	out->failed_rank = s->failed_rank;
	out->nstep = g->plan->nstep;
	if (!s->running) {
		if (s->cause == NBAR_STATUS_OK && g->asked_epoch == s->epoch + 1)
			out->host_why = g->host_why;
		return;
	}
	out->step = s->step;
	out->waits_for = nbfw_plan_recvs(g->plan)[s->want].src;
	out->nmissing = nbfw_missing_count(s, g->plan);
}
