/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nicd.c - the NICs of a daemon without their passes: when the polling thread yields, sleeps,
 * and for how long; how it ends; pages of ports, and what a failed call leaves behind.
 */
#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "nicd.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define NOW UINT64_C(77000000000)

static struct nicd d;
static struct wire_base wire[NBAR_NICS_MAX + 1];
static uint64_t now, next[2];        /* the clock; what nbnic_device_next says */
static uint64_t pass_ns, work_until; /* a pass takes so long; passes before have work */
static uint32_t npass[2], nyield, nsleep, nstop[2], nclosed;
static int asked[2];                /* for kicks, at present */
static uint64_t slept_ns, slept_at; /* the last sleep */
static uint32_t passes_at_sleep;
static void (*at_sleep)(void);
static uint32_t passes_end; /* after so many, the thread is stopped */
static int64_t pages;

static uint32_t number_of(const struct nbnic_device *device)
{
	return device == &d.nic[0]->device ? 0 : 1;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	assert_int_equal(id, CLOCK_MONOTONIC);
	*out = (struct timespec){ (time_t)(now / 1000000000), (long)(now % 1000000000) };
	return 0;
}

int __wrap_sched_yield(void)
{
	nyield++;
	now += US;
	return 0;
}

bool __wrap_nbnic_device_pass(struct nbnic_device *device, uint64_t at)
{
	uint32_t i = number_of(device);

	npass[i]++;
	if (i == 1 || d.nnic == 1)
		now += pass_ns;
	if (passes_end && npass[i] == passes_end && i == 0)
		nicd_stop(&d, at);
	return i == 0 && at < work_until;
}

uint64_t __wrap_nbnic_device_next(const struct nbnic_device *device)
{
	return next[number_of(device)];
}

void __wrap_nbnic_device_ask_kicks(struct nbnic_device *device, bool wanted)
{
	asked[number_of(device)] += wanted ? 1 : -1;
}

void __wrap_nbnic_device_stop(struct nbnic_device *device, uint64_t at)
{
	nstop[number_of(device)]++;
}

int __real_ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask);
int __wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	const struct timespec zero = { 0, 0 };

	assert_true(asked[0] == 1 && asked[1] == 1 && !mask);
	assert_int_equal(n, 3);
	assert_in_range(t->tv_nsec, 0, 999999999);
	slept_at = now;
	passes_at_sleep = npass[0];
	slept_ns = (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
	now += slept_ns;
	nsleep++;
	if (at_sleep)
		at_sleep();
	return __real_ppoll(p, n, &zero, NULL);
}

static const void *noted[2]; /* the last event: its trace, and itself */
static uint64_t noted_at;

void __wrap_trace_ring_note(struct trace_ring *t, const struct nbar_trace_event *e, uint64_t at)
{
	noted[0] = t;
	noted[1] = e;
	noted_at = at;
}

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
	return call_fails(EMFILE) ? -1 : __real_memfd_create(name, flags);
}

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
	return call_fails(EPERM) ? -1 : __real_ftruncate(fd, size);
}

int __real_fcntl(int fd, int command, int seals);
int __wrap_fcntl(int fd, int command, int seals)
{
	return call_fails(EPERM) ? -1 : __real_fcntl(fd, command, seals);
}

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *page = MAP_FAILED;

	if (!call_fails(ENODEV))
		page = __real_mmap(at, size, prot, flags, fd, offset);
	pages += page != MAP_FAILED;
	return page;
}

int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size)
{
	assert_int_equal(size, sizeof(struct nbar_page));
	pages--;
	return __real_munmap(at, size);
}

int __real_eventfd(unsigned n, int flags);
int __wrap_eventfd(unsigned n, int flags)
{
	return call_fails(EMFILE) ? -1 : __real_eventfd(n, flags);
}

/* --- NICs ---------------------------------------------------------------------------------- */

static void wire_close(struct wire_base *w)
{
	nclosed++;
}

static int wire_wakes(const struct wire_base *w)
{
	return w->fd;
}

static bool wire_lend(struct wire_base *w, const struct nbnic_group *g, const struct wire_lend *how)
{
	return false;
}

static const struct wire_ops ops_that_lend = { .close = wire_close,
					       .wakes = wire_wakes,
					       .lend = wire_lend };
static const struct wire_ops ops = { .close = wire_close },
			     ops_that_wake = { .close = wire_close, .wakes = wire_wakes };
static const struct nbnic_config usual = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					   .budget_ns = NBNIC_BUDGET_NS_DEFAULT };

/* A set of NICs without a thread. awake: how many of them have a wire that wakes. */
static void nics(uint32_t n, uint32_t awake)
{
	nicd_init(&d, &usual);
	now = NOW;
	pass_ns = work_until = 0;
	next[0] = next[1] = UINT64_MAX;
	memset(npass, 0, sizeof(npass));
	memset(nstop, 0, sizeof(nstop));
	memset(asked, 0, sizeof(asked));
	nyield = nsleep = nclosed = passes_end = calls = fail_at = 0;
	at_sleep = NULL;
	blocks = pages = 0;
	for (uint32_t i = 0; i < n; i++) {
		wire[i] = (struct wire_base){ .ops = i < awake ? &ops_that_wake : &ops,
					      .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) };
		assert_int_equal(nicd_add(&d, i == 0 ? "n0" : "n1", &wire[i]), 0);
	}
}

static void nics_end(void)
{
	uint32_t n = d.nnic;

	nicd_fini(&d);
	assert_int_equal(nclosed, n);
	assert_int_equal(d.nnic, 0);
	for (uint32_t i = 0; i < n; i++)
		close(wire[i].fd);
	assert_int_equal(blocks, 0);
	assert_int_equal(pages, 0);
}

static uint64_t called_at;

static void note_call(void *arg, uint64_t at)
{
	*(uint64_t *)arg = at;
}

static uint64_t clock_of_calls(void)
{
	return NOW + 5;
}

static void a_set_of_nics(void **state)
{
	const struct nbnic_config bad = { .pull_ns = 0 };

	nics(2, 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(d.nic[i]->device.pid, getpid());
		assert_int_equal(d.nic[i]->fds_left, UINT32_MAX);
		assert_ptr_equal(d.nic[i]->device.wire, &wire[i]);
		/* A call of a wire runs between two passes. */
		mailbox_share(&d.mailbox, clock_of_calls);
		called_at = 0;
		wire[i].call(&wire[i], note_call, &called_at);
		assert_int_equal(called_at, NOW + 5);
	}
	fail_at = calls + 1;
	assert_int_equal(nicd_add(&d, "n2", &wire[2]), -ENOMEM);
	wire[2].ops = &ops;
	d.config = bad;
	assert_int_equal(nicd_add(&d, "n2", &wire[2]), -EINVAL);
	assert_int_equal(d.nnic, 2);
	nics_end();
	nics(0, 0);
	for (uint32_t i = 0; i < NBAR_NICS_MAX; i++) {
		wire[i] = (struct wire_base){ .ops = &ops, .fd = -1 };
		assert_int_equal(nicd_add(&d, "n", &wire[i]), 0);
	}
	assert_int_equal(nicd_add(&d, "n", &wire[NBAR_NICS_MAX]), -ENOSPC);
	nics_end();
}

/* --- the polling thread -------------------------------------------------------------------- */

static void stop(void)
{
	nicd_stop(&d, now);
}

/* For how long a thread polls, and yields, before it sleeps. */
static void what_it_does_without_work(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		nics(2, 2);
		pass_ns = US;
		passes_end = 1000;
		if (i == 0)
			nicd_run(&d, NICD_IDLE_SPIN, 0);
		else
			nicd_run(&d, NICD_IDLE_YIELD, 10 * MS);
		assert_int_equal(nyield, 0);
		assert_int_equal(npass[0], npass[1]);
		assert_int_equal(nsleep, 0);
		assert_true(nstop[0] == 1 && nstop[1] == 1);
		nics_end();
	}
	/* A pass without work is over in no time: each yield takes 1 us. */
	nics(2, 2);
	passes_end = 1;
	nicd_run(&d, NICD_IDLE_YIELD, 0);
	assert_int_equal(nyield, 5000);
	assert_int_equal(now, NOW + 5 * MS);
	nics_end();
	/* With work it does not yield. */
	nics(2, 2);
	pass_ns = US;
	work_until = UINT64_MAX;
	passes_end = 10;
	nicd_run(&d, NICD_IDLE_YIELD, 0);
	assert_int_equal(nyield, 0);
	nics_end();
	/* After 4 us in which it only polls. */
	nics(2, 2);
	pass_ns = US;
	passes_end = 100;
	nicd_run(&d, NICD_IDLE_YIELD, 4 * US);
	assert_int_equal(npass[0] - nyield, 4);
	nics_end();
}

/* The thread sleeps 200 us after the last work, and at once after a sleep without work. */
static void when_it_sleeps(void **state)
{
	nics(2, 2);
	assert_int_equal(nicd_may_sleep(&d), 0);
	work_until = NOW + 300 * US;
	pass_ns = US;
	at_sleep = stop;
	nicd_run(&d, NICD_IDLE_SLEEP, 4 * US);
	assert_int_equal(nsleep, 1);
	/* The last work was at 299 us. */
	assert_in_range(slept_at, NOW + (299 + 200) * US, NOW + (299 + 205) * US);
	assert_int_equal(slept_ns, 250 * MS);
	assert_true(asked[0] == 0 && asked[1] == 0);
	nics_end();
}

/* The thread sleeps at once if the wires run the barriers of all groups of all NICs. */
static void when_it_sleeps_at_once(void **state)
{
	for (uint32_t i = 0; i < 3; i++) {
		nics(2, 2);
		wire[0].ops = &ops_that_lend;
		wire[1].ops = i == 1 ? &ops_that_wake : &ops_that_lend;
		d.nic[1]->device.nic.nopen = 2;
		d.nic[1]->device.nlent = i == 2 ? 1 : 2;
		assert_int_equal(nicd_may_sleep(&d), 0);
		at_sleep = stop;
		pass_ns = US;
		work_until = NOW + US;
		nicd_run(&d, NICD_IDLE_SLEEP, 4 * US);
		if (i == 0)
			assert_int_equal(slept_at, NOW + 2 * US); /* two passes, one with work */
		else
			assert_in_range(slept_at, NOW + 200 * US, NOW + 206 * US);
		d.nic[1]->device.nic.nopen = 0;
		nics_end();
	}
}

/* Before it sleeps it looks at all doorbells, with as many passes as that takes. */
static void looks_before_it_sleeps(void **state)
{
	static const struct {
		uint32_t nlive[2], passes;
	} row[] = { { { 0, 0 }, 1 },
		    { { 1, NBNIC_SCAN_CELLS }, 1 },
		    { { 1, NBNIC_SCAN_CELLS + 1 }, 2 },
		    { { NBNIC_GROUPS_MAX, 1 }, NBNIC_GROUPS_MAX / NBNIC_SCAN_CELLS } };
	static struct nbnic_port port[2];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		for (uint32_t n = 0; n < 2; n++) {
			struct nbnic_device *device;

			nics(2, 2);
			device = &d.nic[n]->device;
			for (uint32_t p = 0; p < 2; p++) {
				port[p].nlive = row[i].nlive[p];
				device->open[p] = &port[p];
			}
			device->nbusy = 2;
			assert_int_equal(nicd_may_sleep(&d), 0);
			at_sleep = stop;
			nicd_run(&d, NICD_IDLE_SLEEP, 0);
			assert_int_equal(passes_at_sleep, 201 + row[i].passes);
			nics_end();
		}
}

static void sleeps_again(void)
{
	if (nsleep == 3)
		stop();
}

static void wakes_by_bell(void)
{
	mailbox_ring(&d.mailbox);
	mailbox_ring(&d.mailbox);
	sleeps_again();
}

/* The bell is read once it has rung, so that the next sleep is one. */
static void it_sleeps_again(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t n;

		nics(2, 2);
		assert_int_equal(nicd_may_sleep(&d), 0);
		at_sleep = i == 0 ? sleeps_again : wakes_by_bell;
		nicd_run(&d, NICD_IDLE_SLEEP, 0);
		assert_int_equal(nsleep, 3);
		assert_int_equal(nyield, 200 + 5000); /* before the first sleep; while it stops */
		assert_int_equal(read(d.mailbox.bell, &n, sizeof(n)), -1);
		nics_end();
	}
}

/* Until the next timer of any NIC; a wire that wakes nobody is asked after 1/8 of the idle time. */
static void how_long_it_sleeps(void **state)
{
	static const struct {
		uint64_t next[2], until;
		uint32_t awake;
	} row[] = {
		{ { UINT64_MAX, UINT64_MAX }, 250 * MS, 2 },
		{ { NOW + 50 * MS, UINT64_MAX }, 50 * MS, 2 },
		{ { UINT64_MAX, NOW + 30 * MS }, 30 * MS, 2 },
		{ { NOW + 60 * MS, NOW + 30 * MS }, 30 * MS, 2 },
		{ { NOW + 251 * MS, UINT64_MAX }, 250 * MS, 2 },
		{ { UINT64_MAX, UINT64_MAX }, 200 * US + 25 * US, 1 },
		{ { UINT64_MAX, NOW + 210 * US }, 210 * US, 1 },
	};

	uint64_t bells;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		nics(2, row[i].awake);
		assert_int_equal(nicd_may_sleep(&d), 0);
		assert_int_equal(d.naps, row[i].awake < 2);
		assert_int_equal(d.wake[0].fd, d.mailbox.bell);
		assert_int_equal(read(d.mailbox.bell, &bells, sizeof(bells)), -1); /* nobody rang */
		for (uint32_t n = 0; n < 2; n++) {
			next[n] = row[i].next[n];
			assert_int_equal(d.wake[1 + n].fd, n < row[i].awake ? wire[n].fd : -1);
			assert_int_equal(d.wake[n].events, POLLIN);
		}
		at_sleep = stop;
		nicd_run(&d, NICD_IDLE_SLEEP, 0);
		assert_int_equal(slept_at, NOW + 200 * US);
		/* 250 ms count from the begin of the sleep, timers from the clock. */
		assert_int_equal(slept_ns,
				 row[i].until == 250 * MS ? 250 * MS : row[i].until - 200 * US);
		nics_end();
	}
}

static void a_nap(void)
{
	uint64_t eighth = (slept_at - NOW) / 8;

	assert_int_equal(slept_ns, eighth < MS ? eighth : MS);
	if (nsleep == 100)
		stop();
}

/* Naps grow with the idle time, up to 1 ms. */
static void naps_grow(void **state)
{
	nics(2, 0);
	assert_int_equal(nicd_may_sleep(&d), 0);
	at_sleep = a_nap;
	nicd_run(&d, NICD_IDLE_SLEEP, 0);
	assert_int_equal(nsleep, 100);
	assert_int_equal(slept_ns, MS);
	nics_end();
}

/* A timer that is due, or work in the passes before the sleep: it does not sleep. */
static void it_does_not_oversleep(void **state)
{
	nics(2, 2);
	assert_int_equal(nicd_may_sleep(&d), 0);
	next[1] = NOW + 10; /* passed */
	passes_end = 201 + 3;
	nicd_run(&d, NICD_IDLE_SLEEP, 0);
	assert_int_equal(nsleep, 0);
	assert_true(asked[0] == 0 && asked[1] == 0);
	nics_end();
}

/* After a stop the NICs have 5 ms, and 200 ms if frames are still to be sent. */
static void how_it_ends(void **state)
{
	static const struct {
		uint64_t next[2], ms;
	} row[] = { { { UINT64_MAX, UINT64_MAX }, 5 },
		    { { 0, UINT64_MAX }, 200 },
		    { { UINT64_MAX, 0 }, 200 },
		    { { NOW + 1, NOW + 1 }, 5 } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		for (enum nicd_idle idle = NICD_IDLE_YIELD; idle <= NICD_IDLE_SLEEP; idle++) {
			nics(2, 2);
			next[0] = row[i].next[0];
			next[1] = row[i].next[1];
			passes_end = 1;
			nicd_run(&d, idle, 0);
			assert_int_equal(now, NOW + row[i].ms * MS);
			assert_int_equal(nsleep, 0);
			nics_end();
		}
}

/* A request without a polling thread runs passes while they have work, 16 at most. */
static void passes_of_a_call(void **state)
{
	const struct nbnic_platform *p;

	for (uint32_t work = 0; work < 2; work++) {
		nics(2, 2);
		mailbox_share(&d.mailbox, clock_of_calls);
		work_until = work ? UINT64_MAX : 0;
		p = d.nic[1]->device.platform;
		p->exclusive(d.nic[1], note_call, &called_at);
		assert_int_equal(called_at, NOW + 5);
		assert_int_equal(npass[0], work ? 16 : 1);
		assert_int_equal(npass[1], work ? 16 : 1);
		nics_end();
	}
}

/* --- the platform -------------------------------------------------------------------------- */

static void pages_of_ports(void **state)
{
	const struct nbnic_platform *p;
	struct nbar_page *page[2];
	struct stat st;
	int fd[2];

	nics(2, 2);
	p = d.nic[1]->device.platform;
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(p->page_make(d.nic[1], 7 + i, &page[i]), 0);
		fd[i] = d.nic[1]->page_fd[7 + i];
		assert_int_equal(fstat(fd[i], &st), 0);
		assert_int_equal(st.st_size, sizeof(struct nbar_page));
		assert_int_equal(fcntl(fd[i], F_GET_SEALS),
				 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
		assert_int_equal(fcntl(fd[i], F_GETFD), FD_CLOEXEC);
		page[i]->port = i; /* the memory of the file */
		assert_int_equal(pread(fd[i], &st, 4, offsetof(struct nbar_page, port)), 4);
		assert_memory_equal(&st, &i, 4);
	}
	p->page_drop(d.nic[1], 7, page[0]);
	assert_int_equal(fcntl(fd[0], F_GETFD), -1);
	assert_int_equal(d.nic[1]->page_fd[7], -1);
	assert_null(d.nic[1]->wakes[7]);
	assert_int_equal(page[1]->port, 1);
	p->page_drop(d.nic[1], 8, page[1]);
	d.nic[0]->fds_left = 0;
	assert_int_equal(p->page_make(d.nic[0], 7, &page[0]), -EMFILE);
	nics_end();
}

static void a_page_that_cannot_be_made(void **state)
{
	static const int errors[] = { EMFILE, EPERM, EPERM, ENODEV, ENOMEM };

	for (uint32_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct nbar_page *page;
		int free_fd;

		nics(2, 2);
		free_fd = dup(STDIN_FILENO);
		close(free_fd);
		fail_at = calls + 1 + i;
		assert_int_equal(d.nic[0]->device.platform->page_make(d.nic[0], 3, &page),
				 -errors[i]);
		assert_int_equal(dup(STDIN_FILENO), free_fd); /* no descriptor is left */
		close(free_fd);
		assert_null(d.nic[0]->wakes[3]);
		nics_end();
	}
	nics(2, 2);
	fail_at = calls + 1;
	assert_int_equal(nicd_may_sleep(&d), -EMFILE);
	nics_end();
}

static void what_a_nic_asks_of_its_daemon(void **state)
{
	const struct nbnic_platform *p;
	struct nbar_page *page;
	uint64_t n[2] = { 0 };
	char byte;
	int fd;

	nics(2, 2);
	p = d.nic[1]->device.platform;
	p->look(d.nic[1]); /* nobody can look */
	d.look_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	p->look(d.nic[1]);
	p->look(d.nic[0]);
	assert_int_equal(read(d.look_fd, n, sizeof(n[0])), 8);
	assert_int_equal(n[0], 2);
	close(d.look_fd);
	assert_true(p->random(d.nic[1], &n[0]) && p->random(d.nic[1], &n[1]) && n[0] != n[1]);
	/* A socket for poll(), of a port of a NIC without a waker. */
	mailbox_share(&d.mailbox, clock_of_calls);
	assert_int_equal(p->page_make(d.nic[1], 2, &page), 0);
	d.nic[1]->fds_left = 0;
	assert_int_equal(p->events_make(d.nic[1], 2, 9), -EMFILE);
	d.nic[1]->fds_left = 1;
	assert_int_equal(p->events_make(d.nic[1], 2, 9), 0);
	fd = d.nic[1]->events_fd;
	p->wake(d.nic[1], 2, 8, NULL);
	assert_int_equal(read(fd, &byte, 1), -1);
	p->wake(d.nic[1], 2, 9, NULL);
	assert_int_equal(read(fd, &byte, 1), 1);
	p->events_drop(d.nic[1], 2, 9);
	assert_int_equal(read(fd, &byte, 1), 0);
	close(fd);
	p->page_drop(d.nic[1], 2, page);
	nics_end();
}

static void events_of_a_traced_nic(void **state)
{
	const struct nbar_trace_event event = { 0 };
	struct trace_ring *ring = (struct trace_ring *)&wire; /* its address alone is used */

	nics(2, 2);
	nicd_trace(&d, 1, ring);
	assert_true(d.nic[1]->device.nic.tracing && !d.nic[0]->device.nic.tracing);
	d.nic[0]->device.platform->trace(d.nic[0], &event);
	assert_null(noted[0]);
	d.nic[1]->device.platform->trace(d.nic[1], &event);
	assert_ptr_equal(noted[0], ring);
	assert_ptr_equal(noted[1], &event);
	assert_int_equal(noted_at, NOW);
	nics_end();
}

/* A daemon may be started without stdin. */
static void descriptor_0_is_one_like_others(void **state)
{
	const struct nbnic_platform *p;
	struct nbar_page *page;
	int in = dup(STDIN_FILENO);

	nics(2, 2);
	p = d.nic[1]->device.platform;
	close(STDIN_FILENO);
	assert_int_equal(p->page_make(d.nic[1], 7, &page), 0);
	assert_int_equal(d.nic[1]->page_fd[7], 0);
	p->page_drop(d.nic[1], 7, page);
	assert_int_equal(nicd_may_sleep(&d), 0);
	assert_int_equal(d.mailbox.bell, 0);
	nics_end();
	assert_int_equal(dup2(in, STDIN_FILENO), 0);
	close(in);
}

UNIT_MAIN(NULL, NULL, UNIT(a_set_of_nics), UNIT(what_it_does_without_work), UNIT(when_it_sleeps),
	  UNIT(when_it_sleeps_at_once), UNIT(looks_before_it_sleeps), UNIT(it_sleeps_again),
	  UNIT(how_long_it_sleeps), UNIT(naps_grow), UNIT(it_does_not_oversleep), UNIT(how_it_ends),
	  UNIT(passes_of_a_call), UNIT(pages_of_ports), UNIT(a_page_that_cannot_be_made),
	  UNIT(what_a_nic_asks_of_its_daemon), UNIT(events_of_a_traced_nic),
	  UNIT(descriptor_0_is_one_like_others))
