/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - nbar-nicd, the soft NIC daemon: opens the wires, and binds the polling thread to its
 * processor (--cpu).
 *
 * main() reads the command line, takes the run directory, opens the wires, drops the rights that it
 * no longer needs, and then is the polling thread until a signal stops it. nicd.c runs the NICs,
 * and control.c serves clients.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "control.h"
#include "daemon.h"
#include "log.h"
#include "options.h"
#include "privileges.h"
#include "service.h"

#define KEEP_BYTES (8 << 20)   /* free memory at the end of the heap that the daemon keeps */
#define MAPPED_BYTES (1 << 20) /* a block of this size or more has a mapping of its own */

/* Starts DPDK if a NIC has the wire that needs it; *out is the object of that wire, or NULL. */
static int object_start(const struct options *o, const struct wire_object **out)
{
	struct wire_start s = {
		.cpu = o->set.cpu,
		.huge = o->set.huge,
		.argc = o->eal_argc,
		.argv = o->eal_argv,
	};

	*out = NULL;
	for (uint32_t i = 0; i < o->nnic; i++) {
		if (!o->nic[i].wire->object || !o->nic[i].wire->object->start)
			continue;
		*out = o->nic[i].wire->object;
		s.nnic++;
	}
	return *out ? (*out)->start(&s) : 0;
}

/* Binds this thread, which becomes the polling thread, to its processor. */
static int cpu_take(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0)
		return 0;
	log_error("--cpu %u: %s; try another --cpu", cpu, strerror(errno));
	return -EINVAL;
}

static int nics_open(const struct options *o, struct nicd *d)
{
	for (uint32_t i = 0; i < o->nnic; i++) {
		struct option_nic n = o->nic[i];
		struct wire_base *wire;
		bool of_user = n.wire->of_user;
		int rc;

		if (of_user && privileges_lend(o) < 0)
			return -EPERM;
		rc = wires_open(n.wire, n.name, spec_value, &n.spec, &wire);
		if (of_user && privileges_return(o) < 0)
			return -EPERM;
		if (rc < 0)
			return rc;
		wires_auth(n.wire, &o->auth, wire);
		rc = nicd_add(d, n.name, wire);
		if (rc < 0) {
			log_error("nic %s: %s", n.name, strerror(-rc));
			wire->ops->close(wire);
			return rc;
		}
	}
	return 0;
}

static void limits_raise(void)
{
	struct rlimit limit;

	/* A client needs two descriptors. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	(void)prctl(PR_SET_TIMERSLACK, 1000ul); /* keeps short sleeps short */
}

/*
 * A large group takes hundreds of KiB. By default, libc returns this memory to the kernel when the
 * group ends, and asks for fresh pages for the next group. Both disturb the barriers of others: the
 * kernel interrupts the polling thread when it takes pages away, and clears each fresh page. So
 * here libc returns memory only when 2 * KEEP_BYTES are free at the end of the heap, and then keeps
 * KEEP_BYTES: as much as the lingering groups of one NIC may take by default. All blocks of groups
 * are smaller than MAPPED_BYTES, so they lie in the heap.
 */
static void memory_keep(void)
{
	(void)mallopt(M_TOP_PAD, KEEP_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * KEEP_BYTES);
	(void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
}

static void show_alive(void)
{
	service_notify("WATCHDOG=1");
}

/* With --trace: opens a trace for each NIC. */
static int traces_open(const struct options *o, struct nicd *d)
{
	int rc = 0;

	for (uint32_t i = 0; o->set.trace && i < d->nnic && rc == 0; i++) {
		struct trace_ring *t;

		rc = trace_ring_open(o->set.run_dir, d->nic[i]->device.name, o->set.trace,
				     o->set.mode, o->set.group, &t);
		if (rc == 0)
			nicd_trace(d, i, t);
	}
	return rc;
}

static void traces_close(struct nicd *d)
{
	for (uint32_t i = 0; i < d->nnic; i++)
		trace_ring_close(d->nic[i]->trace);
}

static int main_serve(const struct options *o, struct nicd *d, int stop_fd)
{
	struct control_config config = {
		.run_dir = o->set.run_dir,
		.mode = o->set.mode,
		.group = o->set.group,
		.stop_fd = stop_fd,
		.alive_ms = service_alive_ms(),
		.alive = show_alive,
	};
	cpu_set_t others = o->allowed;
	struct control *control;

	CPU_CLR(o->set.cpu, &others);
	config.cpus = CPU_COUNT(&others) > 0 ? &others : &o->allowed;
	if (control_start(d, &config, &control) < 0)
		return 1;
	for (uint32_t i = 0; i < d->nnic; i++) {
		const struct wire_base *w = d->nic[i]->device.wire;

		printf("nic %s ready: wire %s, address %s%s%s%s, socket %s\n",
		       d->nic[i]->device.name, w->name, w->text, w->why[0] ? " (" : "", w->why,
		       w->why[0] ? ")" : "", control_path(control, i));
	}
	if (fflush(stdout) != 0)
		log_error("cannot write to stdout: %s; the NICs are ready all the same",
			  strerror(errno));
	service_notify("READY=1");
	nicd_run(d, o->set.idle, o->nallowed > 1 ? NICD_SPIN_NS_DEFAULT : 0);
	service_notify("STOPPING=1");
	control_end(control);
	return 0;
}

int main(int argc, char **argv)
{
	static struct options o;
	static struct nicd d;
	const struct wire_object *object;
	int rc = options_parse(argc, argv, &o), lock, stop_fd;

	if (rc > 0 && (fflush(stdout) != 0 || ferror(stdout))) {
		log_error("cannot write to stdout; make room there");
		return EXIT_FAILURE;
	}
	if (rc > 0)
		return EXIT_SUCCESS;
	if (rc < 0)
		return rc == -ENOMEM ? EXIT_FAILURE : EXIT_USAGE;
	privileges_freeze();
	lock = privileges_take_run_dir(&o);
	if (lock < 0)
		return 1;
	stop_fd = daemon_signals();
	if (stop_fd < 0) {
		log_error("cannot wait for signals: %s", strerror(errno));
		return 1;
	}
	limits_raise();
	memory_keep();
	rc = object_start(&o, &object);
	if (rc < 0)
		return rc == -EINVAL ? EXIT_USAGE : 1;
	rc = cpu_take(o.set.cpu); /* after the EAL, whose threads may run elsewhere */
	if (rc < 0) {
		if (object)
			object->end();
		return EXIT_USAGE;
	}
	nicd_init(&d, &o.set.config);
	rc = nics_open(&o, &d);
	if (rc == 0 && o.attach[0])
		rc = remote_open(&d, o.attach, &o.auth);
	if (rc == 0 && privileges_drop(&o) < 0)
		rc = -EPERM;
	if (rc == 0)
		rc = traces_open(&o, &d);
	if (rc == 0 && o.set.idle == NICD_IDLE_SLEEP && (rc = nicd_may_sleep(&d)) < 0)
		log_error("cannot make an eventfd to sleep on: %s; try --idle yield",
			  strerror(-rc));
	if (rc < 0)
		rc = rc == -EINVAL ? EXIT_USAGE : 1;
	else
		rc = main_serve(&o, &d, stop_fd);
	traces_close(&d);
	nicd_fini(&d);
	if (object)
		object->end();
	close(stop_fd);
	close(lock);
	return rc;
}
