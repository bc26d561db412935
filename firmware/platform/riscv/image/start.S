/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start.S - from reset to C, and from a fault to the end.
 *
 * The machine enters at _start, in machine mode, all harts at once. Hart 0 is the NIC; the others
 * sleep for ever (a second hart makes the emulator carry out fences).
 */
#if __riscv_xlen == 64
#define STORE sd
#else
#define STORE sw
#endif

	.section .text.start, "ax"
	.globl _start
_start:
	csrw	mie, zero
	csrr	t0, mhartid
	bnez	t0, park
	la	t0, trap
	csrw	mtvec, t0
	la	sp, stack_top
	/* No access to the page below the stack (PMP entry 0: locked, NAPOT, 4 KB): a stack that
	 * grows too far traps, and overwrites nothing. */
	la	t0, stack_guard
	srli	t0, t0, 2
	ori	t0, t0, 0x1ff
	csrw	pmpaddr0, t0
	li	t0, 0x98
	csrw	pmpcfg0, t0
	la	t0, bss_begin
	la	t1, bss_end
1:	bgeu	t0, t1, 2f
	STORE	zero, 0(t0)
	addi	t0, t0, __riscv_xlen / 8
	j	1b
2:	call	image_main
park:
	wfi
	j	park

	.balign	4
trap:	/* Interrupts are never enabled, only waited for: this is a fault. */
	la	sp, trap_top
	csrr	a0, mcause
	csrr	a1, mepc
	csrr	a2, mtval
	call	machine_fault
	j	park
