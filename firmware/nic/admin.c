/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admin.c - the life of groups at a NIC: open, connect, close, linger.
 *
 * Called by a port's slow path, in the polling thread (nbnic_group_build: in any). Never on the
 * path from token to completion.
 */
#include "nic.h"
#include "nic_internal.h"

#define BLOB_MAGIC 0x6c62626eu /* "nbbl" */

int nbnic_init(struct nbnic *nic, const struct nbnic_ops *ops, void *ctx, uint16_t wire,
	       const struct nbnic_addr *addr, const struct nbnic_config *config)
{
	uint64_t even = config->budget_ns / NBFW_WINDOW, left = config->budget_ns;

	if (config->pull_ns == 0 || config->pull_ns > even)
		return -NBFW_EINVAL;
	*nic = (struct nbnic){ .ops = ops, .ctx = ctx, .wire = wire, .addr = *addr };
	nic->budget_ns = config->budget_ns;
	nic->linger_bytes_max = config->linger_bytes ? config->linger_bytes : NBNIC_LINGER_BYTES;
	/* Intervals double up to an even share; what that saves is spent on the last one. */
	for (uint32_t i = 0; i < NBFW_WINDOW; i++) {
		uint64_t before = i ? nic->interval[i - 1] * 2 : config->pull_ns;

		nic->interval[i] = i == NBFW_WINDOW - 1 ? left : before < even ? before : even;
		left -= nic->interval[i];
	}
	return 0;
}

/* The parts of a block: group, peers, state, plan, peers of the sends; in order of alignment. */
static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static uint32_t peers_max(const struct nbar_plan *plan, uint32_t size)
{
	uint32_t n = plan ? plan->nsend + plan->nrecv : size - 1;

	return n < NBAR_PEERS_MAX ? n : NBAR_PEERS_MAX;
}

size_t nbnic_group_size(const struct nbar_plan *plan, uint32_t size)
{
	size_t n = sizeof(struct nbnic_group) + peers_max(plan, size) * sizeof(struct nbnic_peer);

	if (plan)
		n += align8(nbfw_state_size(plan)) + align8((size_t)nbfw_plan_length(plan)) +
		     plan->nsend * sizeof(uint16_t);
	return n;
}

uint32_t nbnic_peer_find(const struct nbnic_group *g, uint32_t rank)
{
	uint32_t low = 0, high = g->npeer;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (g->peer[mid].rank < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < g->npeer && g->peer[low].rank == rank ? low : g->npeer;
}

/* Adds a peer in order of rank, once. False: there is no room. */
static bool peer_add(struct nbnic_group *g, uint32_t rank)
{
	uint32_t i = g->npeer;

	if (nbnic_peer_find(g, rank) != g->npeer)
		return true;
	if (g->npeer == g->npeer_max)
		return false;
	for (; i > 0 && g->peer[i - 1].rank > rank; i--)
		g->peer[i] = g->peer[i - 1];
	g->peer[i] = (struct nbnic_peer){ .rank = rank };
	g->npeer++;
	return true;
}

/* Lays out block for a plan. False: more distinct peers than NBAR_PEERS_MAX. */
static bool plan_install(struct nbnic_group *g, const struct nbar_plan *plan)
{
	uint8_t *at = (uint8_t *)(g->peer + g->npeer_max);
	size_t length = (size_t)nbfw_plan_length(plan);
	struct nbar_plan *copy = (void *)(at + align8(nbfw_state_size(plan)));

	g->state = (void *)at;
	__builtin_memcpy(copy, plan, length);
	g->plan = copy;
	g->send_peer = (void *)((uint8_t *)copy + align8(length));
	for (uint32_t i = 0; i < plan->nsend; i++)
		if (!peer_add(g, nbfw_plan_sends(copy)[i].dst))
			return false;
	for (uint32_t i = 0; i < plan->nrecv; i++)
		if (!peer_add(g, nbfw_plan_recvs(copy)[i].src))
			return false;
	for (uint32_t i = 0; i < plan->nsend; i++)
		g->send_peer[i] = (uint16_t)nbnic_peer_find(g, nbfw_plan_sends(copy)[i].dst);
	nbfw_init(g->state, copy, 0);
	return true;
}

/* What all members of a group must have in common: FNV-1a of algorithm, size and tag. */
static uint32_t digest_of(const struct nbnic_open *arg)
{
	const uint32_t word[] = { arg->kind.kind, arg->kind.n, arg->size, arg->tag };
	uint32_t hash = UINT32_C(2166136261);

	for (uint32_t i = 0; i < 16; i++)
		hash = (hash ^ (word[i / 4] >> (i % 4 * 8) & 0xff)) * UINT32_C(16777619);
	return hash;
}

/* Forgets the group that has lingered longest; there is one. Returns its index. */
static uint32_t forget_oldest(struct nbnic *nic)
{
	uint32_t oldest = NBNIC_HANDLES;

	for (uint32_t i = 0; i < nic->high; i++) {
		const struct nbnic_group *g = nic->group[i];

		if (g && g->life == NBAR_LIFE_LINGER &&
		    (oldest == NBNIC_HANDLES || g->deadline < nic->group[oldest]->deadline))
			oldest = i;
	}
	nbnic_group_release(nic, oldest);
	nbnic_count(nic, NBAR_COUNTER_linger_cut);
	return oldest;
}

static uint32_t take_index(struct nbnic *nic)
{
	for (uint32_t i = 0; i < NBNIC_HANDLES; i++)
		if (!nic->group[i])
			return i;
	return forget_oldest(nic);
}

int nbnic_group_build(const struct nbnic_open *arg, void *block, struct nbnic_group **out)
{
	struct nbnic_group *g = block;

	*g = (struct nbnic_group){
		.port = arg->port,
		.cell = arg->cell,
		.life = NBAR_LIFE_OPEN,
		.is_signal = !arg->plan,
		.bytes = (uint32_t)nbnic_group_size(arg->plan, arg->size),
		.rank = arg->rank,
		.size = arg->size,
		.digest = digest_of(arg),
		.cookie = arg->cookie,
		.npeer_max = peers_max(arg->plan, arg->size),
		.peer = (struct nbnic_peer *)(g + 1),
	};
	for (uint32_t i = 0; i < NBAR_NAME_MAX - 1 && arg->alg[i]; i++)
		g->alg[i] = arg->alg[i];
	if (arg->plan && !plan_install(g, arg->plan))
		return -NBFW_ENOSPC;
	if (arg->plan && g->npeer == 0) /* alone: nobody to connect */
		g->life = NBAR_LIFE_CONNECTED;
	*out = g;
	return 0;
}

int nbnic_group_open(struct nbnic *nic, struct nbnic_group *g)
{
	if (nic->nopen == NBAR_GROUPS_MAX)
		return -NBFW_ENOSPC;
	uint32_t index = take_index(nic);

	if (++nic->generation[index] == 0) /* a handle is never 0 */
		nic->generation[index] = 1;
	g->handle = (uint32_t)nic->generation[index] << 16 | index;
	nic->group[index] = g;
	nic->nopen++;
	if (nic->high <= index)
		nic->high = index + 1;
	return 0;
}

static void put32(uint8_t *at, uint32_t v)
{
	for (uint32_t i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Blob: magic, version | wire << 16, handle, rank, size, digest, cookie (8), address (48), 0. */
void nbnic_group_blob(const struct nbnic *nic, const struct nbnic_group *g, struct nbar_blob *out)
{
	const uint32_t word[] = {
		BLOB_MAGIC,
		NBFW_FRAME_VERSION | (uint32_t)nic->wire << 16,
		g->handle,
		g->rank,
		g->size,
		g->digest,
		(uint32_t)g->cookie,
		(uint32_t)(g->cookie >> 32),
	};

	*out = (struct nbar_blob){ { 0 } };
	for (uint32_t i = 0; i < 8; i++)
		put32(out->byte + 4 * i, word[i]);
	__builtin_memcpy(out->byte + 32, nic->addr.byte, NBNIC_ADDR_SIZE);
}

bool nbnic_blob_addr(const struct nbar_blob *blob, uint16_t wire, struct nbnic_addr *out,
		     uint32_t *rank)
{
	if (get32(blob->byte) != BLOB_MAGIC ||
	    get32(blob->byte + 4) != (NBFW_FRAME_VERSION | (uint32_t)wire << 16))
		return false;
	__builtin_memcpy(out->byte, blob->byte + 32, NBNIC_ADDR_SIZE);
	*rank = get32(blob->byte + 12);
	return true;
}

/* Reads the blob of another member into *out, or says why it is none of ours. */
static const char *blob_refused(const struct nbnic *nic, const struct nbnic_group *g,
				const struct nbar_blob *blob, struct nbnic_peer *out)
{
	const uint8_t *b = blob->byte;

	if (get32(b) != BLOB_MAGIC || get32(b + 8) == 0)
		return "this is no blob of a NIC";
	if ((get32(b + 4) & 0xffff) != NBFW_FRAME_VERSION)
		return "its NIC speaks another version of the protocol";
	if (get32(b + 4) >> 16 != nic->wire)
		return "its NIC is on another kind of wire";
	if (get32(b + 16) != g->size || get32(b + 20) != g->digest)
		return "it was opened with another size, algorithm or tag";
	*out = (struct nbnic_peer){
		.rank = get32(b + 12),
		.handle = get32(b + 8),
		.cookie = get32(b + 24) | (uint64_t)get32(b + 28) << 32,
	};
	__builtin_memcpy(out->addr.byte, b + 32, NBNIC_ADDR_SIZE);
	return out->rank < g->size && out->rank != g->rank ? NULL
							   : "its rank is not that of a peer";
}

int nbnic_group_check(const struct nbnic *nic, const struct nbnic_group *g, uint32_t first,
		      const struct nbar_blob *blob, uint32_t n, uint32_t *bad, const char **why)
{
	uint32_t room = (g->is_signal ? g->npeer_max : g->npeer) - g->nconnected;
	struct nbnic_peer peer;

	*bad = room;
	*why = "these are more blobs than the group has peers";
	if (first + n > room)
		return -NBNIC_EPROTO;
	for (uint32_t i = 0; i < n; i++) {
		*bad = first + i;
		*why = blob_refused(nic, g, &blob[i], &peer);
		if (!*why && !g->is_signal && peer.rank != g->peer[g->nconnected + first + i].rank)
			*why = "it is the blob of another rank";
		if (*why)
			return -NBNIC_EPROTO;
	}
	return 0;
}

int nbnic_group_connect(struct nbnic *nic, struct nbnic_group *g, const struct nbar_blob *blob,
			uint32_t n, uint64_t now, uint32_t *bad, const char **why)
{
	int rc = nbnic_group_check(nic, g, 0, blob, n, bad, why);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < n; i++)
		(void)blob_refused(nic, g, &blob[i], &g->peer[g->nconnected + i]);
	g->nconnected += n;
	if (g->is_signal)
		g->npeer = g->nconnected;
	if (g->nconnected == g->npeer)
		g->life = NBAR_LIFE_CONNECTED;
	if (!g->is_signal)
		nbnic_start_posted(nic, g, now);
	return 0;
}

void nbnic_group_release(struct nbnic *nic, uint32_t index)
{
	struct nbnic_group *g = nic->group[index];

	if (g->life == NBAR_LIFE_LINGER) {
		nic->nlinger--;
		nic->linger_bytes -= g->bytes;
	} else {
		nic->nopen--;
	}
	nic->group[index] = NULL;
	while (nic->high > 0 && !nic->group[nic->high - 1])
		nic->high--;
	nic->ops->release(nic->ctx, g);
}

void nbnic_group_close(struct nbnic *nic, struct nbnic_group *g, uint8_t cause, uint64_t now)
{
	const struct nbfw_event leave = { .type = NBFW_EV_LEAVE, .cause = cause };

	/* A host that left cannot be told; one whose NIC stops must be. */
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
	nbnic_feed(nic, g, &leave, NULL, now);
	g->armed = false;
	g->deadline = now + nic->budget_ns;
	nic->linger_bytes += g->bytes;
	/* A client may open and close large groups in turn. */
	while (nic->linger_bytes > nic->linger_bytes_max)
		forget_oldest(nic);
}

void nbnic_group_fail(struct nbnic *nic, struct nbnic_group *g, uint8_t cause, uint64_t now)
{
	const struct nbfw_event leave = { .type = NBFW_EV_LEAVE, .cause = cause };

	if (!g->is_signal)
		nbnic_feed(nic, g, &leave, NULL, now);
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

void nbnic_port_close(struct nbnic *nic, uint32_t port, uint8_t cause, uint64_t now)
{
	for (uint32_t i = 0; i < nic->high; i++) {
		struct nbnic_group *g = nic->group[i];

		if (g && g->port == port && g->life != NBAR_LIFE_LINGER)
			nbnic_group_close(nic, g, cause, now);
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
		.culprit = NBAR_RANK_NONE,
		.waits_for = NBAR_RANK_NONE,
		.nlate = g->nlate,
	};
	for (uint32_t i = 0; i < NBAR_NAME_MAX; i++)
		out->alg[i] = g->alg[i];
	for (uint32_t i = 0; i < g->nlate; i++)
		out->late[i] = g->late[i].rank;
	if (!s)
		return;
	out->epoch = s->epoch;
	out->running = s->running;
	out->status = s->cause;
	out->culprit = s->culprit;
	out->nstep = g->plan->nstep;
	if (!s->running)
		return;
	out->step = s->step;
	out->waits_for = nbfw_plan_recvs(g->plan)[s->want].src;
	for (uint32_t slot = 0; slot < g->plan->nrecv; slot++)
		out->nmissing += nbfw_missing(s, g->plan, slot);
}
