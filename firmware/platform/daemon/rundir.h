/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rundir.h - the run directory, with the control sockets of a daemon. One daemon per directory.
 */
#ifndef NBAR_DAEMON_RUNDIR_H
#define NBAR_DAEMON_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

/* A control socket that this process has made. */
struct rundir_socket {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	uint64_t inode; /* 0: no socket */
};

/* Writes the default: $NBAR_RUN_DIR, or else /run/nbar (root), $XDG_RUNTIME_DIR/nbar, or
 * /tmp/nbar-UID. libnbar has the same rule. 0, or -ENAMETOOLONG. */
int rundir_default(char *path, size_t size);

/*
 * Takes the run directory for this daemon: makes it if it is missing, takes its lock, and removes
 * the sockets that a killed daemon has listed in the lock file, and no others. Refuses a directory
 * that other users could change. Returns a descriptor, or negative errno after log_error(). Closing
 * the descriptor releases the lock.
 */
int rundir_take(const char *path);

/* Binds fd to RUN_DIR/NIC.sock and lists this name in the lock file. Does not replace a file of
 * this name: -EADDRINUSE. 0, or negative errno after log_error(). */
int rundir_bind(const char *run_dir, const char *nic, int fd, struct rundir_socket *out);

/* Stores the inode of the socket that was bound to s->path. 0 or negative errno. */
int rundir_socket_note(struct rundir_socket *s);

/* True if this is a socket of this user with this inode (0: any inode), and no process listens on
 * it any more. */
bool rundir_socket_is_stale(const char *path, uint64_t inode);

/* Removes the socket, unless another file has taken its place. */
void rundir_remove(struct rundir_socket *s);

#endif
