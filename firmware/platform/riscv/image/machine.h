/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.h - the machine: QEMU's `virt` with one working hart, a UART as bell, a timer.
 *
 * All addresses of devices are in machine.c, pci.c and virtio_net.c.
 */
#ifndef BARED_MACHINE_H
#define BARED_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "bared.h"

/* Read and write registers of devices: 32 bits each, in program order. */
static inline uint32_t machine_read32(uintptr_t at)
{
	return *(const volatile uint32_t *)at;
}

static inline void machine_write32(uintptr_t at, uint32_t v)
{
	*(volatile uint32_t *)at = v;
}

/* Nanoseconds since reset; never goes back. */
uint64_t machine_now(void);

/* Prepares timer, interrupt controller and UART. irqs: bit n lets interrupt n end a sleep. */
void machine_init(uint32_t irqs);

/* Sleeps until an interrupt, or `until` (ns). `acknowledge` is called with each interrupt but the
 * UART's, which is handled here. */
void machine_sleep(uint64_t until, void (*acknowledge)(uint32_t irq));

/* Rings the bell of the host process. */
void machine_ring(void);

/* Sets the memory for reports of faults. */
void machine_report_to(struct bared_control *control);

/* Reports a fatal fault, with `value` in hexadecimal, and ends the machine. */
_Noreturn void machine_fail(const char *why, uint64_t value);

/* Ends the machine: the emulator exits with this status. */
_Noreturn void machine_off(uint32_t status);

/* start.S, at a fault. */
_Noreturn void machine_fault(uintptr_t cause, uintptr_t pc, uintptr_t address);

#endif
