/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_kernel_udp4.c - the wire "kernel" with frames in UDP datagrams: which packets the
 * programs take, how their own go, and from where the programs know it. test_wire_kernel.c and
 * test_wire_kernel_posts.c have the rest.
 */
#include "unit/unit.h"

#ifdef WIRES_KERNEL
#ifndef WORLD_IP
#define WORLD_IP 4
#endif
#include "kernel_world.h"

/* A packet of which the programs want nothing. */
static void in_passes(const char *what)
{
	const struct kernel_group before = in_kernel();
	uint8_t copy[sizeof(packet)], frame[2048];
	struct kernel_group after;
	uint32_t verdict;

	memcpy(copy, packet, length);
	verdict = run("kernel_in");
	after = in_kernel();
	require(verdict == NEXT, "%s: %u", what, verdict);
	require(memcmp(&before, &after, sizeof(before)) == 0, "%s", what);
	require(memcmp(packet, copy, length) == 0, "%s", what);
	assert_false(left(frame));
}

static void tokens_step_the_engine(void **unused)
{
	struct nbfw_token t;

	group_make("pairwise", 1);
	t = token_of(0, EPOCH + 1);
	token_comes(&t, NBFW_USED);
	token_comes(&t, NBFW_DUPLICATE);
	t.epoch = EPOCH;
	token_comes(&t, NBFW_STALE);
	t.epoch = EPOCH + 9;
	token_comes(&t, NBFW_BAD);
	post_goes();
	for (uint32_t i = 1; i < g.plan->nrecv; i++) {
		t = token_of(i, EPOCH + 1);
		token_comes(&t, NBFW_USED);
	}
	assert_int_equal(completion()->word, EPOCH + 1);
	completion()->word = EPOCH;
	group_make("dissemination:3", 2);
	post_goes(); /* clones */
	tokens_come();
	assert_int_equal(completion()->word, EPOCH + 1);
}

/* Epochs that carry into the sum; and one of which it is 0, written as 0xffff: 0 says that there is
 * none. */
static void sums_hold_for_each_epoch(void **unused)
{
	uint32_t epochs[] = { 0, 0xfffe, 0xffff, 0x12345678, 0xfffffffe, 0 }, *last = &epochs[5];
	const uint32_t n = sizeof(epochs) / sizeof(epochs[0]);

	for (uint32_t i = 0; i < n; i++) {
		group_begin("pairwise", 1, 0);
		nbfw_init(s_now(), g.plan, epochs[i]);
		completion()->word = epochs[i];
		assert_true(lend_soon(false, 0));
		post_goes();
		for (uint32_t e = 1; i + 2 == n && e < 0x10000; e++) {
			packet[AT_EPOCH] = (uint8_t)e, packet[AT_EPOCH + 1] = (uint8_t)(e >> 8);
			packet[AT_EPOCH + 2] = packet[AT_EPOCH + 3] = 0;
			sum_put(packet, FRAME);
			if (word_at(AT_SUM) == 0xffff)
				*last = e - 1;
		}
	}
	assert_int_equal(word_at(AT_SUM), 0xffff);
}

static void strangers_and_malformed_packets_pass(void **unused)
{
	static const struct {
		const char *what;
		uint32_t at;
		uint8_t flip;
	} wrong[] = {
		{ "another host", 5, 1 },
		{ "no IP", AT_PROTOCOL, 1 },
		{ "another version of IP", AT_IP, 0x20 },
#ifdef IPV6
		{ "another length of IP", AT_IP + 5, 1 },
		{ "TCP", AT_IP + 6, 23 },
#else
		{ "options", AT_IP, 3 },
		{ "another length of IP", AT_IP + 3, 1 },
		{ "more fragments", AT_IP + 6, 0x20 },
		{ "a later fragment", AT_IP + 7, 1 },
		{ "TCP", AT_IP + 9, 23 },
#endif
		{ "from another NIC", AT_FROM, 1 },
		{ "from another NIC", AT_TO - 1, 1 },
		{ "to another address", AT_TO, 1 },
		{ "to another address", AT_PORTS - 1, 1 },
		{ "from another port", AT_PORTS, 1 },
		{ "from another port", AT_PORTS + 1, 1 },
		{ "to another port", AT_PORTS + 2, 1 },
		{ "to another port", AT_PORTS + 3, 1 },
		{ "another length of UDP", AT_PORTS + 5, 1 },
		{ "version 3", AT_VERSION, 1 },
		{ "a tag", AT_VERSION, WIRE_TAGGED },
		{ "a PULL", AT_TYPE, 3 },
		{ "reserved", AT_RESERVED, 1 },
		{ "handle", AT_HANDLE + 2, 1 },
		{ "cookie", AT_COOKIE, 1 },
		{ "cookie", AT_COOKIE + 7, 0x80 },
		{ "sender", AT_SENDER, 1 },
	};
	struct nbfw_token t;

	group_make("pairwise", 1);
	t = token_of(0, EPOCH + 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		token_put(&t);
		packet[wrong[i].at] ^= wrong[i].flip;
		sum_put(packet, FRAME);
		in_passes(wrong[i].what);
	}
	token_put(&t);
	for (length = AT_PORTS; length < FRAME + 40; length++)
		if (length != FRAME)
			in_passes("another length");
	token_put(&t); /* may be in fragments, but is not; priority, id, TTL and their sum */
#ifdef IPV6
	packet[AT_IP] = 0x6c, packet[AT_IP + 3] = 7, packet[AT_IP + 7] = 3;
#else
	packet[AT_IP + 1] = 8, packet[AT_IP + 4] = 7, packet[AT_IP + 6] = 0, packet[AT_IP + 8] = 3;
#endif
	assert_int_equal(run("kernel_in"), DROP);
	assert_int_equal(in_kernel().counts.received, 1);
}

/* The programs check the sum of a datagram. It may be absent, wrong, or left to the interface. */
static void sums_are_checked(void **unused)
{
	uint32_t epoch = EPOCH + 1;
	struct nbfw_token t;
	uint16_t sum;

	group_make("pairwise", 1);
	t = token_of(0, epoch);
	token_put(&t);
	word_put(packet + AT_SUM, 0);
#ifdef IPV6
	in_passes("no sum");
#else
	assert_int_equal(run("kernel_in"), DROP);
#endif
	token_put(&t);
	packet[AT_EPOCH] ^= 1;
	in_passes("a wrong sum");
	packet[AT_SUM] ^= 2;
	in_passes("a wrong sum");
	/* Our send follows: its sum stays open. */
	group_make("pairwise", 1);
	post_goes();
	token_put(&t);
	word_put(packet + AT_SUM, sum_begun(packet, FRAME));
	assert_int_equal(run("kernel_in"), REDIRECT);
	assert_int_equal(word_at(AT_SUM), sum_begun(packet, FRAME));
	sum = word_at(AT_SUM);
	sum_put(packet, FRAME);
	assert_int_not_equal(word_at(AT_SUM), sum);
	/* By chance, a right sum is that of the pseudo-header: the daemon takes it. */
	group_make("pairwise", 1);
	for (t.info = 0; t.info < 0x20000; t.info++) {
		token_put(&t);
		if (word_at(AT_SUM) == sum_begun(packet, FRAME))
			break;
	}
	assert_int_not_equal(t.info, 0x20000);
	in_passes("a sum that is open, or right");
}

static void headers_are_those_of_the_daemon(void **unused)
{
	const struct nbnic_addr to = address_of(1);
	static const uint64_t value[2];
	const struct nbfw_token t = { .type = NBFW_PROBE };
	const struct nbfw_token longer = { .type = NBFW_TOKEN,
					   .value_length = sizeof(value),
					   .value = (const void *)value };
	struct kernel_address at;
	struct kernel_route route;

	memcpy(&at, to.byte, sizeof(at));
	/* Not those of another socket of this host. */
	assert_int_equal(bpf_map_delete_elem(w->routes, &at), 0);
	group_begin("pairwise", 1, 0);
	frame_put(packet, &to, &w->base.addr, &t);
	length = FRAME, mark = 0;
	assert_int_equal(run("kernel_out"), NEXT);
	assert_true(bpf_map_lookup_elem(w->routes, &at, &route) < 0);
	group_begin("pairwise", 0, 0);
	assert_false(lend(false, 0)); /* to member 1 */
	/* From a frame with a value, too. */
	assert_true(kernel_transmit(&w->base, &to, &longer));
	assert_int_equal(recv(other_end, packet, sizeof(packet), 0), FRAME + sizeof(value));
	assert_int_equal(bpf_map_lookup_elem(w->routes, &at, &route), 0);
	memcpy(ip_id[1], packet + AT_ID, sizeof(ip_id[1]));
	frame_put(packet, &to, &w->base.addr, &t);
	assert_memory_equal(route.header, packet, AT_SUM);
	/* It is not tried again before the daemon has run a barrier. */
	assert_false(lend(false, 0));
	nbfw_init(s_now(), g.plan, EPOCH + 1);
	assert_true(lend_soon(false, 0));
	/* The neighbour changes: the next time, frames go as those of the daemon do by then. */
	assert_int_equal(
		system("n=11; ip neigh change " NEIGHBOUR " lladdr 02:00:00:00:00:77 dev v0"), 0);
	assert_int_equal(routes_make(), 0);
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	assert_true(lend_soon(false, 0));
	assert_int_equal(in_kernel().send[0].frame[5], 0x77);
	assert_int_equal(
		system("n=11; ip neigh change " NEIGHBOUR " lladdr 02:00:00:00:00:0b dev v0"), 0);
	assert_int_equal(routes_make(), 0);
	/* Headers of long ago. */
	assert_int_equal(bpf_map_lookup_elem(w->routes, &at, &route), 0);
	route.time -= ROUTE_NS;
	assert_int_equal(bpf_map_update_elem(w->routes, &at, &route, 0), 0);
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	assert_false(lend(false, 0));
	assert_int_equal(routes_make(), 0);
}

/* Frames that the programs do not want come to the socket, and go by it. */
static void the_socket_is_that_of_wire_udp(void **unused)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_ifindex = (int)if_nametoindex("v1") };
	struct nbnic_addr a = address_of(2);
	char text[64];

	kernel_show(&w->base, &a, text, sizeof(text));
	assert_string_equal(text,
			    AT_FRAME == KERNEL_UDP6 ? "[2001:db8::c]:4108" : "192.0.2.12:4108");
	assert_string_equal(w->base.text, SELF);
	assert_int_equal(w->base.kind, 3);
	/* The packet socket gets nothing. */
	memcpy(packet, w->mac, ETH_ALEN);
	word_put(packet + AT_PROTOCOL, NBFW_ETHER_TYPE);
	assert_int_equal(sendto(other_end, packet, FRAME, 0, (const void *)&at, sizeof(at)), FRAME);
	usleep(1000);
	assert_true(recv(w->fd, packet, sizeof(packet), MSG_DONTWAIT) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tokens_step_the_engine),
		TEST(sums_hold_for_each_epoch),
		TEST(strangers_and_malformed_packets_pass),
		TEST(sums_are_checked),
		TEST(headers_are_those_of_the_daemon),
		TEST(the_socket_is_that_of_wire_udp),
	};

	return kernel_cannot() ? 0 : cmocka_run_group_tests(tests, setup_all, teardown_all);
}
#else
int main(void)
{
	puts("1..1\nok 1 - wire kernel # SKIP this build has none: apt-get install clang libbpf-dev");
	return 0;
}
#endif
