/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_look.c - what the control thread finds out about hosts that others wait for: real processes
 * that run, are stopped and have ended, at ports in each part of the table.
 */
#include "unit/unit.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control_internal.h"

#define NOW UINT64_C(123456789)

static struct nicd nicd;
static struct nicd_nic nic[2];
static struct control control;
static struct nbnic_port port[3];
static struct nbnic_client client[4];
static pid_t stopped, zombie, gone;

static uint64_t now(void)
{
	return NOW;
}

static pid_t child_begin(void)
{
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	assert_true(child > 0);
	return child;
}

static int children_begin(void **state)
{
	siginfo_t info;

	stopped = child_begin();
	kill(stopped, SIGSTOP);
	waitpid(stopped, NULL, WUNTRACED);
	zombie = child_begin();
	kill(zombie, SIGKILL);
	waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT);
	gone = child_begin();
	kill(gone, SIGKILL);
	waitpid(gone, NULL, 0);
	return 0;
}

static int children_end(void **state)
{
	kill(stopped, SIGKILL);
	waitpid(stopped, NULL, 0);
	waitpid(zombie, NULL, 0);
	return 0;
}

/* Two NICs without ports. */
static void begin(void)
{
	memset(&nicd, 0, sizeof(nicd));
	memset(nic, 0, sizeof(nic));
	memset(&control, 0, sizeof(control));
	memset(port, 0, sizeof(port));
	memset(client, 0, sizeof(client));
	mailbox_share(&nicd.mailbox, now);
	nicd.look_fd = eventfd(3, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(nicd.look_fd >= 0);
	control.nicd = &nicd;
	control.nnic = 2;
	for (uint32_t i = 0; i < 2; i++)
		control.nic[i].nic = &nic[i];
}

/* Port p of a NIC has number n and is of client c. */
static void port_is(uint32_t p, uint32_t at, uint32_t n, uint32_t c)
{
	port[p].number = n;
	port[p].asked = true;
	nic[at].device.port[n] = &port[p];
	nic[at].device.owner[n] = &client[c];
	client[c].port = &port[p];
}

static void client_is(uint32_t c, uint32_t at, pid_t pid)
{
	client[c].pid = (uint32_t)pid;
	client[c].next = nic[at].device.client;
	nic[at].device.client = &client[c];
}

static void look(void)
{
	uint64_t n;

	control_look(&control);
	assert_int_equal(read(nicd.look_fd, &n, sizeof(n)), -1); /* the call was taken */
	close(nicd.look_fd);
}

static void found(uint32_t p, uint8_t why)
{
	assert_int_equal(port[p].host, why);
	assert_int_equal(port[p].host_at, NOW);
	assert_false(port[p].asked);
}

static void one_host(pid_t pid, uint32_t at, uint32_t number, uint8_t why)
{
	begin();
	port_is(0, at, number, 0);
	client_is(0, at, pid);
	look();
	found(0, why);
}

static void states_of_a_host(void **state)
{
	one_host(getpid(), 0, 0, NBAR_WHY_HOST_LATE);
	one_host(stopped, 0, 0, NBAR_WHY_HOST_STOPPED);
	one_host(zombie, 0, 0, NBAR_WHY_HOST_ENDED);
	one_host(gone, 0, 0, NBAR_WHY_HOST_ENDED);
	one_host(0, 0, 0, NBAR_WHY_HOST_LATE); /* in another PID namespace: nothing is known */
}

static void ports_in_each_part_of_the_table(void **state)
{
	static const uint32_t numbers[] = { 0, 63, 64, 65, 128, NBNIC_PORTS_MAX - 1 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		one_host(stopped, 0, numbers[i], NBAR_WHY_HOST_STOPPED);
		one_host(stopped, 1, numbers[i], NBAR_WHY_HOST_STOPPED);
	}
}

/* Three hosts of two NICs: each has its own state. */
static void hosts_are_not_confused(void **state)
{
	begin();
	port_is(0, 0, 1, 0);
	port_is(1, 0, 65, 1);
	port_is(2, 1, 1, 2);
	client_is(0, 0, stopped);
	client_is(1, 0, getpid());
	client_is(2, 1, gone);
	look();
	found(0, NBAR_WHY_HOST_STOPPED);
	found(1, NBAR_WHY_HOST_LATE);
	found(2, NBAR_WHY_HOST_ENDED);
}

/* Nobody waits for this host: it is not looked at. */
static void only_those_asked_for(void **state)
{
	begin();
	port_is(0, 0, 5, 0);
	port_is(1, 0, 6, 1);
	port[1].asked = false;
	client_is(0, 0, stopped);
	client_is(1, 0, stopped);
	look();
	found(0, NBAR_WHY_HOST_STOPPED);
	assert_true(port[1].host == 0 && port[1].host_at == 0);
}

/* A client without a port, and a port whose process has gone: nothing to look at. */
static void nothing_to_find(void **state)
{
	begin();
	port_is(0, 0, 5, 0);
	port[0].asked = true;
	client_is(1, 0, stopped);
	look();
	assert_true(port[0].host == 0 && !port[0].asked);
}

/* A port has several processes: the worst state counts, whatever their order. */
static void worst_of_several(void **state)
{
	const pid_t pid[3] = { getpid(), stopped, gone };

	for (uint32_t last = 0; last < 3; last++)
		for (uint32_t owner = 0; owner < 3; owner++) {
			begin();
			port_is(0, 0, 64, owner);
			for (uint32_t i = 0; i < 3; i++) {
				uint32_t c = (i + last) % 3;

				if (c != owner)
					client[c].owner = &client[owner];
				client_is(c, 0, pid[c]);
			}
			look();
			found(0, NBAR_WHY_HOST_ENDED);
		}
	begin();
	port_is(0, 0, 64, 0);
	client[1].owner = &client[0];
	client_is(0, 0, stopped);
	client_is(1, 0, getpid());
	look();
	found(0, NBAR_WHY_HOST_STOPPED);
}

UNIT_MAIN(children_begin, children_end, UNIT(states_of_a_host),
	  UNIT(ports_in_each_part_of_the_table), UNIT(hosts_are_not_confused),
	  UNIT(only_those_asked_for), UNIT(nothing_to_find), UNIT(worst_of_several))
