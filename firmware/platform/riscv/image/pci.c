/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pci.c - gives addresses to the BARs of the shared memory devices on the PCI bus.
 *
 * Called by main.c, at start. The number of a device determines the address, so this file keeps no
 * state.
 */
#include "pci.h"
#include "machine.h"

#define ECAM_BASE 0x30000000u   /* configuration space: 32 KB a device of bus 0 */
#define WINDOW_BASE 0x40000000u /* addresses for BARs */
#define ID_IVSHMEM 0x11101af4u
#define REG_ID 0x00u
#define REG_COMMAND 0x04u
#define COMMAND_MEMORY 2u
#define REG_BAR2 0x18u /* the shared memory; 64 bits, so two registers */
#define BAR_FLAGS 0xfu

void *pci_map(uint32_t device, uint32_t bytes)
{
	uintptr_t at = ECAM_BASE + ((uintptr_t)device << 15);
	uint32_t place = WINDOW_BASE + device * bytes;

	if (machine_read32(at + REG_ID) != ID_IVSHMEM)
		return 0;
	machine_write32(at + REG_BAR2, UINT32_MAX);
	if (~(machine_read32(at + REG_BAR2) & ~BAR_FLAGS) + 1 != bytes)
		return 0;
	machine_write32(at + REG_BAR2, place);
	machine_write32(at + REG_BAR2 + 4, 0);
	machine_write32(at + REG_COMMAND, COMMAND_MEMORY);
	return (void *)(uintptr_t)place;
}
