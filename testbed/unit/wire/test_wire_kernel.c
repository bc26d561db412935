/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_kernel.c - the wire "kernel": each branch of the programs that take tokens, and that
 * lend groups; and which groups they get.
 */
#include "unit/unit.h"

#ifdef WIRES_KERNEL
#include "kernel_world.h"
#include "unit/descriptors.h"
#include "unit/said.h"

/* A packet of which the programs want nothing. */
static void in_passes(const char *what)
{
	const struct kernel_group before = in_kernel();
	uint8_t copy[sizeof(packet)], frame[2048];
	uint32_t verdict;
	struct kernel_group after;

	memcpy(copy, packet, length);
	verdict = run("kernel_in");
	require(verdict == NEXT, "%s: %u", what, verdict);
	assert_memory_equal(packet, copy, length);
	after = in_kernel();
	require(memcmp(&before, &after, sizeof(before)) == 0, "%s", what);
	assert_false(left(frame));
}

/* --- ingress --------------------------------------------------------------------------------- */

/* Every verdict of the engine, and a whole barrier of each way that a token can end. */
static void tokens_step_the_engine(void **unused)
{
	struct nbfw_token t;

	group_make("pairwise", 1);
	t = token_of(0, EPOCH + 1);
	token_comes(&t, NBFW_USED); /* before the host has arrived */
	token_comes(&t, NBFW_DUPLICATE);
	t.epoch = EPOCH;
	token_comes(&t, NBFW_STALE);
	t.epoch = EPOCH + 9;
	token_comes(&t, NBFW_BAD);
	t.epoch = EPOCH + 1;
	t.src++;
	token_comes(&t, NBFW_BAD);
	t = token_of(0, EPOCH + 1);
	t.slot += NBFW_FIXED_SLOTS; /* the sender is that of slot 0 */
	token_comes(&t, NBFW_BAD);
	post_goes(); /* step 0 has its token: two steps' sends leave */
	t = token_of(2, EPOCH + 1);
	token_comes(&t, NBFW_USED); /* of a later step */
	t = token_of(1, EPOCH + 1);
	token_comes(&t, NBFW_USED); /* completes */
	assert_int_equal(completion()->word, EPOCH + 1);
	assert_false(is_wanted());
}

/* A step of more than one send: the packet in hand is cloned. */
static void clones_carry_all_sends_but_the_last(void **unused)
{
	group_make("dissemination:3", 2);
	assert_true(nbfw_plan_steps(g.plan)[0].nsend == 3 && g.plan->nstep > 1);
	post_goes();
	tokens_come();
	assert_int_equal(completion()->word, EPOCH + 1);
	/* In step 0 of the root no send goes, and in the last step of the others, none waits. */
	completion()->word = EPOCH;
	group_make("linear", 0);
	post_goes();
	tokens_come();
	assert_int_equal(completion()->word, EPOCH + 1);
}

static void strangers_and_malformed_frames_pass(void **unused)
{
	static const struct {
		const char *what;
		uint32_t at;
		uint8_t flip;
	} wrong[] = {
		{ "another host", 5, 1 },           { "another NIC sends", 11, 1 },
		{ "another NIC sends", 6, 0x80 },   { "another ethertype", AT_PROTOCOL, 1 },
		{ "a VLAN's", AT_PROTOCOL, 9 },     { "version 1", AT_VERSION, 3 },
		{ "version 3", AT_VERSION, 1 },     { "a PULL", AT_TYPE, 3 },
		{ "no type", AT_TYPE, 1 },          { "reserved", AT_RESERVED, 1 },
		{ "reserved", AT_RESERVED + 1, 1 }, { "another generation", AT_HANDLE + 2, 1 },
		{ "another index", AT_HANDLE, 1 },  { "an index too large", AT_HANDLE + 1, 0x40 },
		{ "cookie", AT_COOKIE, 1 },         { "cookie", AT_COOKIE + 7, 0x80 },
		{ "sender", AT_SENDER, 1 },         { "sender", AT_SENDER + 3, 0x80 },
	};
	struct nbfw_token t;

	group_make("pairwise", 1);
	t = token_of(0, EPOCH + 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		token_put(&t);
		packet[wrong[i].at] ^= wrong[i].flip;
		in_passes(wrong[i].what);
	}
	token_put(&t);
	for (length = KERNEL_ETHER; length < FRAME; length++)
		in_passes("short");
	for (length = FRAME + 1; length < FRAME + 40; length++)
		in_passes("long");
	token_put(&t); /* in-line tag of a VLAN: nobody has taken it off */
	memmove(packet + AT_PROTOCOL + 4, packet + AT_PROTOCOL, FRAME - AT_PROTOCOL);
	memcpy(packet + AT_PROTOCOL, (const uint8_t[]){ 0x81, 0, 0, 7 }, 4);
	length += 4;
	in_passes("a tagged frame");
	/* A group of which the daemon has the state. */
	assert_true(lend_soon(false, 0));
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	token_put(&t);
	in_passes("not lent");
	assert_true(lend_soon(false, 0));
	token_comes(&t, NBFW_USED);
}

static void send_other_end(uint16_t vlan)
{
	const struct nbfw_token t = token_of(0, EPOCH + 1);
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_ifindex = (int)if_nametoindex("v1") };

	token_put(&t);
	if (vlan != UINT16_MAX) {
		memmove(packet + AT_PROTOCOL + 4, packet + AT_PROTOCOL, FRAME - AT_PROTOCOL);
		memcpy(packet + AT_PROTOCOL,
		       (const uint8_t[]){ 0x81, 0, (uint8_t)(vlan >> 8), (uint8_t)vlan }, 4);
		length += 4;
	}
	assert_int_equal(sendto(other_end, packet, length, 0, (struct sockaddr *)&at, sizeof(at)),
			 length);
}

static bool has_received(void)
{
	return in_kernel().counts.received > 0;
}

/* The kernel moves the tag of a frame that comes in to the metadata. Frames of a VLAN are not for
 * this interface. */
static void frames_of_a_vlan_pass(void **unused)
{
	group_make("pairwise", 1);
	send_other_end(7);
	send_other_end(0); /* a priority alone: rare, so the daemon takes it */
	send_other_end(UINT16_MAX);
	assert_true(soon(has_received));
	assert_int_equal(in_kernel().counts.received, 1);
	assert_int_equal(in_kernel().counts.duplicate, 0);
}

/* --- timers, and hands -------------------------------------------------------------------------
 */

static bool is_marked(void)
{
	return w->wanted[INDEX];
}

static bool step_is_seen(void)
{
	return in_kernel().tick_step == s_now()->step;
}

static bool timer_is_off(void)
{
	return !in_kernel().ticking;
}

static void a_timer_wants_groups_without_progress(void **unused)
{
	static const struct nbfw_event start = { .type = NBFW_EV_START };
	struct nbfw_action a;
	struct nbfw_token t;

	group_make("pairwise", 1);
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	nbfw_step(s_now(), g.plan, &start, &a);
	assert_true(lend_soon(false, 1000000));
	assert_true(in_kernel().ticking);
	assert_true(soon(is_marked) && is_wanted() == KERNEL_TIMEOUT);
	assert_false(in_kernel().ticking);
	/* Progress, here a step: it looks again. */
	first_ns = 50000000;
	group_make("pairwise", 1);
	post_goes();
	t = token_of(0, EPOCH + 1);
	token_comes(&t, NBFW_USED);
	assert_true(soon(step_is_seen));
	assert_true(soon(is_marked) && is_wanted());
	/* And a barrier. */
	group_make("pairwise", 1);
	tokens_come();
	post_goes();
	post_goes();
	assert_true(soon(is_marked) && is_wanted());
	assert_int_equal(in_kernel().tick_epoch, EPOCH + 2);
	first_ns = UINT64_C(3600000000000);
	/* It ends with its barrier, or when the daemon has the group. */
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	assert_true(lend_soon(false, 1000000));
	assert_true(in_kernel().first_ns == first_ns); /* of each time */
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	assert_true(soon(timer_is_off));
	assert_false(is_wanted());
	/* The post of a barrier begins it; not while it runs. */
	group_make("pairwise", 1);
	assert_false(in_kernel().ticking);
	completion()->word = EPOCH;
	post_goes();
	assert_true(in_kernel().ticking);
	tokens_come();
	post_goes();
	assert_true(in_kernel().ticking);
	assert_int_equal(in_kernel().tick_epoch, EPOCH + 1);
}

static void hands_are_checked(void **unused)
{
	struct kernel_hand h = { .index = KERNEL_GROUPS };

	group_make("pairwise", 1);
	memcpy(packet, &h, sizeof(h));
	length = sizeof(h);
	assert_int_equal(run("kernel_hand"), DROP);
	length--;
	packet[16] = INDEX, packet[17] = 0;
	assert_int_equal(run("kernel_hand"), DROP);
	assert_true(in_kernel().lent);
	length++;
	assert_int_equal(run("kernel_hand"), PASS);
	assert_false(in_kernel().lent);
}

/* --- what the wire lends ------------------------------------------------------------------------
 */

static void some_groups_stay_with_the_daemon(void **unused)
{
	static const struct wire_auth key;
	const uint64_t cell = (uint64_t)PORT << 32 | CELL, next = cell + 1;
	struct nbnic_addr far;
	uint32_t index;

	group_make("pairwise", 1);
	kernel_take(&w->base, &g, &(struct wire_counts){ 0 });
	g.handle = 1u << 16 | KERNEL_GROUPS;
	assert_false(lend(false, 0));
	g.handle = HANDLE + 0x10000; /* a new group of this index */
	far = peer[send_peer[0]].addr;
	memcpy(peer[send_peer[0]].addr.byte, w->mac, ETH_ALEN);
	assert_false(lend(false, 0)); /* a member of this NIC */
	peer[send_peer[0]].addr = far;
	w->base.auth = &key;
	assert_false(lend(false, 0));
	w->base.auth = NULL;
	g.port = PORT + 1;
	assert_false(lend(false, 0)); /* the port has no start socket */
	g.port = PORT;
	((struct nbar_plan *)plan)->nstep = NBFW_FIXED_STEPS + 1;
	assert_false(lend(false, 0));
	group_make("pairwise", 1);
	/* The cell of a group that has ended leads to no group. */
	g.handle += 0x10000;
	g.cell++;
	assert_true(lend_soon(false, 0));
	assert_true(bpf_map_lookup_elem(w->cells, &cell, &index) < 0);
	assert_int_equal(bpf_map_lookup_elem(w->cells, &next, &index), 0);
	assert_int_equal(index, INDEX);
	/* Unless another group has it by now. */
	index = INDEX + 1;
	assert_int_equal(bpf_map_update_elem(w->cells, &next, &index, 0), 0);
	g.handle += 0x10000;
	g.cell--;
	assert_true(lend_soon(false, 0));
	assert_int_equal(bpf_map_lookup_elem(w->cells, &next, &index), 0);
	assert_int_equal(index, INDEX + 1);
}

/* After the end of a port, its start socket starts nothing. */
static void ended_ports_post_nothing(void **unused)
{
	const struct nbar_start post = { .cell = CELL, .posted = EPOCH + 1 };
	int fd[2], kept;

	group_make("pairwise", 1);
	assert_true(kernel_port_fds(&w->base, PORT, fd));
	kept = dup(fd[1]);
	kernel_port_end(&w->base, PORT);
	assert_int_equal(send(kept, &post, sizeof(post), 0), sizeof(post));
	assert_int_equal(in_kernel().counts.sent, 0);
	assert_false(kernel_port_fds(&w->base, PORT, fd));
	close(kept);
}

/* If an open fails, it closes its own descriptors, and no others. */
static void other_devices(void **unused)
{
	static char names[][8] = { "none9", "v0" };
	const uint32_t was = unit_descriptors();
	struct wire_base *base = NULL;

	for (int i = 0; i < 2; i++) {
		said_begin();
		assert_true(kernel_open("n7", option_of, names[i], &base) < 0);
		assert_non_null(
			strstr(said_end(), i ? "another NIC has interface v0" : "of name none9"));
		assert_null(base);
		assert_int_equal(unit_descriptors(), was);
	}
}

static const char *release; /* of the kernel; NULL: the true one */
int __real_uname(struct utsname *name);
int __wrap_uname(struct utsname *name)
{
	int rc = __real_uname(name);

	if (release)
		snprintf(name->release, sizeof(name->release), "%s", release);
	return rc;
}

static void values_need_linux_6_18(void **unused)
{
	static const struct {
		const char *release;
		bool takes;
	} cases[] = {
		{ "5.19.0", false },    { "6.17.9", false }, { "6.18.0", true },
		{ "6.19.0-rc1", true }, { "7.0.0", true },   { "next", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		release = cases[i].release;
		require(kernel_takes_values() == cases[i].takes, "%s", release);
	}
	release = NULL;
}

/* --- what the daemon takes ----------------------------------------------------------------------
 */

static void addresses_are_shown(void **unused)
{
	const struct nbnic_addr a = address_of(2);
	char text[64];

	kernel_show(&w->base, &a, text, sizeof(text));
	assert_string_equal(text, "02:00:00:00:00:0c");
	kernel_show(&w->base, &w->base.addr, text, sizeof(text));
	assert_true(strncmp(w->base.text, "v0 ", 3) == 0);
	assert_string_equal(w->base.text + 3, text);
}

/* A NIC without groups: each frame is of a stranger. */
static void polls_are_bounded(void **unused)
{
	static struct nbnic nic;
	const uint64_t *strangers = &nic.counter[NBAR_COUNTER_frames_stranger];
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_ifindex = (int)if_nametoindex("v1") };
	struct nbfw_token t = { .type = NBFW_TOKEN };
	unsigned n = 0;

	while (kernel_poll(&w->base, &nic, 0, 8) > 0)
		;
	nic.counter[NBAR_COUNTER_frames_stranger] = 0;
	/* Those to itself have half of the budget. */
	for (uint32_t i = 0; i < KERNEL_LOOP; i++)
		assert_true(kernel_transmit(&w->base, &w->base.addr, &t));
	w->base.refused = 0;
	assert_false(kernel_transmit(&w->base, &w->base.addr, &t));
	assert_int_equal(w->base.refused, 1);
	assert_int_equal(kernel_poll(&w->base, &nic, 0, 8), 4);
	assert_int_equal(*strangers, 4);
	assert_int_equal(kernel_poll(&w->base, &nic, 0, 4 * KERNEL_LOOP), KERNEL_LOOP - 4);
	assert_int_equal(*strangers, KERNEL_LOOP);
	assert_int_equal(kernel_poll(&w->base, &nic, 0, 8), 0);
	/* Of two others', one is for this interface. */
	group_begin("pairwise", 1, 0);
	t = token_of(0, EPOCH + 1);
	t.cookie++;
	for (int i = 0; i < 2; i++) {
		token_put(&t);
		packet[5] ^= (uint8_t)i;
		assert_int_equal(
			sendto(other_end, packet, length, 0, (const void *)&at, sizeof(at)),
			length);
	}
	for (int i = 0; i < 5000 && n < 2; i++) {
		unsigned got = kernel_poll(&w->base, &nic, 0, 1);

		assert_in_range(got, 0, 1);
		n += got;
		usleep(got ? 0 : 1000);
	}
	assert_int_equal(n, 2);
	assert_int_equal(*strangers, KERNEL_LOOP + 1);
}

/* The socket has no room: the NIC sends again. Another error: the frame is lost. */
static void frames_that_do_not_leave(void **unused)
{
	const struct nbfw_token t = { .type = NBFW_TOKEN };
	const struct nbnic_addr to = address_of(2);
	const int kept = w->fd;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	w->base.refused = w->base.errors = 0;
	w->fd = pair[0];
	while (kernel_transmit(&w->base, &to, &t))
		;
	assert_true(w->base.refused == 1 && w->base.errors == 0);
	close(pair[1]);
	assert_true(kernel_transmit(&w->base, &to, &t));
	assert_true(w->base.refused == 1 && w->base.errors == 1);
	w->fd = kept;
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tokens_step_the_engine),
		TEST(clones_carry_all_sends_but_the_last),
		TEST(strangers_and_malformed_frames_pass),
		TEST(frames_of_a_vlan_pass),
		TEST(a_timer_wants_groups_without_progress),
		TEST(hands_are_checked),
		TEST(some_groups_stay_with_the_daemon),
		TEST(ended_ports_post_nothing),
		TEST(other_devices),
		TEST(values_need_linux_6_18),
		TEST(addresses_are_shown),
		TEST(polls_are_bounded),
		TEST(frames_that_do_not_leave),
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
