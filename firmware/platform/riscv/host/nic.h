/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic.h - the emulated NIC as the host process sees it: memory, machine, calls, wakes.
 */
#ifndef BARED_NIC_H
#define BARED_NIC_H

#include <stdbool.h>
#include <sys/types.h>

#include "options.h"

struct nic {
	const struct options *options;
	struct bared_control *control;
	int control_fd;
	struct nbar_page *page[BARED_PORTS_MAX];
	int page_fd[BARED_PORTS_MAX];                 /* sealed: no client can shrink it */
	uint32_t woken[BARED_PORTS_MAX][BARED_CELLS]; /* as this process last saw it */
	int bell;      /* socket: each side rings by a byte; end of file: the machine has ended */
	pid_t qemu;    /* 0: QEMU does not run */
	bool failed;   /* reported; no call gets an answer any more */
	bool stopping; /* the end of the machine is no failure */
};

/* Makes the memory of all BARs and fills in the configuration. 0 or negative errno, after
 * log_error(). */
int nic_memory(struct nic *n, const struct options *o);

/* Starts the machine (qemu.c) and waits until the NIC is ready. 0 or negative errno, after
 * log_error(). stop_fd: when it can be read, the wait ends. */
int nic_start(struct nic *n, int stop_fd);

/* Starts QEMU with the BARs; n->bell and n->qemu are set. 0 or negative errno, after log_error().
 */
int qemu_start(struct nic *n);

/* Ends QEMU if it still runs. Returns a line that says how QEMU ended; NULL: normally, or the NIC
 * has reported it. wait_ms: QEMU may take this time to end by itself. */
const char *qemu_end(struct nic *n, int wait_ms);

/* Call it when n->bell can be read: wakes the sleepers for which the NIC asks. False: the NIC has
 * failed or its machine has ended; reported. */
bool nic_heard(struct nic *n);

/*
 * Makes one call. Its arguments, except seq, random and op, are in n->control->call. Returns 0 when
 * the answer is there; -EIO, reported, if no answer comes.
 */
int nic_call(struct nic *n, enum bared_op op);

/* Stops the NIC: all groups end as NIC_DOWN, peers get some time to ask, the machine ends. Returns
 * after that. */
void nic_stop(struct nic *n);

void nic_free(struct nic *n);

#endif
