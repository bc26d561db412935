/* SPDX-License-Identifier: BSD-3-Clause */
/* pci.h - the memory of the shared devices (ivshmem): BARs that this image itself places. */
#ifndef BARED_PCI_H
#define BARED_PCI_H

#include <stdint.h>

/* Gives the memory BAR of device `device` on bus 0 a place in the address space; NULL: there is no
 * such device, or its memory is not of `bytes`. Once for each device. */
void *pci_map(uint32_t device, uint32_t bytes);

#endif
