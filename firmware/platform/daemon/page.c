/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.c - the NIC's side of a port's page.
 *
 * Called by the polling thread. The only file of the firmware with atomics; their partners are in
 * hostlib/src/order.h. The host may write anything at any time: each word is read once into a
 * variable and then checked, and nothing that the NIC itself wrote there is ever read back.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "page.h"

#define SIGNALS_A_SCAN 64u /* so that one busy port does not keep the others waiting */
#define SIGNALS_MASK (NBAR_SIGNALS_MAX - 1)

int page_create(struct port *p, uint32_t number)
{
	int fd = memfd_create("nbar-port", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct nbar_page *page;

	if (fd < 0)
		return -errno;
	/* A client that could shrink the file could kill the NIC with SIGBUS. */
	if (ftruncate(fd, sizeof(*page)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto fail;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		goto fail;
	*p = (struct port){ .page = page, .fd = fd, .number = number };
	page->magic = NBAR_ABI_MAGIC;
	page->version = NBAR_ABI_VERSION;
	page->port = number;
	return 0;
fail:;
	int err = errno;

	close(fd);
	return -err;
}

void page_destroy(struct port *p)
{
	munmap(p->page, sizeof(*p->page));
	close(p->fd);
	p->page = NULL;
	p->fd = -1;
}

void page_cell_begin(struct port *p, uint32_t cell, struct nbnic_group *g)
{
	struct nbar_completion *c = &p->page->completion[cell];
	struct nbar_doorbell *d = &p->page->doorbell[cell];

	/* No order needed: the host looks at a cell only after the reply to its request, and the
	 * request came after its last store to the cell. */
	__atomic_store_n(&d->posted, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&d->asked, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->word, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->culprit, NBAR_RANK_NONE, __ATOMIC_RELAXED);
	__atomic_store_n(&c->nlate, 0, __ATOMIC_RELAXED);
	p->seen[cell] = (struct nbar_doorbell){ 0, 0 };
	p->asked[cell] = false;
	p->unwoken[cell] = false;
	p->group[cell] = g;
	p->nsignal += g->is_signal;
	if (p->ncell <= cell)
		p->ncell = cell + 1;
}

void page_cell_end(struct port *p, uint32_t cell)
{
	p->nsignal -= p->group[cell]->is_signal;
	p->group[cell] = NULL;
	while (p->ncell > 0 && !p->group[p->ncell - 1])
		p->ncell--;
}

static void wake(struct port *p, struct nbnic *nic, uint32_t cell)
{
	uint32_t *word = &p->page->completion[cell].wake;

	p->asked[cell] = false;
	p->unwoken[cell] = false;
	/* Pairs with the acquire in order_wake_read: a sleeper that reads the new value also sees
	 * the completion written before it. */
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	nbnic_count(nic, NBAR_COUNTER_wakes);
}

static bool scan_doorbell(struct port *p, struct nbnic *nic, uint32_t cell, uint64_t now)
{
	struct nbar_doorbell *d = &p->page->doorbell[cell];
	struct nbar_doorbell *seen = &p->seen[cell];
	/* Pairs with the release in order_post: what the host wrote before it arrived is ordered
	 * before everything that the NIC does for this barrier. */
	uint32_t posted = __atomic_load_n(&d->posted, __ATOMIC_ACQUIRE);
	/* Pairs with the bump in order_ask. No order needed: the flags decide (see wake). */
	uint32_t asked = __atomic_load_n(&d->asked, __ATOMIC_RELAXED);

	if (posted == seen->posted && asked == seen->asked)
		return false;
	if (posted != seen->posted) {
		seen->posted = posted;
		if (p->group[cell])
			nbnic_doorbell(nic, p->group[cell], posted, now);
		else
			nbnic_count(nic, NBAR_COUNTER_doorbells_bad);
	}
	if (asked != seen->asked) {
		seen->asked = asked;
		/* The sleeper may have looked just before a completion that came before we read
		 * `asked`: then it must be woken now. */
		if (p->unwoken[cell])
			wake(p, nic, cell);
		else
			p->asked[cell] = true;
	}
	return true;
}

static bool scan_sends(struct port *p, struct nbnic *nic)
{
	uint32_t n = 0;

	for (; n < SIGNALS_A_SCAN; n++) {
		const struct nbar_signal *e = &p->page->send[p->sends_taken & SIGNALS_MASK];
		uint32_t word[NBAR_SIGNAL_WORDS];

		/* Pairs with the release in order_signal_publish: the entry is whole. */
		if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != p->sends_taken + 1)
			break;
		uint32_t cell = __atomic_load_n(&e->cell, __ATOMIC_RELAXED);
		uint32_t peer = __atomic_load_n(&e->peer, __ATOMIC_RELAXED);

		for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
			word[i] = __atomic_load_n(&e->word[i], __ATOMIC_RELAXED);
		if (cell >= p->ncell || !p->group[cell])
			nbnic_count(nic, NBAR_COUNTER_entries_bad);
		else if (!nbnic_signal(nic, p->group[cell], peer, word))
			break; /* it stays in the ring until there is room */
		p->sends_taken++;
	}
	/* Pairs with the acquire in order_taken_read: the host may overwrite what was taken. */
	if (n > 0)
		__atomic_store_n(&p->page->sends_taken, p->sends_taken, __ATOMIC_RELEASE);
	return n > 0;
}

bool page_scan(struct port *p, struct nbnic *nic, uint64_t now)
{
	bool any = false;

	for (uint32_t cell = 0; cell < p->ncell; cell++)
		any |= scan_doorbell(p, nic, cell, now);
	if (p->nsignal)
		any |= scan_sends(p, nic);
	return any;
}

void page_complete(struct port *p, struct nbnic *nic, uint32_t cell, uint32_t epoch,
		   uint32_t status, uint32_t culprit)
{
	struct nbar_completion *c = &p->page->completion[cell];

	if (status != NBAR_STATUS_OK)
		__atomic_store_n(&c->culprit, culprit, __ATOMIC_RELAXED);
	/* Pairs with the acquire in order_completion_read: whoever sees the barrier complete sees
	 * what the members of this node wrote before it, and the culprit. */
	__atomic_store_n(&c->word, (uint64_t)status << 32 | epoch, __ATOMIC_RELEASE);
	/* After a failure the cell may end before we see who asks: all are woken. */
	if (p->asked[cell] || status != NBAR_STATUS_OK)
		wake(p, nic, cell);
	else
		p->unwoken[cell] = true;
}

void page_late(struct port *p, uint32_t cell, const struct nbnic_late *late, uint32_t n)
{
	struct nbar_completion *c = &p->page->completion[cell];

	for (uint32_t i = 0; i < n; i++)
		__atomic_store_n(&c->late[i], late[i].rank, __ATOMIC_RELAXED);
	/* Pairs with the acquire in order_late_read. Advisory: a reader may see a mixture of two
	 * lists, but never an entry that was not written. */
	__atomic_store_n(&c->nlate, n, __ATOMIC_RELEASE);
}

bool page_deliver(struct port *p, uint32_t cell, uint32_t src,
		  const uint32_t word[NBAR_SIGNAL_WORDS])
{
	struct nbar_signal *e = &p->page->recv[p->recvs_given & SIGNALS_MASK];

	if (p->recvs_given - p->recvs_taken >= NBAR_SIGNALS_MAX) {
		/* Pairs with the release in order_taken_write. A host that lies here harms only
		 * its own ring: the index is ours. */
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
	return true;
}
