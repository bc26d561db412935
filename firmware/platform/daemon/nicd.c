/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd.c - NICs on Linux: implements nic/platform.h, and the loop of the polling thread.
 *
 * On the path from token to completion: no allocation, no lock, and no system call except those of
 * the wire and the wake of a sleeper.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "nicd.h"
#include "nbar_host.h"

/* Idle policy "sleep": from the last work to the first sleep, if a NIC itself runs groups. */
#define AWAKE_NS UINT64_C(200000)
/* The longest sleep. A host doubts a NIC without a sign of life. */
#define SLEEP_MAX_NS UINT64_C(250000000)
#define PASSES_A_CALL 16u
/* After all groups have failed, peers have some pull intervals to send PULLs, and the NIC sends its
 * remaining frames for a bounded time. */
#define STOP_NS UINT64_C(5000000)
#define STOP_LATEST_NS UINT64_C(200000000)

uint64_t nicd_clock(void)
{
	return nbar_now_ns();
}

/* --- the functions of the platform -------------------------------------------------------- */

static void *on_alloc(void *ctx, size_t size)
{
	(void)ctx;
	return malloc(size);
}

static void on_free(void *ctx, void *block)
{
	(void)ctx;
	free(block);
}

static bool on_random(void *ctx, uint64_t *out)
{
	(void)ctx;
	return getrandom(out, sizeof(*out), 0) == sizeof(*out);
}

struct exclusive {
	struct nicd *nicd;
	nbnic_fn *fn;
	void *arg;
};

static void run_exclusive(void *arg, uint64_t now)
{
	const struct exclusive *x = arg;

	x->fn(x->arg, now);
	/* Without a polling thread, the holder of the lock runs several passes: since the last
	 * pass, more frames may have come than one pass takes. */
	if (!mailbox_is_shared(&x->nicd->mailbox))
		return;
	for (uint32_t i = 0; i < PASSES_A_CALL && nicd_pass(x->nicd, now); i++)
		continue;
}

static void on_exclusive(void *ctx, nbnic_fn *fn, void *arg)
{
	const struct nicd_nic *n = ctx;
	struct exclusive x = { .nicd = n->nicd, .fn = fn, .arg = arg };

	mailbox_call(&n->nicd->mailbox, run_exclusive, &x);
}

/* A call that a wire wants to run between two passes. */
static void on_wire_call(struct wire_base *w, wire_fn *fn, void *arg)
{
	const struct nicd_nic *n = w->platform;

	mailbox_call(&n->nicd->mailbox, fn, arg);
}

static int on_page_make(void *ctx, uint32_t port, struct nbar_page **out)
{
	struct nicd_nic *n = ctx;
	void *page;
	int fd, rc;

	/* The page's; and two more of some wires. */
	if (n->fds_left < (n->device.wire->ops->port_fds ? 3 : 1))
		return -EMFILE;
	fd = memfd_create("nbar-port", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	/* A client that could shrink the file could kill the NIC with SIGBUS. */
	if (ftruncate(fd, sizeof(struct nbar_page)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto fail;
	page = mmap(NULL, sizeof(struct nbar_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		goto fail;
	n->wakes[port] = wakes_new(n->waker, page);
	if (!n->wakes[port]) {
		munmap(page, sizeof(struct nbar_page));
		errno = ENOMEM;
		goto fail;
	}
	n->page_fd[port] = fd;
	*out = page;
	return 0;
fail:
	rc = -errno;
	close(fd);
	return rc;
}
_Static_assert(ENOMEM == NBAR_ENOMEM && EMFILE == NBAR_EMFILE && ENOSPC == NBAR_ENOSPC,
	       "Linux counts its errors as the ABI does");

static int on_events_make(void *ctx, uint32_t port, uint32_t cell)
{
	struct nicd_nic *n = ctx;
	int fd = wakes_events_make(n->wakes[port], &n->nicd->mailbox, cell, n->fds_left);

	if (fd < 0)
		return fd;
	n->events_fd = fd;
	return 0;
}

static void on_events_drop(void *ctx, uint32_t port, uint32_t cell)
{
	struct nicd_nic *n = ctx;

	wakes_events_drop(n->wakes[port], &n->nicd->mailbox, cell);
}

/* The client's own mapping stays valid until the client ends. */
static void on_page_drop(void *ctx, uint32_t port, struct nbar_page *page)
{
	struct nicd_nic *n = ctx;

	remote_leave(n, port);
	wakes_end(n->wakes[port]);
	n->wakes[port] = NULL;
	munmap(page, sizeof(*page));
	close(n->page_fd[port]);
	n->page_fd[port] = -1;
}

static void on_wake(void *ctx, uint32_t port, uint32_t cell, uint32_t *word)
{
	const struct nicd_nic *n = ctx;

	(void)word;
	wakes_wake(n->wakes[port], cell);
}

/* Asks for a look, at most ten times a second. look_fd is an eventfd, so the write never blocks. */
static void on_look(void *ctx)
{
	const struct nicd_nic *n = ctx;
	const uint64_t one = 1;

	if (n->nicd->look_fd >= 0)
		(void)!write(n->nicd->look_fd, &one, sizeof(one));
}

static void nicd_on_trace(void *ctx, const struct nbar_trace_event *e)
{
	const struct nicd_nic *n = ctx;

	trace_ring_note(n->trace, e, nicd_clock());
}

static const struct nbnic_platform daemon_platform = {
	.alloc = on_alloc,
	.free = on_free,
	.random = on_random,
	.exclusive = on_exclusive,
	.page_make = on_page_make,
	.page_drop = on_page_drop,
	.events_make = on_events_make,
	.events_drop = on_events_drop,
	.wake = on_wake,
	.push = remote_push,
	.look = on_look,
	.trace = nicd_on_trace,
};

/* --- a set of NICs ---------------------------------------------------------------------------- */

void nicd_init(struct nicd *d, const struct nbnic_config *config)
{
	*d = (struct nicd){ .config = *config, .look_fd = -1, .mailbox.bell = -1 };
}

int nicd_add(struct nicd *d, const char *name, struct wire_base *wire)
{
	struct nicd_nic *n;
	int rc;

	if (d->nnic == NBAR_NICS_MAX)
		return -ENOSPC;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	rc = nbnic_device_init(&n->device, name, wire, &daemon_platform, n, &d->config);
	if (rc < 0) {
		free(n);
		return rc;
	}
	n->device.pid = (uint32_t)getpid();
	n->fds_left = UINT32_MAX;
	wire->call = on_wire_call;
	wire->platform = n;
	n->nicd = d;
	d->nic[d->nnic++] = n;
	return 0;
}

void nicd_trace(struct nicd *d, uint32_t i, struct trace_ring *trace)
{
	d->nic[i]->trace = trace;
	d->nic[i]->device.nic.tracing = trace;
}

bool nicd_pass(struct nicd *d, uint64_t now)
{
	bool work = mailbox_serve(&d->mailbox, now);

	for (uint32_t i = 0; i < d->nnic; i++)
		work |= nbnic_device_pass(&d->nic[i]->device, now);
	return work;
}

int nicd_may_sleep(struct nicd *d)
{
	struct mailbox *m = &d->mailbox;

	m->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->bell < 0)
		return -errno;
	d->wake[0] = (struct pollfd){ .fd = m->bell, .events = POLLIN };
	for (uint32_t i = 0; i < d->nnic; i++) {
		struct wire_base *w = d->nic[i]->device.wire;
		int fd = w->ops->wakes ? w->ops->wakes(w) : -1;

		d->naps |= !w->ops->wakes;
		d->wake[1 + i] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	d->nwake = 1 + d->nnic;
	if (d->remote) {
		d->naps = true;
		d->wake[d->nwake++] =
			(struct pollfd){ .fd = remote_descriptor(d->remote), .events = POLLIN };
	}
	return 0;
}

static void ask_kicks(struct nicd *d, bool wanted)
{
	for (uint32_t i = 0; i < d->nnic; i++)
		nbnic_device_ask_kicks(&d->nic[i]->device, wanted);
}

/* Returns when the thread must be awake at the latest. */
static uint64_t wake_at(const struct nicd *d, uint64_t now, uint64_t idle_ns)
{
	uint64_t until = now + SLEEP_MAX_NS, nap = idle_ns / 8, next;

	/* Some wire wakes nobody. The nap grows with the time without work, so a frame that comes
	 * soon waits only briefly. */
	if (d->naps)
		until = now + (nap < NICD_DOZE_MAX_NS ? nap : NICD_DOZE_MAX_NS);
	for (uint32_t i = 0; i < d->nnic; i++) {
		next = nbnic_device_next(&d->nic[i]->device);
		until = next < until ? next : until;
	}
	return until;
}

/* Sleeps until a request, a kick, a frame or a timer. True: there was work before it slept. */
static bool sleep_now(struct nicd *d, uint64_t now, uint64_t idle_ns)
{
	bool work = false;
	uint64_t until, bells;
	uint32_t scans = 1;

	ask_kicks(d, true);
	for (uint32_t i = 0; i < d->nnic; i++)
		if (nbnic_device_scans(&d->nic[i]->device) > scans)
			scans = nbnic_device_scans(&d->nic[i]->device);
	for (uint32_t i = 0; i < scans && !work; i++)
		work = nicd_pass(d, now);
	until = wake_at(d, now, idle_ns);
	if (!work && until > now) {
		const struct timespec t = {
			.tv_sec = (time_t)((until - now) / UINT64_C(1000000000)),
			.tv_nsec = (long)((until - now) % UINT64_C(1000000000)),
		};

		if (ppoll(d->wake, d->nwake, &t, NULL) > 0 && d->wake[0].revents) {
			(void)!read(d->mailbox.bell, &bells, sizeof(bells));
			/* Hosts also kick if a wire did not get their post. */
			for (uint32_t i = 0; i < d->nnic; i++)
				nbnic_device_look(&d->nic[i]->device);
		}
		if (d->remote && d->wake[d->nwake - 1].revents)
			remote_take(d->remote);
	}
	ask_kicks(d, false);
	return work;
}

static bool lends_all(const struct nicd *d)
{
	uint32_t i = 0;

	while (i < d->nnic && nbnic_device_lends_all(&d->nic[i]->device))
		i++;
	return i == d->nnic;
}

/* True: everything is sent, or the time for it has passed. */
static bool is_over(const struct nicd *d, uint64_t now)
{
	if (!d->stop_at || now < d->stop_at)
		return false;
	for (uint32_t i = 0; i < d->nnic; i++)
		if (nbnic_device_next(&d->nic[i]->device) == 0)
			return now >= d->stop_latest;
	return true;
}

void nicd_run(struct nicd *d, enum nicd_idle idle, uint64_t spin_ns)
{
	uint64_t now = nicd_clock(), work_at = now;

	for (; !is_over(d, now); now = nicd_clock()) {
		bool work = nicd_pass(d, now), lent = idle == NICD_IDLE_SLEEP && lends_all(d);

		if (work) {
			work_at = now;
			if (!lent || d->stop_at)
				continue;
			/* The pass before the sleep is the next one. */
			now = nicd_clock();
		}
		if (now - work_at < spin_ns && !lent)
			continue;
		switch (idle) {
		case NICD_IDLE_SPIN:
			break;
		case NICD_IDLE_SLEEP:
			if ((now - work_at < AWAKE_NS && !lent) || d->stop_at)
				sched_yield();
			else if (sleep_now(d, now, now - work_at))
				work_at = now;
			break;
		case NICD_IDLE_YIELD:
			sched_yield();
			break;
		}
	}
}

void nicd_stop(struct nicd *d, uint64_t now)
{
	for (uint32_t i = 0; i < d->nnic; i++)
		nbnic_device_stop(&d->nic[i]->device, now);
	d->stop_at = now + STOP_NS;
	d->stop_latest = now + STOP_LATEST_NS;
}

void nicd_fini(struct nicd *d)
{
	for (uint32_t i = 0; i < d->nnic; i++) {
		struct nicd_nic *n = d->nic[i];

		nbnic_device_end(&n->device);
		n->device.wire->ops->close(n->device.wire);
		free(n);
	}
	d->nnic = 0;
	remote_close(d);
	close(d->mailbox.bell);
}
