/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c - the control thread: one epoll set for the listening sockets, clients and wires of all
 * NICs of a daemon.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control_internal.h"
#include "log.h"
#include "remote.h"

#define FDS_LATER 8u    /* descriptors that the daemon opens besides those of clients */
#define RECLAIM_MS 1000 /* between two looks at the memory of closed groups */

static void on_guest(struct control_client *c)
{
	control_client_add(c, (uint32_t)getpid(), geteuid());
	control_client_read(c, &c->at->control->room);
}

static void on_wire(struct control_wire *at)
{
	at->wire->ops->serve(at->wire);
}

/* Runs on the polling thread. */
static void run_stop(void *arg, uint64_t now)
{
	nicd_stop(arg, now);
}

/* Runs on the polling thread. */
static void run_nothing(void *arg, uint64_t now)
{
	(void)arg;
	(void)now;
}

/* Shows that both threads run. */
static void control_show_alive(struct control *k)
{
	uint64_t now = nicd_clock();

	if (!k->alive_ms || now < k->alive_at)
		return;
	mailbox_call(&k->nicd->mailbox, run_nothing, NULL);
	k->alive();
	k->alive_at = now + k->alive_ms * UINT64_C(1000000);
}

/* With the turn. Returns how long this thread may wait if no socket has an event. */
static int wait_ms(const struct control *k)
{
	int ms = k->alive_ms ? (int)k->alive_ms : -1;

	/* The threads of users may close groups meanwhile. */
	if (k->user && (ms < 0 || ms > RECLAIM_MS))
		ms = RECLAIM_MS;
	for (uint32_t i = 0; i < k->nnic; i++) {
		const struct nbnic_device *d = &k->nic[i].nic->device;

		if (k->in_process && d->nblock > 0)
			ms = CONTROL_PASS_MS;
		else if (!k->in_process && nbnic_device_lingers(d) && (ms < 0 || ms > RECLAIM_MS))
			ms = RECLAIM_MS;
	}
	return ms;
}

/* Called after this process has closed an in-process NIC. */
static bool look_again(const struct control *k)
{
	uint64_t n;

	(void)!read(k->stop_fd, &n, sizeof(n));
	return true;
}

/* The polling thread may end before it takes another call, so no wire learns of peers any more. */
static void stop(struct control *k)
{
	for (uint32_t i = 0; i < k->nnic; i++)
		k->nic[i].nic->device.wire_closed = true;
	mailbox_call(&k->nicd->mailbox, run_stop, k->nicd);
	k->over = true;
}

static void reclaim(struct control *k)
{
	for (uint32_t i = 0; i < k->nnic; i++)
		nbnic_device_reclaim(&k->nic[i].nic->device);
}

/* Handles an event. False: the control thread must end. */
static bool on_event(struct control *k, void *from)
{
	switch (*(enum control_source *)from) {
	case CONTROL_STOP:
		if (k->in_process)
			return look_again(k);
		control_listeners_close(k);
		stop(k);
		return false;
	case CONTROL_LISTENER:
		control_arrival(from);
		break;
	case CONTROL_GUEST:
		on_guest(from);
		break;
	case CONTROL_CLIENT:
		control_client_read(from, &k->room);
		break;
	case CONTROL_WIRE:
		on_wire(from);
		break;
	case CONTROL_LOOK:
		control_look(k);
		break;
	case CONTROL_REMOTE:
		control_remote_arrival(k);
		break;
	}
	return true;
}

/* True: this process no longer needs its in-process NIC. Clients of other processes do not count.
 */
static bool control_is_over(struct control *k)
{
	if (!k->in_process || k->nic[0].nic->device.nblock > 0)
		return false;
	for (const struct control_client *c = k->nic[0].client; c; c = c->next)
		if (!c->by_socket_id)
			return false;
	if (!k->unused(k->arg))
		return false;
	while (k->nic[0].client)
		control_client_drop(k->nic[0].client);
	return true;
}

static void *control_main(void *arg)
{
	struct control *k = arg;
	bool more = true;
	int ms;

	control_turn_take(k);
	ms = wait_ms(k);
	control_turn_give(k);
	while (more) {
		struct epoll_event ev;
		/* Take one event at a time: an event may free the client to which the next event
		 * points. */
		int n = epoll_wait(k->epoll, &ev, 1, ms);

		control_turn_take(k);
		if (n == 0)
			reclaim(k);
		if (n > 0)
			more = on_event(k, ev.data.ptr);
		if (control_is_over(k))
			more = false;
		if (more)
			control_show_alive(k);
		ms = wait_ms(k);
		control_turn_give(k);
	}
	if (k->ended)
		k->ended(k->arg);
	return NULL;
}

static int thread_start(struct control *k, const cpu_set_t *cpus)
{
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc == 0 && cpus)
		rc = pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	if (rc == 0)
		rc = pthread_create(&k->thread, &attr, control_main, k);
	pthread_attr_destroy(&attr);
	if (rc == 0)
		pthread_setname_np(k->thread, CONTROL_THREAD_NAME);
	if (rc)
		log_error("cannot start the control thread: %s", strerror(rc));
	return -rc;
}

/* Closes the look descriptor; look_fd is -1 before that, because a pass may still write to it. */
static void look_end(struct control *k)
{
	int fd = k->nicd->look_fd;

	k->nicd->look_fd = -1;
	if (fd >= 0)
		close(fd);
}

/* Makes the look descriptor. Without it, a NIC does not know why a host is late. */
static void look_begin(struct control *k)
{
	k->look = CONTROL_LOOK;
	k->nicd->look_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->nicd->look_fd >= 0 && control_watch(k, k->nicd->look_fd, &k->look) < 0)
		look_end(k);
}

void control_free(struct control *k)
{
	control_listeners_close(k);
	look_end(k);
	if (k->epoll >= 0)
		close(k->epoll);
	if (k->spare_fd >= 0)
		close(k->spare_fd);
	pthread_cond_destroy(&k->turn_changed);
	pthread_cond_destroy(&k->user_ended);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

void control_forked(const struct control *k)
{
	/* A client leaves the list before its descriptor is closed. */
	for (const struct control_client *c = k->nic[0].client; c; c = c->next)
		close(c->fd);
	close(k->epoll);
	if (k->nicd->look_fd >= 0)
		close(k->nicd->look_fd);
	if (k->spare_fd >= 0)
		close(k->spare_fd);
	if (k->nic[0].fd >= 0)
		close(k->nic[0].fd);
}

/* Returns the number of descriptors of this process, plus some that it opens later. */
static uint32_t fds_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = FDS_LATER;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

int control_start(struct nicd *d, const struct control_config *config, struct control **out)
{
	struct control *k = calloc(1, sizeof(*k));
	int rc;

	if (!k) {
		log_error("control sockets: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	k->source = CONTROL_STOP;
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->turn_changed, NULL);
	pthread_cond_init(&k->user_ended, NULL);
	k->nicd = d;
	k->stop_fd = config->stop_fd;
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	k->in_process = !config->run_dir;
	k->unused = config->unused;
	k->ended = config->over;
	k->arg = config->arg;
	k->user_percent = d->config.user_percent;
	k->fds_own = fds_open();
	k->alive_ms = config->alive_ms;
	k->alive = config->alive;
	rc = k->epoll < 0 ? -errno : control_watch(k, k->stop_fd, k);
	k->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (rc < 0)
		log_error("control sockets: %s", strerror(-rc));
	else
		look_begin(k);
	for (uint32_t i = 0; rc == 0 && i < d->nnic; i++) {
		k->nic[i].source = CONTROL_LISTENER;
		k->nic[i].control = k;
		k->nic[i].nic = d->nic[i];
		k->nic[i].fd = -1;
		k->nic[i].from_wire.source = CONTROL_WIRE;
		k->nic[i].from_wire.wire = d->nic[i]->device.wire;
		k->nnic++;
		rc = k->in_process ? 0 : control_listen(&k->nic[i], config);
		if (k->in_process)
			control_listen_private(&k->nic[i]);
		if (rc < 0 || !d->nic[i]->device.wire->ops->serve)
			continue;
		rc = control_watch(k, d->nic[i]->device.wire->fd, &k->nic[i].from_wire);
		if (rc < 0)
			log_error("wire of %s: %s", d->nic[i]->device.name, strerror(-rc));
	}
	k->remote = CONTROL_REMOTE;
	if (rc == 0 && d->remote &&
	    (rc = control_watch(k, remote_socket(d->remote), &k->remote)) < 0)
		log_error("--attach: %s", strerror(-rc));
	/* Without it, the control thread closes such sockets itself. */
	if (rc == 0 && !k->in_process)
		k->nobody = control_user_new(k, UINT32_MAX);
	if (rc == 0)
		rc = thread_start(k, config->cpus);
	if (rc < 0) {
		if (control_users_end(k))
			control_free(k);
		return rc;
	}
	*out = k;
	return 0;
}

/* A client without a thread is one of an in-process NIC. */
static void client_end(struct control_client *c)
{
	nbnic_client_abandon(&c->client);
	if (c->user) {
		c->user->nclient--;
		control_user_close(c->user, c);
		return;
	}
	close(c->fd);
	free(c);
}

void control_end(struct control *k)
{
	pthread_join(k->thread, NULL);
	control_turn_take(k);
	for (uint32_t i = 0; i < k->nnic; i++)
		while (k->nic[i].client) {
			struct control_client *c = k->nic[i].client;

			k->nic[i].client = c->next;
			client_end(c);
		}
	control_turn_give(k);
	/* A thread that a client delays ends with the process, which no client delays. */
	if (control_users_end(k))
		control_free(k);
}

void control_unlink(struct control *k)
{
	rundir_remove(&k->nic[0].socket);
}

const char *control_path(const struct control *k, uint32_t i)
{
	return k->nic[i].socket.path;
}

uint32_t control_socket_id(const struct control *k)
{
	return k->nic[0].socket_id;
}
