/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inproc.c - a whole NIC daemon inside a test program.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "control.h"
#include "inproc.h"
#include "nicd.h"
#include "rundir.h"

#define QUEUE 4096u /* frames on the way to one NIC; a power of two */

struct frame {
	struct nbnic_addr from;
	struct nbfw_token token;
	struct nbfw_value value; /* of the token, if it has one */
};

/* A wire in memory: only the polling thread sends and receives on it. */
struct loop_wire {
	struct wire_base base;
	struct inproc *set;
	uint32_t head, tail;
	struct frame queue[QUEUE];
};

struct inproc {
	struct nicd nicd;
	struct control *control;
	pthread_t thread;
	int stop_fd, lock_fd;
	uint32_t loss_percent; /* atomic: set by the test, read by the polling thread */
	uint32_t random;
	uint32_t nwire;
	struct loop_wire *wire[NBAR_NICS_MAX];
	char run_dir[64];
};

static void loop_close(struct wire_base *w)
{
	free(w);
}

static unsigned loop_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	struct loop_wire *w = (struct loop_wire *)base;
	uint32_t n = w->tail - w->head < budget ? w->tail - w->head : budget;

	for (uint32_t i = 0; i < n; i++) {
		struct frame *f = &w->queue[w->head++ % QUEUE];

		nbnic_receive(nic, &f->from, &f->token, now);
	}
	return n;
}

static bool lost(struct inproc *p)
{
	uint32_t percent = __atomic_load_n(&p->loss_percent, __ATOMIC_RELAXED);

	p->random = p->random * 1664525u + 1013904223u;
	return p->random / 65536 % 100 < percent;
}

static void put(struct frame *f, const struct nbnic_addr *from, const struct nbfw_token *t)
{
	f->from = *from;
	f->token = *t;
	if (t->value_length)
		f->token.value = memcpy(&f->value, t->value, t->value_length);
}

static bool loop_transmit(struct wire_base *base, const struct nbnic_addr *to,
			  const struct nbfw_token *t)
{
	struct loop_wire *w = (struct loop_wire *)base;
	struct loop_wire *peer = to->byte[0] < w->set->nwire ? w->set->wire[to->byte[0]] : NULL;

	if (!peer)
		w->base.errors++;
	else if (peer->tail - peer->head == QUEUE)
		return false;
	else if (!lost(w->set))
		put(&peer->queue[peer->tail++ % QUEUE], &w->base.addr, t);
	return true;
}

static void loop_show(const struct wire_base *w, const struct nbnic_addr *a, char *text,
		      size_t size)
{
	snprintf(text, size, "loop:%u", a->byte[0]);
}

static const struct wire_ops loop_ops = {
	.values = true,
	.show = loop_show,
	.close = loop_close,
	.poll = loop_poll,
	.transmit = loop_transmit,
};

static int nic_add(struct inproc *p, uint32_t i)
{
	struct loop_wire *w = calloc(1, sizeof(*w));
	char name[NBAR_NAME_MAX];
	int rc;

	if (!w)
		return -ENOMEM;
	w->set = p;
	w->base.ops = &loop_ops;
	w->base.name = "loop";
	w->base.kind = WIRE_KIND_TEST;
	w->base.addr.byte[0] = (uint8_t)i;
	snprintf(w->base.text, sizeof(w->base.text), "loop:%u", i);
	snprintf(name, sizeof(name), "n%u", i);
	rc = nicd_add(&p->nicd, name, &w->base);
	if (rc < 0) {
		free(w);
		return rc;
	}
	p->wire[p->nwire++] = w;
	return 0;
}

static void *poll_main(void *arg)
{
	struct inproc *p = arg;

	nicd_run(&p->nicd, NICD_IDLE_YIELD, 0);
	return NULL;
}

static void run_dir_remove(struct inproc *p)
{
	char lock[sizeof(p->run_dir) + 16];

	snprintf(lock, sizeof(lock), "%s/nicd.lock", p->run_dir);
	unlink(lock);
	close(p->lock_fd);
	rmdir(p->run_dir);
}

static int threads_start(struct inproc *p)
{
	const struct control_config config = {
		.run_dir = p->run_dir,
		.mode = 0600,
		.group = (gid_t)-1,
		.stop_fd = p->stop_fd,
	};
	int rc = control_start(&p->nicd, &config, &p->control);

	if (rc == 0)
		rc = -pthread_create(&p->thread, NULL, poll_main, p);
	return rc;
}

/* Raises the limit as the daemon does: an ordinary user begins with 1,024 descriptors, but may have
 * many more. */
static void limits_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

struct inproc *inproc_start(uint32_t nnic, const struct nbnic_config *config)
{
	static const struct nbnic_config usual = {
		.pull_ns = NBNIC_PULL_NS_DEFAULT,
		.budget_ns = NBNIC_BUDGET_NS_DEFAULT,
	};
	struct inproc *p = calloc(1, sizeof(*p));
	int rc = 0;

	if (!p)
		abort();
	limits_raise();
	nicd_init(&p->nicd, config ? config : &usual);
	strcpy(p->run_dir, "/tmp/nbar-test-XXXXXX");
	p->stop_fd = eventfd(0, EFD_CLOEXEC);
	p->lock_fd = mkdtemp(p->run_dir) ? rundir_take(p->run_dir) : -1;
	if (p->stop_fd < 0 || p->lock_fd < 0)
		rc = -EIO;
	for (uint32_t i = 0; rc == 0 && i < nnic; i++)
		rc = nic_add(p, i);
	if (rc == 0)
		rc = threads_start(p);
	if (rc < 0) {
		fprintf(stderr, "inproc: cannot start: %s\n", strerror(-rc));
		exit(1); /* a test program cannot run without its NIC */
	}
	setenv("NBAR_RUN_DIR", p->run_dir, 1);
	return p;
}

const char *inproc_run_dir(const struct inproc *p)
{
	return p->run_dir;
}

void inproc_set_loss(struct inproc *p, uint32_t percent)
{
	__atomic_store_n(&p->loss_percent, percent, __ATOMIC_RELAXED);
}

void inproc_stop(struct inproc *p)
{
	uint64_t one = 1;

	if (write(p->stop_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	pthread_join(p->thread, NULL);
	control_end(p->control);
	nicd_fini(&p->nicd);
	close(p->stop_fd);
	run_dir_remove(p);
	free(p);
}
