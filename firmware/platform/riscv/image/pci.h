/* SPDX-License-Identifier: BSD-3-Clause */
/* pci.h - the memory of the shared devices (ivshmem): BARs that this image itself places. */
#ifndef BARED_PCI_H
#define BARED_PCI_H

#include <stdint.h>

/* Gives an address to the memory BAR of a device on bus 0, and returns this address. NULL: there is
 * no such device, or its memory has another size. Call it once for each device. */
void *pci_map(uint32_t device, uint32_t bytes);

#endif
