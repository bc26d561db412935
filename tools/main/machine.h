/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.h - the machine that a result was measured on.
 */
#ifndef NBAR_TOOLS_MACHINE_H
#define NBAR_TOOLS_MACHINE_H

struct tool_machine {
	char cpu[128], kernel[208], host[72];
};

/* Texts for people; "unknown" where nothing is known. */
struct tool_machine tool_machine(void);

#endif
