/* SPDX-License-Identifier: BSD-3-Clause */
/* serve.h - the control socket of an emulated NIC: clients, their messages, their ends. */
#ifndef BARED_SERVE_H
#define BARED_SERVE_H

#include "nic.h"
#include "rundir.h"

/* Makes the socket. A descriptor, or negative errno after log_error(). */
int serve_listen(const struct options *o, struct rundir_socket *out);

/* Serves clients until stop_fd can be read (0), or the NIC has failed (-EIO, reported). In either
 * case all clients are disconnected when it returns. */
int serve_run(struct nic *n, int listen_fd, int stop_fd);

#endif
