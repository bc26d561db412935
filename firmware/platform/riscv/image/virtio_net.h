/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio_net.h - the wire: Ethernet frames by the machine's virtio network device. */
#ifndef BARED_VIRTIO_NET_H
#define BARED_VIRTIO_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* Finds the device and starts it. NULL, with *why a constant text: there is none that will do. */
struct wire_base *virtio_net_open(const char **why);

/* Interrupts of the device; an interrupt, acknowledged. */
uint32_t virtio_net_irqs(void);
void virtio_net_acknowledge(uint32_t irq);

#endif
