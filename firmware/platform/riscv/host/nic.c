/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic.c - memory that is shared with the machine, calls to the firmware, and wakes from it.
 *
 * Called by main.c and serve.c, from the one thread. The atomics here have their partners in
 * image/main.c and image/machine.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"
#include "nic.h"

/* Time limits, after which the machine counts as hung. */
#define START_MS 60000
#define ANSWER_MS 20000
#define STOP_MS 5000

static int bar_make(const char *name, size_t bytes, int *fd, void **at)
{
	int rc;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		goto fail;
	/* A client that could shrink the file could kill the NIC with SIGBUS. */
	if (ftruncate(*fd, (off_t)bytes) < 0 ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto fail;
	*at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (*at != MAP_FAILED)
		return 0;
fail:
	rc = -errno;
	log_error("no memory for the BARs of the NIC: %s", strerror(errno));
	return rc;
}

int nic_memory(struct nic *n, const struct options *o)
{
	struct bared_control *c;
	void *at;
	int rc = bar_make("nbar-control", BARED_CONTROL_BYTES, &n->control_fd, &at);

	n->options = o;
	if (rc < 0)
		return rc;
	n->control = c = at;
	for (uint32_t i = 0; i < o->set.nport; i++) {
		rc = bar_make("nbar-port", BARED_PAGE_BYTES, &n->page_fd[i], &at);
		if (rc < 0)
			return rc;
		n->page[i] = at;
	}
	c->magic = BARED_MAGIC;
	c->version = BARED_VERSION;
	c->nport = o->set.nport;
	c->pid = (uint32_t)getpid();
	c->pull_ns = o->set.config.pull_ns;
	c->budget_ns = o->set.config.budget_ns;
	memcpy(c->name, o->set.name, sizeof(c->name));
	return 0;
}

static enum bared_state nic_state(const struct nic *n)
{
	/* Pairs with the releases of `state` in the image: the text is complete. */
	return (enum bared_state)__atomic_load_n(&n->control->state, __ATOMIC_ACQUIRE);
}

static void nic_wakes(struct nic *n)
{
	for (uint32_t port = 0; port < n->options->set.nport; port++)
		for (uint32_t cell = 0; cell < BARED_CELLS; cell++) {
			/* Pairs with the release in on_wake: the word that sleepers wait on has
			 * been incremented. */
			uint32_t seen =
				__atomic_load_n(&n->control->woken[port][cell], __ATOMIC_ACQUIRE);

			if (seen == n->woken[port][cell])
				continue;
			n->woken[port][cell] = seen;
			syscall(SYS_futex, &n->page[port]->completion[cell].wake, FUTEX_WAKE,
				INT_MAX, NULL, NULL, 0);
		}
}

static bool fail(struct nic *n, const char *what, const char *more)
{
	if (!n->failed)
		log_error("nic %s: %s%s", n->options->set.name, what, more);
	n->failed = true;
	return false;
}

bool nic_heard(struct nic *n)
{
	char byte[256];
	ssize_t got = recv(n->bell, byte, sizeof(byte), MSG_DONTWAIT);
	const char *how;

	nic_wakes(n);
	if (n->failed)
		return false;
	switch (nic_state(n)) {
	case BARED_FAILED:
		n->control->text[sizeof(n->control->text) - 1] = '\0';
		return fail(n, "its firmware has stopped: ", n->control->text);
	case BARED_STARTING:
	case BARED_READY:
	case BARED_STOPPED:
		break;
	}
	if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
		return true;
	if (n->stopping)
		return false;
	how = qemu_end(n, 1000);
	return fail(n, "its machine has ended: ", how ? how : "QEMU has left");
}

int nic_start(struct nic *n, int stop_fd)
{
	struct pollfd p[] = { { .events = POLLIN }, { .fd = stop_fd, .events = POLLIN } };
	int rc = qemu_start(n);

	if (rc < 0)
		return rc;
	p[0].fd = n->bell;
	while (nic_state(n) != BARED_READY) {
		rc = poll(p, 2, START_MS);
		if (p[1].revents)
			return -EINTR;
		if (rc == 0)
			fail(n, "its machine does not start; is the image one of nbar? ",
			     n->options->image);
		if (rc == 0 || (rc > 0 && !nic_heard(n)))
			return -EIO;
	}
	return 0;
}

int nic_call(struct nic *n, enum bared_op op)
{
	struct bared_call *call = &n->control->call;
	struct pollfd p = { .fd = n->bell, .events = POLLIN };
	uint32_t seq = call->seq + 1;

	if (n->failed)
		return -EIO;
	if (getrandom(call->random, sizeof(call->random), 0) != sizeof(call->random)) {
		fail(n, "the kernel gives no random numbers", "");
		return -EIO;
	}
	call->op = op;
	/* Pairs with the acquire in serve_call: call and message are complete. */
	__atomic_store_n(&call->seq, seq, __ATOMIC_RELEASE);
	/* If the socket has no room, the machine has not read an earlier byte yet: that is
	 * enough. */
	(void)!send(n->bell, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* Pairs with the release in serve_call: answer and reply are complete. */
	while (__atomic_load_n(&n->control->answer.seq, __ATOMIC_ACQUIRE) != seq) {
		int rc = poll(&p, 1, ANSWER_MS);

		if (rc == 0)
			fail(n, "it does not answer any more", "");
		if (rc == 0 || (rc > 0 && !nic_heard(n)))
			return -EIO;
	}
	return 0;
}

void nic_stop(struct nic *n)
{
	struct pollfd p = { .fd = n->bell, .events = POLLIN };

	n->stopping = true;
	n->control->call.client = 0;
	n->control->call.length = 0;
	if (nic_call(n, BARED_STOP) < 0)
		return;
	while (poll(&p, 1, STOP_MS) != 0 && nic_heard(n))
		;
}

void nic_free(struct nic *n)
{
	if (n->bell >= 0)
		close(n->bell);
	if (n->control)
		munmap(n->control, BARED_CONTROL_BYTES);
	if (n->control_fd >= 0)
		close(n->control_fd);
	for (uint32_t i = 0; i < BARED_PORTS_MAX; i++) {
		if (n->page[i])
			munmap(n->page[i], BARED_PAGE_BYTES);
		if (n->page_fd[i] >= 0)
			close(n->page_fd[i]);
	}
}
