/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_kernel_posts.c - the wire "kernel": each branch of the program that takes posts.
 * Whatever a host sends through its start socket, only tokens leave.
 */
#include "unit/unit.h"

#ifdef WIRES_KERNEL
#include <netinet/udp.h>

#include "kernel_world.h"

/* A packet that is not a post, or nothing comes of it; rings: the daemon shall look. */
static void out_is(const char *what, uint32_t wanted, bool rings)
{
	const struct kernel_group before = in_kernel();
	uint8_t copy[sizeof(packet)], frame[2048];
	uint32_t verdict;
	struct kernel_group after;

	memcpy(copy, packet, length);
	bell_rang();
	verdict = run_out();
	require(verdict == wanted, "%s: %u", what, verdict);
	require(bell_rang() == rings, "%s: bell", what);
	assert_memory_equal(packet, copy, length);
	after = in_kernel();
	require(memcmp(before.state, after.state, sizeof(state)) == 0, "%s", what);
	require(memcmp(&before.counts, &after.counts, sizeof(before.counts)) == 0, "%s", what);
	assert_false(left(frame));
}

/* --- egress ---------------------------------------------------------------------------------- */

static void what_is_not_a_post_stays_or_passes(void **unused)
{
	static const struct {
		const char *what;
		uint32_t at;
		uint8_t flip;
	} wrong[] = {
		{ "not IP", AT_PROTOCOL, 1 },      { "with options", AT_IP, 3 },
		{ "ICMP", AT_IP + 9, 16 },         { "to another host", AT_IP + 19, 1 },
		{ "another port", AT_UDP + 3, 1 },
	};

	group_make("pairwise", 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		post_put(EPOCH + 1, 0);
		packet[wrong[i].at] ^= wrong[i].flip;
		out_is(wrong[i].what, DROP, false);
	}
	for (uint32_t n = AT_UDP; n < POST; n++) {
		post_put(EPOCH + 1, 0);
		length = n;
		out_is("short", DROP, false);
	}
	for (uint32_t n = POST + 1; n < FRAME + 40; n++) {
		post_put(EPOCH + 1, 0);
		length = n;
		out_is("long", DROP, true);
	}
	/* Other sockets: what goes to the address of start sockets stays, all else leaves. */
	post_put(EPOCH + 1, 0);
	assert_int_equal(run("kernel_out"), DROP);
	mark = 0;
	assert_int_equal(run("kernel_out"), DROP);
	packet[AT_IP + 9] = 1;
	assert_int_equal(run("kernel_out"), DROP);
	length = AT_UDP;
	assert_int_equal(run("kernel_out"), DROP);
	length = POST;
	packet[AT_IP + 19] ^= 1;
	out_is("to another host", NEXT, false);
	post_put(EPOCH + 1, 0);
	mark = 0;
	packet[AT_PROTOCOL] ^= 1;
	out_is("not IP", NEXT, false);
	length = AT_UDP - 1;
	out_is("short", NEXT, false);
	mark = KERNEL_MARK;
	out_is("short", DROP, false);
}

static void posts_of_a_mad_host_harm_nobody(void **unused)
{
	static const uint32_t nonsense[] = { EPOCH,      EPOCH - 1,
					     0,          EPOCH + NBAR_POSTED_MAX + 1,
					     UINT32_MAX, EPOCH + 0x80000000u };
	const uint64_t key = (uint64_t)PORT << 32 | CELL, other = key + 1;
	uint32_t to = INDEX;

	group_make("pairwise", 1);
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		post_put(nonsense[i], 0);
		out_is("nonsense", DROP, false);
		assert_int_equal(in_kernel().posted, EPOCH);
	}
	/* No such cell; and beyond the end. */
	post_put(EPOCH + 1, 0);
	packet[AT_POST]++;
	out_is("another cell", DROP, true);
	memset(packet + AT_POST, 0xff, 4);
	out_is("beyond the end", DROP, true);
	/* The cell that the group had is that of another, or its port is. */
	assert_int_equal(bpf_map_update_elem(w->cells, &other, &to, 0), 0);
	post_put(EPOCH + 1, 0);
	packet[AT_POST]++;
	out_is("the group of another cell", DROP, true);
	bpf_map_delete_elem(w->cells, &other);
	to = KERNEL_GROUPS;
	assert_int_equal(bpf_map_update_elem(w->cells, &key, &to, 0), 0);
	post_put(EPOCH + 1, 0);
	out_is("beyond the groups", DROP, false);
	to = INDEX;
	assert_int_equal(bpf_map_update_elem(w->cells, &key, &to, 0), 0);
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	post_put(EPOCH + 1, 0);
	out_is("not lent", DROP, true);
	post_put(EPOCH + 1, 1);
	out_is("not lent, sleeps", DROP, true);
	assert_false(is_wanted());
	assert_true(lend_soon(false, 0));
	post_goes();
}

static void posts_ahead_come_to_the_daemon(void **unused)
{
	group_make("pairwise", 1);
	post_put(EPOCH + 2, 0); /* the post before it is lost */
	out_is("ahead", DROP, true);
	assert_int_equal(is_wanted(), KERNEL_TAKE);
	assert_true(lend_soon(false, 0));
	post_goes();
	post_put(EPOCH + 1, 0);
	out_is("again", DROP, false);
	assert_false(is_wanted());
	post_put(EPOCH + 2, 0);
	out_is("ahead of the one that runs", DROP, false);
	assert_false(is_wanted());
	post_put(EPOCH + 2, 1);
	out_is("sleeps, for the one ahead", DROP, false);
	tokens_come();
	assert_int_equal(is_wanted(), KERNEL_TAKE);
}

static void sleepers_come_to_the_daemon(void **unused)
{
	group_make("pairwise", 1);
	post_put(EPOCH, 1); /* nothing runs: the thread finds that */
	out_is("sleeps", DROP, false);
	assert_false(is_wanted());
	assert_int_equal(in_kernel().sleeper, 1);
	for (uint32_t n = 0; n < 2; n++) {
		completion()->word = EPOCH;
		group_make("pairwise", 1);
		if (n == 1)
			assert_true(lend_soon(true, 0)); /* the daemon knows this sleeper */
		post_goes();
		if (n == 0) {
			post_put(EPOCH + 1, 1);
			out_is("sleeps", DROP, false);
		}
		tokens_come();
		assert_int_equal(is_wanted(), KERNEL_WAKE);
		assert_int_equal(in_kernel().sleeper, 0); /* each wake is asked for */
	}
}

/* All tokens have come before the post: it completes the barrier, and its sends still go. */
static void a_post_may_complete(void **unused)
{
	group_make("pairwise", 1);
	tokens_come();
	completion()->nstragglers = 3;
	post_goes();
	assert_int_equal(completion()->word, EPOCH + 1);
	assert_int_equal(completion()->nstragglers, 0);
	assert_int_equal(in_kernel().counts.completed, 1);
	assert_int_equal(in_kernel().counts.sent, g.plan->nsend);
}

/* The packets of a real start socket: they leave as tokens, whatever the host asks for. */
static void a_start_socket_sends_tokens_alone(void **unused)
{
	const struct sockaddr_in away = { .sin_family = AF_INET,
					  .sin_port = htons(9),
					  .sin_addr.s_addr = htonl(0xc0000202) };
	const uint8_t options[4] = { 1, 1, 1, 0 };
	const struct nbar_start post = { .cell = CELL, .posted = EPOCH + 1 };
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	static uint8_t large[20000];
	const int yes = 1, no = 0, part = sizeof(post);
	int fd[2], heard = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_IP));

	group_make("pairwise", 1);
	at.sll_ifindex = (int)if_nametoindex("v1");
	assert_int_equal(bind(heard, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_true(kernel_port_fds(&w->base, PORT, fd));
	assert_int_equal(send(fd[1], large, 3, 0), 3);
	send(fd[1], large, sizeof(large), 0); /* fragments */
	sendto(fd[1], &post, sizeof(post), 0, (const struct sockaddr *)&away, sizeof(away));
	assert_int_equal(setsockopt(fd[1], IPPROTO_IP, IP_OPTIONS, options, sizeof(options)), 0);
	send(fd[1], &post, sizeof(post), 0);
	assert_int_equal(setsockopt(fd[1], IPPROTO_IP, IP_OPTIONS, options, 0), 0);
	/* The interface shall write a sum, or cut the packet. */
	assert_int_equal(setsockopt(fd[1], SOL_SOCKET, SO_NO_CHECK, &no, sizeof(no)), 0);
	send(fd[1], &post, sizeof(post), 0);
	assert_int_equal(setsockopt(fd[1], IPPROTO_UDP, UDP_SEGMENT, &part, sizeof(part)), 0);
	send(fd[1], (struct nbar_start[2]){ post, post }, 2 * sizeof(post), 0);
	assert_int_equal(setsockopt(fd[1], IPPROTO_UDP, UDP_SEGMENT, &no, sizeof(no)), 0);
	assert_int_equal(setsockopt(fd[1], SOL_SOCKET, SO_NO_CHECK, &yes, sizeof(yes)), 0);
	assert_int_equal(in_kernel().counts.sent, 0);
	send(fd[1], &post, sizeof(post), 0);
	assert_int_equal(in_kernel().counts.sent, 1);
	assert_int_equal(recv(other_end, packet, sizeof(packet), 0), FRAME);
	assert_true(recv(heard, packet, sizeof(packet), MSG_DONTWAIT) < 0);
	close(heard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_not_a_post_stays_or_passes),
		TEST(posts_of_a_mad_host_harm_nobody),
		TEST(posts_ahead_come_to_the_daemon),
		TEST(sleepers_come_to_the_daemon),
		TEST(a_post_may_complete),
		TEST(a_start_socket_sends_tokens_alone),
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
