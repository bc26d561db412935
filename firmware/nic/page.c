/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.c - the NIC's side of a port's page: reads doorbells, writes completion words, wakes hosts.
 *
 * Called by the pass. The atomics of the page are here; their partners are in
 * hostlib/src/order.h. The host may write anything at any time: each word is read once into a
 * variable and then checked.
 */
#include "mirror.h"
#include "page.h"

#define SIGNALS_MASK (NBAR_SIGNALS_MAX - 1)

/*
 * Stores a completion word. One half of the word changes: a completed barrier changes the epoch; a
 * failure changes the status, and keeps the epoch of the last completed barrier. A NIC whose widest
 * atomic store has 32 bits writes both halves one after the other; the half that does not change
 * gets its old value. So the host never reads a mixture. See WIRE.md, "Completion".
 */
static inline void store_word(struct nbar_completion *c, uint32_t status, uint32_t epoch, int order)
{
#if __GCC_ATOMIC_LLONG_LOCK_FREE == 2
	__atomic_store_n(&c->word, (uint64_t)status << 32 | epoch, order);
#else
	uint32_t *half = (uint32_t *)(void *)&c->word;
	uint32_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	__atomic_store_n(&half[low], epoch, order);
	__atomic_store_n(&half[1 - low], status, order);
#endif
}

void nbnic_page_begin(struct nbnic_port *p)
{
	p->page->magic = NBAR_ABI_MAGIC;
	p->page->version = NBAR_ABI_VERSION;
	p->page->port = p->number;
	nbnic_page_live(p);
}

void nbnic_page_live(struct nbnic_port *p)
{
	p->life = (p->life | 1) + 2; /* odd, so never 0 */
	/* Pairs with the load in order_life_read. Relaxed: it orders nothing. */
	__atomic_store_n(&p->page->life, p->life, __ATOMIC_RELAXED);
}

void nbnic_page_ask_kicks(struct nbnic_port *p, bool wanted)
{
	/* Pairs with the addition in order_kick_wanted: the later of the two operations sees the
	 * earlier. Either the host sees the request, or the NIC sees what the host has posted. */
	if (wanted)
		__atomic_exchange_n(&p->page->kick, 1, __ATOMIC_ACQ_REL);
	else
		__atomic_store_n(&p->page->kick, 0, __ATOMIC_RELAXED);
	/* A remote host clears its own copy when it kicks. */
	if (wanted && nbnic_mirrors(p))
		nbnic_mirror_ask_kick(p);
}

uint32_t nbnic_page_free_cell(const struct nbnic_port *p)
{
	uint32_t cell = 0;

	while (cell < NBNIC_GROUPS_MAX && (p->cell[cell].group || p->cell[cell].held))
		cell++;
	return cell;
}

uint32_t nbnic_page_free_values(const struct nbnic_port *p)
{
	uint32_t used = 0, index = 0;

	for (uint32_t cell = 0; cell < NBNIC_GROUPS_MAX; cell++)
		if (p->cell[cell].values && (p->cell[cell].group || p->cell[cell].held))
			used |= UINT32_C(1) << (p->cell[cell].values - 1);
	while (index < NBAR_VALUE_GROUPS && used >> index & 1)
		index++;
	return index;
}
_Static_assert(NBAR_VALUE_GROUPS == 32, "a bit each");

void nbnic_cell_begin(struct nbnic_port *p, uint32_t cell, struct nbnic_group *g)
{
	struct nbar_completion *c = &p->completion[cell];
	struct nbar_doorbell *d = &p->page->doorbell[cell];

	/* No order needed: the host looks at a cell only after the reply to its request, and the
	 * request came after its last store to the cell. */
	__atomic_store_n(&d->posted, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&d->wake_seq, 0, __ATOMIC_RELAXED);
	store_word(c, NBAR_STATUS_OK, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->failed_rank, NBAR_RANK_NONE, __ATOMIC_RELAXED);
	__atomic_store_n(&c->nstragglers, 0, __ATOMIC_RELAXED);
	p->cell[cell] = (struct nbnic_cell){ .group = g, .live_index = (uint16_t)p->nlive };
	if (NBNIC_VALUES && g->values) {
		uint32_t index = nbnic_page_free_values(p);

		p->cell[cell].values = (uint8_t)(1 + index);
		for (uint32_t i = 0; i < NBAR_VALUES_AHEAD; i++) /* no value is posted */
			p->value[index][i].value = (struct nbar_value){ .op = NBAR_VALUE_RESULT };
	}
	p->live[p->nlive++] = (uint16_t)cell;
	p->nsignal += g->is_signal;
	if (nbnic_mirrors(p))
		nbnic_mirror_cell(p, cell);
}

void nbnic_cell_end(struct nbnic_port *p, uint32_t cell)
{
	uint16_t index = p->cell[cell].live_index, last = p->live[--p->nlive];

	p->nsignal -= p->cell[cell].group->is_signal;
	p->cell[cell].group = NULL;
	p->live[index] = last; /* the last cell of the list fills the gap */
	p->cell[last].live_index = index;
}

void nbnic_page_wake(struct nbnic_port *p, struct nbnic *nic, uint32_t cell)
{
	uint32_t *word = &p->page->completion[cell].wake;

	p->cell[cell].wake_pending = false;
	p->cell[cell].wake_missed = false;
	/* Pairs with the acquire in order_wake_read: a sleeper that reads the new value also sees
	 * the completion written before it. */
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	if (nbnic_mirrors(p)) {
		nbnic_mirror_wake(p, nic, cell);
		return;
	}
	p->platform->wake(p->ctx, p->number, cell, word);
	nbnic_count(nic, NBAR_COUNTER_wakes);
}

/* The host has requested a wake. A wake can be a system call: if the pass has no budget left for
 * it, the next scan sees the request again. */
__attribute__((noinline)) static void asked(struct nbnic_port *p, struct nbnic *nic, uint32_t cell,
					    uint32_t wake_seq)
{
	struct nbnic_cell *seen = &p->cell[cell];

	if (nic->used.wakes >= NBNIC_PASS_WAKES)
		return;
	seen->wake_seq = wake_seq;
	seen->sleeper = true;
	/* The NIC may have completed a barrier after the sleeper looked and before the NIC read
	 * this word. Then the NIC must wake the sleeper now. */
	if (seen->wake_missed) {
		nic->used.wakes++;
		nbnic_page_wake(p, nic, cell);
	} else {
		seen->wake_pending = true;
	}
}

static inline bool scan_doorbell(struct nbnic_port *p, struct nbnic *nic, uint32_t cell,
				 uint64_t now)
{
	const struct nbar_doorbell *d = &p->page->doorbell[cell];
	struct nbnic_cell *seen = &p->cell[cell];
	/* Pairs with the release in order_post: what the host wrote before it arrived is ordered
	 * before everything that the NIC does for this barrier. */
	uint32_t posted = __atomic_load_n(&d->posted, __ATOMIC_ACQUIRE);
	/* Pairs with the increment in order_ask. No order needed: the flags decide (see asked). */
	uint32_t wake_seq = __atomic_load_n(&d->wake_seq, __ATOMIC_RELAXED);

	if ((posted == seen->posted && wake_seq == seen->wake_seq) || seen->lent)
		return false;
	if (wake_seq != seen->wake_seq)
		asked(p, nic, cell, wake_seq);
	if (posted != seen->posted) {
		seen->posted = posted;
		nbnic_doorbell(nic, seen->group, posted, now);
	}
	return true;
}

#if NBNIC_LEND
void nbnic_page_completed(struct nbnic_port *p, struct nbnic *nic, uint32_t cell)
{
	if (p->cell[cell].wake_pending)
		nbnic_page_wake(p, nic, cell);
	else
		p->cell[cell].wake_missed = true;
}

bool nbnic_page_has_asked(const struct nbnic_port *p, uint32_t cell)
{
	/* Pairs with order_ask. The host has made a system call since. */
	return __atomic_load_n(&p->page->doorbell[cell].wake_seq, __ATOMIC_RELAXED) !=
	       p->cell[cell].wake_seq;
}

bool nbnic_page_is_seen(const struct nbnic_port *p, uint32_t cell)
{
	/* Pairs with order_post. The host has made a system call since, and the wire has its lock.
	 */
	return __atomic_load_n(&p->page->doorbell[cell].posted, __ATOMIC_ACQUIRE) ==
		       p->cell[cell].posted &&
	       !nbnic_page_has_asked(p, cell);
}

uint32_t nbnic_page_completed_epoch(const struct nbnic_port *p, uint32_t cell)
{
	const uint32_t *half = (const void *)&p->completion[cell].word;

	/* No order needed: one caller looks again and again, the other fails the group. */
	return __atomic_load_n(&half[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__], __ATOMIC_RELAXED);
}

bool nbnic_page_is_waiting(const struct nbnic_port *p, uint32_t cell, uint32_t *posted)
{
	*posted = __atomic_load_n(&p->page->doorbell[cell].posted, __ATOMIC_RELAXED);
	return *posted != nbnic_page_completed_epoch(p, cell);
}
#endif

/* Looks at the next NBNIC_SCAN_CELLS cells of a port that has more live cells. */
__attribute__((noinline)) static bool scan_part(struct nbnic_port *p, struct nbnic *nic,
						uint64_t now)
{
	bool any = false;

	for (uint32_t n = 0; n < NBNIC_SCAN_CELLS; n++) {
		if (p->scan_at >= p->nlive)
			p->scan_at = 0;
		any |= scan_doorbell(p, nic, p->live[p->scan_at++], now);
	}
	return any;
}

bool nbnic_page_scan(struct nbnic_port *const *port, uint32_t n, struct nbnic *nic, uint64_t now)
{
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		struct nbnic_port *p = port[i];

		if (p->nlive > NBNIC_SCAN_CELLS) {
			any |= scan_part(p, nic, now);
			continue;
		}
		for (uint32_t c = 0; c < p->nlive; c++)
			any |= scan_doorbell(p, nic, p->live[c], now);
	}
	return any;
}

uint32_t nbnic_page_signals(struct nbnic_port *p, struct nbnic *nic, uint32_t budget)
{
	uint32_t n = 0;

	for (; n < budget; n++) {
		const struct nbar_signal *e = &p->page->send[p->sends_taken & SIGNALS_MASK];
		uint32_t word[NBAR_SIGNAL_WORDS];

		/* Pairs with the release in order_signal_publish: the entry is whole. */
		if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != p->sends_taken + 1)
			break;
		uint32_t cell = __atomic_load_n(&e->cell, __ATOMIC_RELAXED);
		uint32_t peer = __atomic_load_n(&e->peer, __ATOMIC_RELAXED);
		struct nbnic_group *g = nbnic_cell_group(p, cell);

		for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
			word[i] = __atomic_load_n(&e->word[i], __ATOMIC_RELAXED);
		if (!g)
			nbnic_count(nic, NBAR_COUNTER_entries_bad);
		else if (!nbnic_signal(nic, g, peer, word))
			break;
		p->sends_taken++;
	}
	/* Pairs with the acquire in order_taken_read: the host may overwrite what was taken. */
	if (n)
		__atomic_store_n(&p->page->sends_taken, p->sends_taken, __ATOMIC_RELEASE);
	if (n && nbnic_mirrors(p))
		nbnic_mirror_taken(p);
	return n;
}

void nbnic_page_complete(struct nbnic_port *p, struct nbnic *nic, uint32_t cell, uint32_t epoch,
			 uint32_t status, uint32_t failed_rank)
{
	struct nbar_completion *c = &p->completion[cell];

	if (status != NBAR_STATUS_OK)
		__atomic_store_n(&c->failed_rank, failed_rank, __ATOMIC_RELAXED);
	/* Pairs with the acquire in order_completion_read: whoever sees the barrier complete sees
	 * what the members of this node wrote before it, and the failed rank. */
	store_word(c, status, epoch, __ATOMIC_RELEASE);
	/* After a failure the cell may end before the NIC sees a request to wake: all are woken. */
	if (p->cell[cell].wake_pending || status != NBAR_STATUS_OK)
		nbnic_page_wake(p, nic, cell);
	else
		p->cell[cell].wake_missed = true;
}

static struct nbar_value *value_at(const struct nbnic_port *p, uint32_t cell, uint32_t epoch)
{
	return &p->value[p->cell[cell].values - 1][epoch % NBAR_VALUES_AHEAD].value;
}

/* The host may change the value at any time, so the head is read once, and then checked. The
 * doorbell orders these loads: its acquire pairs with the release in order_post. */
int nbnic_page_operand(const struct nbnic_port *p, uint32_t cell, uint32_t epoch,
		       struct nbfw_value *out, uint32_t most)
{
	const struct nbar_value *v = value_at(p, cell, epoch);
	const uint32_t head[2] = { __atomic_load_n((const uint32_t *)(const void *)v,
						   __ATOMIC_RELAXED) };
	uint32_t length;

	__builtin_memcpy(out, head, sizeof(head));
	if (__atomic_load_n(&v->epoch, __ATOMIC_RELAXED) != epoch || (out->op & NBAR_VALUE_RESULT))
		return 0;
	length = nbfw_value_length(out);
	if (length == 0 || length > most)
		return -NBAR_EINVAL;
	if (length == 8) /* without a call */
		__builtin_memcpy(out->byte, v->of.byte, 8);
	else
		__builtin_memcpy(out->byte, v->of.byte, length);
	return (int)length;
}

/* The release of the completion word, which follows, orders these stores. */
void nbnic_page_result(struct nbnic_port *p, uint32_t cell, uint32_t epoch,
		       const struct nbfw_value *v, uint32_t length)
{
	struct nbar_value *to = value_at(p, cell, epoch);

	nbfw_value_copy((struct nbfw_value *)(void *)to, v, length);
	to->op = v->op | NBAR_VALUE_RESULT;
	to->epoch = epoch;
}

void nbnic_page_stragglers(struct nbnic_port *p, uint32_t cell,
			   const struct nbnic_straggler *straggler, uint32_t n)
{
	struct nbar_completion *c = &p->completion[cell];

	for (uint32_t i = 0; i < n; i++) {
		__atomic_store_n(&c->straggler[i], straggler[i].rank, __ATOMIC_RELAXED);
		__atomic_store_n(&c->why[i], straggler[i].why, __ATOMIC_RELAXED);
	}
	/* Pairs with the acquire in order_stragglers_read. Advisory: a reader may see a mixture of
	 * two lists, but never an entry that was not written. */
	__atomic_store_n(&c->nstragglers, n, __ATOMIC_RELEASE);
	if (nbnic_mirrors(p))
		nbnic_mirror_stragglers(p, cell);
}

bool nbnic_page_deliver(struct nbnic_port *p, uint32_t cell, uint32_t src,
			const uint32_t word[NBAR_SIGNAL_WORDS])
{
	struct nbar_signal *e = &p->page->recv[p->recvs_given & SIGNALS_MASK];

	if (p->recvs_given - p->recvs_taken >= NBAR_SIGNALS_MAX) {
		/* Pairs with the release in order_taken_write. A wrong value from the host harms
		 * only its own ring, because the NIC keeps its own index. */
		p->recvs_taken = __atomic_load_n(&p->page->recvs_taken, __ATOMIC_ACQUIRE);
		if (p->recvs_given - p->recvs_taken >= NBAR_SIGNALS_MAX)
			return false;
	}
	__atomic_store_n(&e->cell, cell, __ATOMIC_RELAXED);
	__atomic_store_n(&e->peer, src, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
		__atomic_store_n(&e->word[i], word[i], __ATOMIC_RELAXED);
	/* Pairs with the acquire in order_signal_ready: the entry is whole. */
	__atomic_store_n(&e->seq, ++p->recvs_given, __ATOMIC_RELEASE);
	if (nbnic_mirrors(p))
		nbnic_mirror_delivered(p);
	return true;
}
