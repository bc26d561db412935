/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h - the control sockets of a daemon's NICs, served by a thread of their own.
 *
 * All that is slow happens in that thread: sockets, checks, memory, plans. What touches a NIC is
 * handed to the polling thread (mailbox.h). Knows no DPDK.
 */
#ifndef NBAR_DAEMON_CONTROL_H
#define NBAR_DAEMON_CONTROL_H

#include <sched.h>
#include <sys/types.h>

#include "nicd.h"

struct control;

struct control_config {
	const char *run_dir;   /* taken with rundir_take; NULL: the NICs are this process's own */
	mode_t mode;           /* of the sockets: who may use these NICs */
	gid_t group;           /* of the sockets; (gid_t)-1: that of the process */
	int stop_fd;           /* when this can be read, everything is stopped in good order */
	const cpu_set_t *cpus; /* for the thread; NULL: as the caller */
	/*
	 * NICs of the process's own, whose mailbox is shared: clients come by control_admit, and
	 * from other processes by control_socket_id, and the control thread runs a pass every
	 * CONTROL_PASS_MS while there are groups. With no clients of this process and no groups,
	 * and if unused(arg) says so, it ends by itself, with over(arg); stop_fd, an eventfd, has
	 * it ask again.
	 */
	bool (*unused)(void *arg);
	void (*over)(void *arg);
	void *arg;
};
#define CONTROL_PASS_MS 5 /* while a host computes, this late are its NIC's answers */

/* Makes a socket RUN_DIR/NAME.sock for each NIC and starts the thread; the polling thread must
 * run for it to get anywhere. 0, or negative errno after log_error(). */
int control_start(struct nicd *d, const struct control_config *config, struct control **out);

/* Waits for the thread to end, when nicd_run has returned, and gives everything back. */
void control_end(struct control *k);

/* Takes this end of a socket pair as a client of the first NIC; any thread. 0 or negative errno. */
int control_admit(struct control *k, int fd);

/* Gives everything back that is not a client's, in over(). */
void control_free(struct control *k);

/* In a child of fork(), where nobody uses it: closes the descriptors of the process's own NIC, no
 * more. That of a client who is just coming in stays. */
void control_forked(const struct control *k);

/* Path of the socket of NIC i. */
const char *control_path(const struct control *k, uint32_t i);

/* Of the process's own NIC: the number by which other processes of the user find it; 0: none. */
uint32_t control_socket_id(const struct control *k);

#endif
