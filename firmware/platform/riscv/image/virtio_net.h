/* SPDX-License-Identifier: BSD-3-Clause */
/* virtio_net.h - the wire: Ethernet frames by the machine's virtio network device. */
#ifndef BARED_VIRTIO_NET_H
#define BARED_VIRTIO_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* Finds and starts the device. NULL: no suitable device; *why is a constant text. */
struct wire_base *virtio_net_open(const char **why);

/* Return the interrupts of the device; acknowledge an interrupt. */
uint32_t virtio_net_irqs(void);
void virtio_net_acknowledge(uint32_t irq);

#endif
