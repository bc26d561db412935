/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.c - clock, sleep, bell and end of QEMU's machine `virt`.
 *
 * Called by main.c. No interrupt calls a handler: WFI returns when an interrupt is pending, and
 * machine_sleep then acknowledges all that are pending.
 */
#include "machine.h"

#define TEST_BASE 0x100000u /* "sifive_test": ends the emulator */
#define TEST_PASS 0x5555u
#define TEST_FAIL 0x3333u

#define CLINT_BASE 0x2000000u /* the timer */
#define CLINT_MTIMECMP (CLINT_BASE + 0x4000u)
#define TICK_NS 100u /* the timer counts at 10 MHz */

#define PLIC_BASE 0xc000000u /* the interrupt controller; context 0: hart 0 in machine mode */
#define PLIC_ENABLE (PLIC_BASE + 0x2000u)
#define PLIC_THRESHOLD (PLIC_BASE + 0x200000u)
#define PLIC_CLAIM (PLIC_BASE + 0x200004u)
#define CLAIMS_A_SLEEP 32u /* more than there are devices */

#define UART_BASE 0x10000000u /* NS16550, registers of one byte */
#define UART_DATA 0u
#define UART_IER 1u
#define UART_FCR 2u
#define UART_LSR 5u
#define UART_IRQ 10u
#define UART_BURST 64u /* bytes of one read */

#define MIE_TIMER (1u << 7)
#define MIE_EXTERNAL (1u << 11)

static struct bared_control *report;

static volatile uint8_t *uart(uint32_t reg)
{
	return (volatile uint8_t *)(uintptr_t)(UART_BASE + reg);
}

#if __riscv_xlen == 64
static uint64_t ticks(void)
{
	uint64_t t;

	__asm__ volatile("rdtime %0" : "=r"(t));
	return t;
}

static void alarm_at(uint64_t tick)
{
	*(volatile uint64_t *)CLINT_MTIMECMP = tick;
}
#else
/* The upper half may change between two reads. */
static uint64_t ticks(void)
{
	uint32_t high, low, again;

	do {
		__asm__ volatile("rdtimeh %0" : "=r"(high));
		__asm__ volatile("rdtime %0" : "=r"(low));
		__asm__ volatile("rdtimeh %0" : "=r"(again));
	} while (high != again);
	return (uint64_t)high << 32 | low;
}

/* Sets the upper half to its maximum first, so that no intermediate value lies in the past. */
static void alarm_at(uint64_t tick)
{
	machine_write32(CLINT_MTIMECMP + 4, UINT32_MAX);
	machine_write32(CLINT_MTIMECMP, (uint32_t)tick);
	machine_write32(CLINT_MTIMECMP + 4, (uint32_t)(tick >> 32));
}
#endif

uint64_t machine_now(void)
{
	return ticks() * TICK_NS;
}

void machine_init(uint32_t irqs)
{
	irqs |= 1u << UART_IRQ;
	for (uint32_t irq = 1; irq < 32; irq++)
		if (irqs & 1u << irq)
			machine_write32(PLIC_BASE + 4 * irq, 1); /* priority */
	machine_write32(PLIC_ENABLE, irqs);
	machine_write32(PLIC_THRESHOLD, 0);
	*uart(UART_FCR) = 1; /* received bytes wait in a queue */
	*uart(UART_IER) = 1; /* a received byte causes an interrupt */
	__asm__ volatile("csrw mie, %0" ::"r"((uintptr_t)(MIE_TIMER | MIE_EXTERNAL)));
}

static void uart_drain(void)
{
	for (uint32_t i = 0; i < UART_BURST && (*uart(UART_LSR) & 1); i++)
		(void)*uart(UART_DATA);
}

void machine_sleep(uint64_t until, void (*acknowledge)(uint32_t irq))
{
	uint64_t now = ticks(), left = until - now * TICK_NS;
	/* In ticks of 100 ns. Divides by 128, because a NIC may have no 64-bit division: the sleep
	 * may end early, but the caller then sleeps again. */
	uint64_t wait = left > UINT64_C(1) << 40 ? UINT64_C(1) << 33 : (left >> 7) + 1;

	if ((int64_t)left <= 0)
		return;
	alarm_at(now + wait);
	__asm__ volatile("wfi" ::: "memory");
	alarm_at(UINT64_MAX);
	for (uint32_t i = 0; i < CLAIMS_A_SLEEP; i++) {
		uint32_t irq = machine_read32(PLIC_CLAIM);

		if (irq == 0)
			return;
		if (irq == UART_IRQ)
			uart_drain();
		else
			acknowledge(irq);
		machine_write32(PLIC_CLAIM, irq);
	}
}

void machine_ring(void)
{
	/* The reader of the byte sees all earlier writes to the control BAR. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*uart(UART_DATA) = '!';
}

void machine_report_to(struct bared_control *control)
{
	report = control;
}

void machine_off(uint32_t status)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	machine_write32(TEST_BASE, status == 0 ? TEST_PASS : status << 16 | TEST_FAIL);
	for (;;)
		__asm__ volatile("wfi");
}

void machine_fail(const char *why, uint64_t value)
{
	if (report) {
		uint32_t n = 0;

		for (; why[n] && n < sizeof(report->text) - 20; n++)
			report->text[n] = why[n];
		report->text[n++] = ' ';
		report->text[n++] = '0';
		report->text[n++] = 'x';
		for (uint32_t i = 0; i < 16; i++)
			report->text[n++] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
		report->text[n] = '\0';
		/* Pairs with the acquire in nic_state: the text is complete. */
		__atomic_store_n(&report->state, BARED_FAILED, __ATOMIC_RELEASE);
		machine_ring();
	}
	machine_off(1);
}

void machine_fault(uintptr_t cause, uintptr_t pc, uintptr_t address)
{
	(void)address;
	switch (cause) {
	case 1:
	case 5:
	case 7:
		machine_fail("it used memory that is not there (or its stack is full) at", pc);
	case 2:
		machine_fail("it met an instruction that is none at", pc);
	}
	machine_fail("it was stopped by a fault at", pc);
}
