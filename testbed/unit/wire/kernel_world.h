/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_world.h - the wire "kernel", with its programs, in a network namespace; a group whose
 * state the engine of this process steps beside the programs; and packets for them
 * (BPF_PROG_TEST_RUN). With WORLD_IP defined as 4 or 6, frames are in datagrams of this version.
 */
#ifndef NBAR_TEST_KERNEL_WORLD_H
#define NBAR_TEST_KERNEL_WORLD_H

#include <sched.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "kernel/kernel.c"
#include "kernel/groups.c"
#include "kernel/open.c"
#include "kernel/ports.c"

#ifndef WORLD_IP
#define VALUE_UNIT 1u /* of bytes of values */
#define AT_FRAME KERNEL_ETHER
#define ETHERTYPE NBFW_ETHER_TYPE
#elif WORLD_IP == 4
#define VALUE_UNIT KERNEL_VALUE_UNIT
#define AT_FRAME KERNEL_UDP4
#define ETHERTYPE 0x0800
#define IP_SIZE KERNEL_IP4
#define SELF "192.0.2.1:7000"
#else
#define VALUE_UNIT KERNEL_VALUE_UNIT
#define AT_FRAME KERNEL_UDP6
#define ETHERTYPE 0x86dd
#define IP_SIZE KERNEL_IP6
#define IPV6
#define SELF "[2001:db8::1]:7000"
#endif
#define FRAME (AT_FRAME + NBFW_FRAME_SIZE)
#define PORT 3u
#define CELL 5u
#define INDEX 7u
#define HANDLE (9u << 16 | INDEX)
#define COOKIE UINT64_C(0x1122334455667788)
#define SIZE 8u
#define VALUES 6u /* where the host finds results */
#define EPOCH 40u /* completed before a test begins */
#define RANGE 16u /* of cookies */
/* Verdicts: TC_ACT_*. */
enum { PASS = 0, DROP = 2, REDIRECT = 7 };
#define NEXT UINT32_MAX /* what other programs of the interface say */
/* In the frame, and in the packet of a post. */
enum {
	AT_PROTOCOL = 12,
	AT_VERSION = AT_FRAME,
	AT_TYPE = AT_FRAME + 1,
	AT_RESERVED = AT_FRAME + 2,
	AT_HANDLE = AT_FRAME + 4,
	AT_COOKIE = AT_FRAME + 8,
	AT_EPOCH = AT_FRAME + 20,
	AT_SENDER = AT_FRAME + 36,
	AT_IP = 14,
	AT_UDP = 34,
	AT_POST = 42,
	POST = AT_POST + sizeof(struct nbar_start)
};

static struct kernel_wire *w;
static struct nbnic_group g;
static struct nbnic_peer peer[SIZE];
static uint16_t send_peer[32], recv_peer[32];
static _Alignas(8) uint8_t plan[2048], state[KERNEL_STATE_SIZE], values[32768];
static uint8_t packet[2048]; /* goes in; and comes out */
static size_t length;
static int other_end; /* a packet socket on the other interface */
static uint32_t mark; /* of the packet */
static unsigned long rung_before;
static uint64_t first_ns;

static inline const char *option_of(void *args, const char *key)
{
#ifdef WORLD_IP
	if (strcmp(key, "bind") == 0)
		return SELF;
#endif
	return strcmp(key, "dev") == 0 ? args : NULL;
}

static inline struct nbfw_state *s_now(void)
{
	return (struct nbfw_state *)state;
}

static inline struct kernel_group in_kernel(void)
{
	const uint32_t index = INDEX;
	struct kernel_group k;

	assert_int_equal(bpf_map_lookup_elem(w->groups, &index, &k), 0);
	return k;
}

/* --- the group ------------------------------------------------------------------------------- */

static inline bool lend(bool sleeper, uint64_t left_ns)
{
	const struct wire_lend how = { .first_ns = first_ns,
				       .left_ns = left_ns,
				       .sleeper = sleeper,
				       .values = g.values ? VALUES + 1 : 0 };

	return kernel_lend(&w->base, &g, &how);
}

/* A busy kernel may refuse the timer's memory for some milliseconds. A NIC tries again, too. */
static inline bool lend_soon(bool sleeper, uint64_t left_ns)
{
	for (int i = 0; i < 5000 && !lend(sleeper, left_ns); i++)
		usleep(1000);
	return in_kernel().lent;
}

/* Of the NIC of member i. */
static inline struct nbnic_addr address_of(uint32_t i)
{
	const uint8_t last = (uint8_t)(10 + i);

#ifndef WORLD_IP
	return (struct nbnic_addr){ { 2, 0, 0, 0, 0, last } };
#elif WORLD_IP == 4
	return (struct nbnic_addr){ { 4, 0, 0x10, last, 192, 0, 2, last } };
#else
	return (struct nbnic_addr){ { 6, 0, 0x10, last, 0x20, 1, 0xd, 0xb8, [19] = last } };
#endif
}

/* A group of SIZE members, of which this is member `rank`; its barriers may carry values. */
static inline void group_begin(const char *alg, uint32_t rank, uint32_t value_max)
{
	const struct nbar_plan *p = (const struct nbar_plan *)plan;
	struct nbfw_alg a;

	assert_int_equal(nbfw_alg_parse(alg, &a), 0);
	assert_in_range(nbfw_plan_generate(a, SIZE, rank, plan, sizeof(plan)), 1, sizeof(plan));
	memset(state, 0, sizeof(state));
	nbfw_init(s_now(), p, EPOCH);
	g = (struct nbnic_group){
		.handle = HANDLE,
		.cookie = COOKIE,
		.rank = rank,
		.state = s_now(),
		.plan = p,
		.peer = peer,
		.send_peer = send_peer,
		.recv_peer = recv_peer,
		.port = PORT,
		.cell = CELL,
	};
	for (uint32_t i = 0; i < SIZE; i++)
		peer[i] = (struct nbnic_peer){
			.rank = i, .handle = 100 + i, .cookie = 1000 + i, .addr = address_of(i)
		};
	for (uint32_t i = 0; i < p->nsend; i++)
		send_peer[i] = (uint16_t)nbfw_plan_sends(p)[i].dst;
	for (uint32_t i = 0; i < p->nrecv; i++)
		recv_peer[i] = (uint16_t)nbfw_plan_recvs(p)[i].src;
	w->handle[INDEX] = 0; /* a group of another test */
	if (value_max == 0)
		return;
	assert_in_range(nbfw_values_size(p, value_max), 1, sizeof(values));
	memset(values, 0, sizeof(values));
	g.values = (struct nbfw_values *)values;
	nbfw_values_init(g.values, a, p, value_max);
}

/* The programs have it. */
static inline void group_make(const char *alg, uint32_t rank)
{
	group_begin(alg, rank, 0);
	assert_true(lend_soon(false, 0));
}

static inline struct nbar_completion *completion(void)
{
	return &w->port[PORT].results->completion[CELL];
}

static inline bool bell_rang(void)
{
	unsigned long rung = __atomic_load_n(w->rung, __ATOMIC_ACQUIRE);
	bool rang = rung != rung_before;

	rung_before = rung;
	return rang;
}

static inline uint64_t is_wanted(void)
{
	return __atomic_exchange_n(&w->wanted[INDEX], 0, __ATOMIC_ACQ_REL);
}

/* --- packets --------------------------------------------------------------------------------- */

static inline uint32_t run(const char *program)
{
	struct __sk_buff context = { .ifindex = w->ifindex, .mark = mark };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = packet, .data_size_in = (uint32_t)length,
		    .data_out = packet, .data_size_out = sizeof(packet), .ctx_in = &context,
		    .ctx_size_in = sizeof(context), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(program_fd(w, program), &o), 0);
	return o.retval;
}

/* The token of this slot for an epoch, from the NIC that fills it. */
static inline struct nbfw_token token_of(uint32_t slot, uint32_t epoch)
{
	const struct nbnic_peer *from = &peer[recv_peer[slot]];

	return (struct nbfw_token){ .type = NBFW_TOKEN,
				    .handle = HANDLE,
				    .cookie = COOKIE,
				    .src = from->rank,
				    .epoch = epoch,
				    .slot = slot,
				    .arg = NBAR_RANK_NONE,
				    .sender = from->handle };
}

static inline void word_put(uint8_t *at, uint16_t word)
{
	at[0] = (uint8_t)(word >> 8);
	at[1] = (uint8_t)word;
}

#ifdef WORLD_IP
/* Adds up words of a packet. */
static inline uint16_t sum_of(const uint8_t *at, size_t size, uint32_t sum)
{
	for (size_t i = 0; i < size; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static inline uint16_t word_at(uint32_t at)
{
	return (uint16_t)(packet[at] << 8 | packet[at + 1]);
}

enum {
	AT_FROM = KERNEL_AT_IP(AT_FRAME, IP_SIZE),
	AT_TO = AT_FROM + IP_SIZE,
	AT_PORTS = KERNEL_AT_PORT(AT_FRAME),
	AT_SUM = KERNEL_AT_SUM(AT_FRAME),
	AT_ID = WORLD_IP == 4 ? 18 : 15
};

/* Of a datagram: the sum of its pseudo-header, and its checksum. */
static inline uint16_t sum_begun(const uint8_t *at, size_t size)
{
	return sum_of(at + AT_FROM, 2 * IP_SIZE, 17 + (uint32_t)size - AT_PORTS);
}

static inline void sum_put(uint8_t *at, size_t size)
{
	uint16_t sum;

	word_put(at + AT_SUM, 0);
	sum = (uint16_t)~sum_of(at + AT_PORTS, size - AT_PORTS, sum_begun(at, size));
	word_put(at + AT_SUM, sum ? sum : 0xffff);
}

/* By the NIC that it goes to: the id of IPv4, or the label of IPv6: any number. */
static uint8_t ip_id[SIZE][3];

/* As the kernel writes the headers of this datagram: no option, no fragment. */
static inline void datagram_put(uint8_t *at, const struct nbnic_addr *to,
				const struct nbnic_addr *from, size_t size)
{
	const uint8_t last = to->byte[3 + IP_SIZE];

#if WORLD_IP == 4
	static const uint8_t ip[] = { 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0 };
#else
	static const uint8_t ip[] = { 0x60, 0, 0, 0, 0, 0, 17, 64 };
#endif
	memcpy(at + AT_IP, ip, sizeof(ip));
	if (last >= 10)
		memcpy(at + AT_ID, ip_id[last - 10], sizeof(ip_id[0]));
	memcpy(at + AT_FROM, from->byte + 4, IP_SIZE);
	memcpy(at + AT_TO, to->byte + 4, IP_SIZE);
#if WORLD_IP == 4
	word_put(at + AT_IP + 2, (uint16_t)(size - KERNEL_ETHER));
	word_put(at + AT_IP + 10, (uint16_t)~sum_of(at + AT_IP, 20, 0));
#else
	word_put(at + AT_IP + 4, (uint16_t)(size - AT_PORTS));
#endif
	memcpy(at + AT_PORTS, from->byte + 2, 2);
	memcpy(at + AT_PORTS + 2, to->byte + 2, 2);
	word_put(at + AT_PORTS + 4, (uint16_t)(size - AT_PORTS));
	sum_put(at, size);
}

/* The daemon sends a frame to each NIC: from here on, the programs know how they go. */
static inline int routes_make(void)
{
	const struct nbfw_token t = { .type = NBFW_PROBE };

	for (uint32_t i = 0; i < SIZE; i++) {
		const struct nbnic_addr to = address_of(i);

		if (!kernel_transmit(&w->base, &to, &t) ||
		    recv(other_end, packet, sizeof(packet), 0) != FRAME)
			return -1;
		memcpy(ip_id[i], packet + AT_ID, sizeof(ip_id[i]));
	}
	return 0;
}
#else
static inline int routes_make(void)
{
	return 0;
}
#endif

static inline void frame_put(uint8_t *at, const struct nbnic_addr *to,
			     const struct nbnic_addr *from, const struct nbfw_token *t)
{
	nbfw_token_pack(t, at + AT_FRAME);
	word_put(at + AT_PROTOCOL, ETHERTYPE);
#ifdef WORLD_IP
	const uint8_t mac[] = { 2, 0, 0, 0, 0, to->byte[3 + IP_SIZE] };

	memcpy(at, to == &w->base.addr ? w->mac : mac, ETH_ALEN);
	memcpy(at + ETH_ALEN, w->mac, ETH_ALEN);
	datagram_put(at, to, from, FRAME + t->value_length);
#else
	memcpy(at, to->byte, ETH_ALEN);
	memcpy(at + ETH_ALEN, from->byte, ETH_ALEN);
#endif
}

static inline void token_put(const struct nbfw_token *t)
{
	frame_put(packet, &w->base.addr, &peer[recv_peer[t->slot % NBFW_FIXED_SLOTS]].addr, t);
	length = FRAME + t->value_length;
	mark = 0;
}

/* As the kernel makes the packet of a start socket. */
static inline void post_put(uint32_t posted, uint32_t sleeps)
{
	static const uint8_t headers[AT_POST] = { 1,
						  0,
						  0x5e,
						  0,
						  0,
						  0x73,
						  2,
						  0,
						  0,
						  0,
						  0,
						  1,
						  8,
						  0,
						  0x45,
						  0,
						  0,
						  48,
						  0,
						  1,
						  0x40,
						  0,
						  1,
						  17,
						  0,
						  0,
						  192,
						  0,
						  2,
						  1,
						  224,
						  0,
						  0,
						  115,
						  0x80,
						  0,
						  KERNEL_UDP_PORT >> 8,
						  KERNEL_UDP_PORT & 0xff,
						  0,
						  28,
						  0,
						  0 };
	const struct nbar_start post = { .cell = CELL,
					 .posted = posted,
					 .sleeps = sleeps,
					 .values = g.values != NULL,
					 .reserved = 2 };

	memcpy(packet, headers, sizeof(headers));
	memcpy(packet + AT_POST, &post, sizeof(post));
	length = POST;
	mark = KERNEL_MARK;
}

static inline uint64_t cookie_new(void)
{
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size), 0);
	close(fd);
	return cookie;
}

/* The socket of a packet of BPF_PROG_TEST_RUN is new: its cookie is the next of this processor,
 * which has 4096 at a time. */
static inline uint32_t run_out(void)
{
	const uint32_t port = PORT;
	uint32_t verdict;
	uint64_t first;

	do
		first = cookie_new() + 1;
	while (first % 4096 + RANGE >= 4096);
	for (uint64_t c = first; c < first + RANGE; c++)
		assert_int_equal(bpf_map_update_elem(w->ports, &c, &port, 0), 0);
	verdict = run(g.values ? "kernel_out_value" : "kernel_out");
	for (uint64_t c = first; c < first + RANGE; c++)
		bpf_map_delete_elem(w->ports, &c);
	return verdict;
}

/* The next frame that has left by the interface. */
static inline bool left(uint8_t *frame)
{
	return recv(other_end, frame, 2048, MSG_DONTWAIT) >= 0;
}

/* True if f() holds within some seconds. */
static inline bool soon(bool (*f)(void))
{
	for (int i = 0; i < 5000 && !f(); i++)
		usleep(1000);
	return f();
}

/* The sends of this action, and no others, have left: the last is the packet in hand. */
static inline void sends_are(const struct nbfw_action *a, uint32_t verdict, uint32_t last)
{
	uint8_t wanted[2048], frame[2048];
	size_t size = FRAME;

	for (uint32_t i = a->send_first; i < a->send_end; i++) {
		const struct nbnic_peer *to = &peer[send_peer[i]];
		struct nbfw_token t = { .type = NBFW_TOKEN,
					.handle = to->handle,
					.cookie = to->cookie,
					.src = g.rank,
					.epoch = a->send_epoch,
					.slot = nbfw_plan_sends(g.plan)[i].slot,
					.arg = NBAR_RANK_NONE,
					.sender = HANDLE };

		if (g.values)
			nbfw_values_at(g.values, in_kernel().send[i].step, &t);
		size = FRAME + t.value_length;
		frame_put(wanted, &to->addr, &w->base.addr, &t);
		if (i + 1 < a->send_end)
			assert_true(recv(other_end, frame, sizeof(frame), 0) == (ssize_t)size);
		else
			memcpy(frame, packet, size);
		assert_memory_equal(frame, wanted, size);
	}
	assert_false(left(frame));
	assert_int_equal(verdict, a->send_end > a->send_first ? last : DROP);
}

/* The programs have the state that the engine of this process has. */
static inline void state_is_same(void)
{
	struct kernel_group k = in_kernel();

	assert_memory_equal(k.state, state, sizeof(state));
}

/* A token comes in: the verdict of the engine, its sends and its completion are those of here. */
static inline void token_comes(const struct nbfw_token *t, enum nbfw_verdict verdict)
{
	const struct kernel_counts before = in_kernel().counts;
	struct kernel_counts after;
	struct nbfw_action a;

	token_put(t);
	if (g.values)
		assert_int_equal(nbfw_values_take(g.values, s_now(), g.plan, t), NBFW_VALUE_FITS);
	nbfw_step_token(s_now(), g.plan, t, &a);
	if (g.values && a.timer != NBFW_KEEP)
		nbfw_values_advance(g.values, s_now(), g.plan);
	assert_int_equal(a.verdict, verdict);
	sends_are(&a, run(g.values ? "kernel_in_value" : "kernel_in"), REDIRECT);
	state_is_same();
	after = in_kernel().counts;
	assert_int_equal(after.received - before.received, verdict == NBFW_USED);
	assert_int_equal(after.duplicate - before.duplicate, verdict == NBFW_DUPLICATE);
	assert_int_equal(after.stale - before.stale, verdict == NBFW_STALE);
	assert_int_equal(after.bad - before.bad, verdict == NBFW_BAD);
	assert_int_equal(after.sent - before.sent, a.send_end - a.send_first);
	assert_int_equal(after.completed - before.completed, a.complete);
	assert_int_equal((uint32_t)completion()->word, a.complete ? s_now()->epoch : EPOCH);
}

/* All tokens of the barrier come; the programs want nothing before the last one. */
static inline void tokens_come(void)
{
	for (uint32_t i = 0; i < g.plan->nrecv; i++) {
		const struct nbfw_token t = token_of(i, EPOCH + 1);

		assert_false(is_wanted());
		token_comes(&t, NBFW_USED);
	}
}

/* A post of the next barrier. */
static inline void post_goes(void)
{
	static const struct nbfw_event start = { .type = NBFW_EV_START };
	struct nbfw_action a;

	post_put(s_now()->epoch + 1, 0);
	nbfw_step(s_now(), g.plan, &start, &a);
	sends_are(&a, run_out(), PASS);
	state_is_same();
}

/* --- the world ------------------------------------------------------------------------------- */

static inline void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static inline int setup_all(void **unused)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETHERTYPE),
				  .sll_ifindex = (int)if_nametoindex("v1") };
	const struct timeval limit = { .tv_sec = 5 };
	static char dev[] = "v0";
	struct wire_base *base;

	wire_object_log = say;
	if (kernel_open("test", option_of, dev, &base) < 0)
		return -1;
	w = (struct kernel_wire *)base;
	other_end = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETHERTYPE));
#ifdef IPV6 /* nothing of the network itself */
	const struct sock_fprog udp = {
		4, (struct sock_filter[]){ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),
					   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 1),
					   BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
					   BPF_STMT(BPF_RET | BPF_K, 0) }
	};

	if (setsockopt(other_end, SOL_SOCKET, SO_ATTACH_FILTER, &udp, sizeof(udp)) < 0)
		return -1;
#endif
	return setsockopt(other_end, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	       bind(other_end, (struct sockaddr *)&at, sizeof(at)) < 0 || routes_make() < 0;
}

static inline int teardown_all(void **unused)
{
	close(other_end);
	kernel_close(&w->base);
	return 0;
}

static inline int setup(void **unused)
{
	assert_non_null(kernel_port_begin(&w->base, PORT));
	completion()->word = EPOCH;
	first_ns = UINT64_C(3600000000000);
	bell_rang();
	is_wanted();
	return 0;
}

static inline int teardown(void **unused)
{
	kernel_port_end(&w->base, PORT);
	return 0;
}

#ifdef IPV6
#define NETWORK \
	"sysctl -qw net.ipv6.conf.v1.disable_ipv6=1 && ip addr add 2001:db8::1/64 dev v0 nodad"
#define NEIGHBOUR "2001:db8::$(printf %x $n)"
#else
#define NETWORK "{ sysctl -qw net.ipv6.conf.all.disable_ipv6=1; ip addr add 192.0.2.1/24 dev v0; }"
#define NEIGHBOUR "192.0.2.$n"
#endif

/* Makes the network. Returns why that, or a program, is not to be had; or NULL. */
static inline const char *cannot(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 4, 1, NULL);
	unsigned major = 0, minor = 0;
	struct utsname name;
	cpu_set_t one;

	if (map < 0)
		return "this user may load no programs (run as root)";
	close(map);
	uname(&name);
	if (sscanf(name.release, "%u.%u", &major, &minor) != 2 || major * 100 + minor < 606)
		return "this kernel is older than Linux 6.6";
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	if (unshare(CLONE_NEWNET) < 0 || sched_setaffinity(0, sizeof(one), &one) < 0 ||
	    system("exec 2>/dev/null; ip link add v0 type veth peer name v1 && " NETWORK
		   " && ip link set v1 up && ip link set v0 up && for n in 2 $(seq 10 17); do "
		   "ip neigh add " NEIGHBOUR
		   " lladdr 02:00:00:00:00:$(printf %02x $n) dev v0 || exit; "
		   "done") != 0)
		return "no network namespace, or no pair of interfaces, is permitted";
	return NULL;
}

/* True, and said, if these tests must be skipped. */
static inline bool kernel_cannot(void)
{
	const char *why = cannot();

	if (why)
		printf("1..1\nok 1 - wire kernel # SKIP %s\n", why);
	return why;
}

#define TEST(f) UNIT_IN(f, setup, teardown)

#endif
