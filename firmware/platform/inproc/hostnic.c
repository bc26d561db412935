/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostnic.c - libnbar-hostnic.so: in-process NICs; the threads of the host poll them.
 *
 * libnbar loads this library for a NIC named "host:...". Each NIC is a struct nicd, as in the
 * daemon, but with a shared mailbox: any thread may run a pass, and the control thread runs passes
 * while the host computes. After its last close, a NIC still answers PULLs for its last barriers,
 * as a daemon does, and then ends by itself.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "hostnic.h"
#include "nbar_hostnic.h"
#include "spec.h"

/* When a process ends, its peers have this time to ask for last tokens that they missed. */
#define PARTING_NS UINT64_C(20000000)
#define PARTING_NAP_NS 100000

struct nbar_hostnic {
	struct nbar_hostnic *next;
	uint32_t refs;
	struct hostnic_spec spec;
	struct nicd nicd;
	struct control *control;
	int look_fd; /* eventfd: the control thread must check whether the NIC is still needed */
	char text[SPEC_TEXT_MAX]; /* of the specification */
};

/* All NICs of the process; `ending`: NICs that are about to end. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct nbar_hostnic *first, *ending;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

/* --- a NIC begins and ends ------------------------------------------------------------------- */

/* Takes a NIC out of its list. */
static void take(struct nbar_hostnic *n, struct nbar_hostnic **at)
{
	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
}

/* control_config.unused. True: nobody uses the NIC; it is out of the list, and its control thread
 * must end. */
static bool hostnic_unused(void *arg)
{
	struct nbar_hostnic *n = arg;
	bool yes;

	pthread_mutex_lock(&all.lock);
	yes = n->refs == 0;
	if (yes) {
		take(n, &all.first);
		n->next = all.ending;
		all.ending = n;
	}
	pthread_mutex_unlock(&all.lock);
	return yes;
}

static void hostnic_free(struct nbar_hostnic *n)
{
	explicit_bzero(&n->spec.auth, sizeof(n->spec.auth)); /* the key */
	free(n);
}

/* control_config.over: the last call of the control thread. Takes the lock, because a child of
 * fork() closes the descriptors of all NICs in the lists. */
static void hostnic_over(void *arg)
{
	struct nbar_hostnic *n = arg;

	pthread_detach(pthread_self());
	pthread_mutex_lock(&all.lock);
	control_free(n->control);
	nicd_fini(&n->nicd);
	close(n->look_fd);
	take(n, &all.ending);
	hostnic_free(n);
	pthread_cond_broadcast(&all.ended);
	pthread_mutex_unlock(&all.lock);
}

/* Starts the control thread, which takes no signals of the program. */
static int hostnic_start(struct nbar_hostnic *n)
{
	const struct control_config config = {
		.stop_fd = n->look_fd,
		.cpus = n->spec.set.cpu != SETTINGS_UNSET ? &n->spec.cpu : NULL,
		.unused = hostnic_unused,
		.over = hostnic_over,
		.arg = n,
	};
	sigset_t set, before;
	int rc;

	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, &before);
	rc = control_start(&n->nicd, &config, &n->control);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int hostnic_make(const char *text, struct nbar_hostnic **out)
{
	struct nbar_hostnic *n = calloc(1, sizeof(*n));
	struct wire_base *wire;
	int rc;

	if (!n)
		return -ENOMEM;
	rc = hostnic_spec_open(text, &n->spec, &wire);
	if (rc < 0) {
		hostnic_free(n);
		return rc;
	}
	strcpy(n->text, text); /* it fits: the specification has been read */
	nicd_init(&n->nicd, &n->spec.set.config);
	mailbox_share(&n->nicd.mailbox, nicd_clock);
	n->look_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = n->look_fd < 0 ? -errno : nicd_add(&n->nicd, n->spec.set.name, wire);
	if (rc < 0)
		wire->ops->close(wire);
	else
		rc = hostnic_start(n);
	if (rc < 0) {
		nicd_fini(&n->nicd);
		if (n->look_fd >= 0)
			close(n->look_fd);
		hostnic_free(n);
		return rc;
	}
	n->next = all.first;
	all.first = n;
	*out = n;
	return 0;
}

/* --- the process forks, or ends -------------------------------------------------------------- */

static void hostnic_fork_prepare(void)
{
	pthread_mutex_lock(&all.lock);
}

static void hostnic_fork_parent(void)
{
	pthread_mutex_unlock(&all.lock);
}

static void hostnic_let_go(const struct nbar_hostnic *n)
{
	for (; n; n = n->next) {
		struct wire_base *wire = n->nicd.nic[0]->device.wire;

		if (wire->ops->forked)
			wire->ops->forked(wire);
		control_forked(n->control);
		close(n->look_fd);
	}
}

/* NICs stay with the parent. The child forgets them, and closes the descriptors that would keep
 * their addresses in use after the end of the parent. The child may open its own NICs. */
static void hostnic_fork_child(void)
{
	hostnic_let_go(all.first);
	hostnic_let_go(all.ending);
	all.first = NULL;
	all.ending = NULL;
	pthread_mutex_unlock(&all.lock);
}

static void hostnic_watch_forks(void)
{
	pthread_atfork(hostnic_fork_prepare, hostnic_fork_parent, hostnic_fork_child);
}

/* Takes the lock of a NIC, but waits only until `end`: a thread that exits in a signal handler may
 * hold the lock already. */
static bool enter_until(struct mailbox *m, uint64_t end)
{
	const struct timespec nap = { .tv_nsec = PARTING_NAP_NS };

	while (!mailbox_enter(m)) {
		if (nicd_clock() >= end)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

/* Tells members that the open groups have no host any more, so that they need not wait for silence.
 * True: groups linger, because peers may still send PULLs. */
static bool tell_peers(struct nbnic_device *n)
{
	uint64_t now = nicd_clock();

	while (n->nopen > 0)
		nbnic_device_port_end(n, n->open[0], NBAR_STATUS_HOST_DIED, now);
	return n->nic.nlinger > 0;
}

/* exit() runs this, even if the program has closed nothing. Other threads may still poll: so this
 * frees nothing. */
__attribute__((destructor)) static void part(void)
{
	const struct timespec nap = { .tv_nsec = PARTING_NAP_NS };
	uint64_t end = nicd_clock() + PARTING_NS;
	bool any = false;

	while (pthread_mutex_trylock(&all.lock) != 0) {
		if (nicd_clock() >= end)
			return;
		nanosleep(&nap, NULL);
	}
	for (struct nbar_hostnic *n = all.ending; n; n = n->next)
		control_unlink(n->control);
	for (struct nbar_hostnic *n = all.first; n; n = n->next) {
		control_unlink(n->control);
		if (!enter_until(&n->nicd.mailbox, end))
			continue;
		any |= tell_peers(&n->nicd.nic[0]->device);
		mailbox_leave(&n->nicd.mailbox);
	}
	while (any && nicd_clock() < end) {
		for (struct nbar_hostnic *n = all.first; n; n = n->next)
			nbar_hostnic.poll(n);
		nanosleep(&nap, NULL);
	}
	pthread_mutex_unlock(&all.lock);
}

/* --- what libnbar calls ---------------------------------------------------------------------- */

static struct nbar_hostnic *hostnic_find(const char *text)
{
	struct nbar_hostnic *n = all.first;

	while (n && strcmp(n->text, text) != 0)
		n = n->next;
	return n;
}

static int hostnic_open(const char *spec, int may_make, struct nbar_hostnic **out,
			char text[NBAR_HOSTNIC_TEXT])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct nbar_hostnic *n;
	int rc = 0;

	pthread_once(&once, hostnic_watch_forks);
	pthread_mutex_lock(&all.lock);
	/* Wait for NICs that end: one may still use the wanted address. During the wait, another
	 * thread may make our NIC. */
	while (!(n = hostnic_find(spec)) && may_make && all.ending)
		pthread_cond_wait(&all.ended, &all.lock);
	hostnic_log_begin(text, NBAR_HOSTNIC_TEXT);
	if (!n)
		rc = may_make ? hostnic_make(spec, &n) : -ENOENT;
	hostnic_log_end(rc);
	if (rc == 0) {
		n->refs++;
		*out = n;
	}
	pthread_mutex_unlock(&all.lock);
	return rc;
}

static void hostnic_close(struct nbar_hostnic *n)
{
	const uint64_t one = 1;

	/* Take the lock: otherwise the NIC could end before we write to its thread. */
	pthread_mutex_lock(&all.lock);
	if (--n->refs == 0 && write(n->look_fd, &one, sizeof(one)) < 0)
		n->refs = 0; /* the eventfd is full: the control thread will look anyway */
	pthread_mutex_unlock(&all.lock);
}

static int hostnic_connect(struct nbar_hostnic *n)
{
	int fd[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) < 0)
		return -errno;
	rc = control_admit(n->control, fd[1]);
	if (rc == 0)
		return fd[0];
	close(fd[0]);
	close(fd[1]);
	return rc;
}

static uint32_t hostnic_socket_id(const struct nbar_hostnic *n)
{
	return control_socket_id(n->control);
}

static void hostnic_poll(struct nbar_hostnic *n)
{
	if (!mailbox_enter(&n->nicd.mailbox))
		return;
	nicd_pass(&n->nicd, nicd_clock());
	mailbox_leave(&n->nicd.mailbox);
}

__attribute__((visibility("default"))) const struct nbar_hostnic_ops nbar_hostnic = {
	.version = NBAR_HOSTNIC_VERSION,
	.open = hostnic_open,
	.close = hostnic_close,
	.connect = hostnic_connect,
	.socket_id = hostnic_socket_id,
	.poll = hostnic_poll,
};
