/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - what a service manager expects of a daemon: readiness, and signs of life.
 *
 * The protocol is that of sd_notify(3): a datagram to the socket that $NOTIFY_SOCKET names. Without
 * a service manager each call does nothing.
 */
#ifndef NBAR_DAEMON_SERVICE_H
#define NBAR_DAEMON_SERVICE_H

#include <stdint.h>

/* Sends a state, for example "READY=1". Any thread. A state that cannot be sent is lost. */
void service_notify(const char *state);

/* Milliseconds between two signs of life: a third of the time that the manager allows. 0: no
 * signs. */
uint32_t service_alive_ms(void);

#endif
