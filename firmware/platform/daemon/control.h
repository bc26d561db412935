/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h - the control sockets of a daemon's NICs, and the control thread that serves them and
 * runs passes of in-process NICs.
 *
 * The control thread accepts clients; in a daemon, each user then has a thread that serves them.
 * They do all slow work: sockets, checks, memory, plans. They pass changes of a NIC to the polling
 * thread (mailbox.h), one at a time.
 */
#ifndef NBAR_DAEMON_CONTROL_H
#define NBAR_DAEMON_CONTROL_H

#include <sched.h>
#include <sys/types.h>

#include "nicd.h"

struct control;

struct control_config {
	const char *run_dir;   /* taken with rundir_take; NULL: in-process NICs */
	mode_t mode;           /* of the sockets: which users may use these NICs */
	gid_t group;           /* of the sockets; (gid_t)-1: the group of the process */
	int stop_fd;           /* when it becomes readable, everything stops in order */
	const cpu_set_t *cpus; /* for the thread; NULL: the processors of the caller */
	/* Every alive_ms milliseconds, the control thread sends an empty call to the polling
	 * thread, and then calls alive(): this shows that neither thread hangs. 0: never. */
	uint32_t alive_ms;
	void (*alive)(void);
	/*
	 * For in-process NICs, whose mailbox is shared: clients of this process come by
	 * control_admit, clients of other processes by the listening socket (control_socket_id).
	 * While groups exist, the control thread runs a pass every CONTROL_PASS_MS. Without groups
	 * and clients of this process, it calls unused(arg); if unused returns true, the thread
	 * calls over(arg) and ends. After a write to stop_fd, an eventfd, it calls unused() again.
	 */
	bool (*unused)(void *arg);
	void (*over)(void *arg);
	void *arg;
};
#define CONTROL_THREAD_NAME "nbar-control" /* as ps and debuggers show it */
#define CONTROL_PASS_MS 5 /* while a host computes, its NIC answers at most this late */

/* Makes a socket RUN_DIR/NAME.sock for each NIC and starts the thread, which needs a running
 * polling thread. 0, or negative errno after log_error(). */
int control_start(struct nicd *d, const struct control_config *config, struct control **out);

/* Waits for the thread to end, when nicd_run has returned, and frees everything. */
void control_end(struct control *k);

/* Takes this end of a socket pair as a client of the first NIC; any thread. 0 or negative errno. */
int control_admit(struct control *k, int fd);

/* Frees everything that belongs to no client; called in over(). */
void control_free(struct control *k);

/* Called in a child of fork(), which does not use the in-process NIC: only closes the NIC's
 * descriptors. The descriptor of a client that connects during the fork stays open. */
void control_forked(const struct control *k);

/* Removes the listening socket of an in-process NIC whose process is about to end; threads may
 * still run. */
void control_unlink(struct control *k);

/* Path of the socket of NIC i. */
const char *control_path(const struct control *k, uint32_t i);

/* Socket id, by which other processes of the user find the in-process NIC; 0: none. */
uint32_t control_socket_id(const struct control *k);

#endif
