/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.c - frames on Ethernet, through a packet socket, or in UDP datagrams, through the socket
 * of wire udp; and programs in the kernel that run the barriers of groups that the NIC has lent
 * (programs.bpf.c).
 *
 * libnbar-wire-kernel.so, which the daemon loads. The socket gets the frames that the programs let
 * through. Called by the polling thread, but open, close and the functions of ports.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "auth.h"
#include "nbar_host.h"
#include "lent.h"
#include "log.h"
#include "object.h"
#include "udp.h"
#include "wire_build.h"

#define KIND_UDP 3u
#define ROUTE_NS UINT64_C(10000000000) /* for which the headers of a datagram hold */
#define LOOP 1024u /* frames that a NIC may have sent to itself; a power of two */
#define FRAME_MAX (KERNEL_ETHER + WIRE_FRAME_MAX)
#define FROM_TCX_IN 46 /* BPF_TCX_INGRESS, which older headers lack; the next is BPF_TCX_EGRESS */

struct kernel_port {
	int map, socket; /* what its hosts get */
	uint64_t cookie;
	struct nbar_results *results; /* NULL: no group of the port is lent */
};

struct kernel_wire {
	union {
		struct wire_base base;
		struct udp_wire udp; /* its socket is -1 if frames are on Ethernet */
	};
	uint32_t headers; /* bytes before a frame: KERNEL_ETHER, ... */
	int fd, epoll;    /* fd: if frames are in datagrams, it only holds the interface */
	uint32_t ifindex;
	uint8_t mac[ETH_ALEN];
	struct bpf_object *object;
	int link[4], hand, groups, ports, cells, pages, bell;
	int routes; /* to NICs, as the programs have seen them; negative: frames are on Ethernet */
	/* The bell, a ring of the kernel: how far the daemon has read, and how far there is. */
	unsigned long *heard, *rung;
	uint64_t *wanted; /* of each group: the programs want the daemon to take it */
	uint8_t (*values)[KERNEL_VALUES_SIZE]; /* of each group; NULL: the programs take none */
	uint32_t handle[KERNEL_GROUPS];        /* that the programs know */
	uint64_t cell[KERNEL_GROUPS];          /* the key of the group in `cells` */
	uint64_t tried[KERNEL_GROUPS];         /* handle and epoch when a route was missing */
	struct kernel_port port[NBAR_PORTS_MAX];
	/* Frames to itself: no switch sends a frame back to its sender. */
	uint32_t loop_head, loop_tail;
	struct nbfw_token loop[LOOP];
};

/* The programs, as clang has built them: for frames on Ethernet, and in datagrams of IPv4 and IPv6.
 */
extern const uint8_t programs[], programs_4[], programs_6[], programs_end[];
__asm__(".section .rodata\n"
	".balign 8\nprograms: .incbin \"" KERNEL_PROGRAMS ".bpf.o\"\n"
	".balign 8\nprograms_4: .incbin \"" KERNEL_PROGRAMS "4.bpf.o\"\n"
	".balign 8\nprograms_6: .incbin \"" KERNEL_PROGRAMS "6.bpf.o\"\nprograms_end:\n"
	".previous");

/* Of a socket that receives nothing. */
static const struct sock_fprog receives_none = { 1, &(struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
										  0) };

static bool is_udp(const struct kernel_wire *w)
{
	return w->headers != KERNEL_ETHER;
}

static uint32_t ip_size(const struct kernel_wire *w)
{
	return w->headers == KERNEL_UDP6 ? KERNEL_IP6 : KERNEL_IP4;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level, (void)format, (void)args;
	return 0;
}

static int map_fd(const struct kernel_wire *w, const char *name)
{
	return bpf_object__find_map_fd_by_name(w->object, name);
}

static int program_fd(const struct kernel_wire *w, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(w->object, name));
}

/* Memory of a map of the kernel, or NULL. */
static void *map_memory(int fd, size_t size, int prot, off_t at)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, at);

	return p == MAP_FAILED ? NULL : p;
}

static const char *const program_names[] = { "kernel_in", "kernel_in_value", "kernel_out_value",
					     "kernel_out" };

#define KERNEL_VALUES_SINCE "6.18"

/* The verifier of Linux 6.12 looks at the loops of these programs for minutes. */
static bool kernel_takes_values(void)
{
	unsigned major, minor, least[2];
	struct utsname name;

	uname(&name);
	return sscanf(KERNEL_VALUES_SINCE, "%u.%u", &least[0], &least[1]) == 2 &&
	       sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > least[0] || (major == least[0] && minor >= least[1]));
}

/* Tells the programs the address of the socket, and its cookie. 0 or negative errno. */
static int self_tell(const struct kernel_wire *w)
{
	struct bpf_map *map = bpf_object__find_map_by_name(w->object, ".rodata.self");
	struct kernel_self self = { 0 };
	socklen_t size = sizeof(self.cookie);

	if (!is_udp(w))
		return 0;
	memcpy(&self.at, w->base.addr.byte, sizeof(self.at));
	if (getsockopt(w->udp.fd, SOL_SOCKET, SO_COOKIE, &self.cookie, &size) < 0)
		return -errno;
	return bpf_map__set_initial_value(map, &self, sizeof(self));
}

/* values: with the programs of groups with values. */
static int object_load(struct kernel_wire *w, bool values)
{
	static const uint8_t *const begin[] = { programs, programs_4, programs_6, programs_end };
	const uint8_t *const *at = &begin[!is_udp(w) ? 0 : w->headers == KERNEL_UDP4 ? 1 : 2];
	int rc;
	bpf_object__close(w->object);
	w->object = bpf_object__open_mem(at[0], (size_t)(at[1] - at[0]), NULL);
	if (!w->object)
		return -errno;
	for (int i = 1; i <= 2; i++)
		bpf_program__set_autoload(
			bpf_object__find_program_by_name(w->object, program_names[i]), values);
	rc = self_tell(w);
	return rc < 0 ? rc : bpf_object__load(w->object);
}

static int programs_load(struct kernel_wire *w, const char *nic)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int rc, why = 0;

	libbpf_set_print(quiet);
	rc = kernel_takes_values() ? object_load(w, true) : -EOPNOTSUPP;
	if (rc < 0) {
		why = -rc;
		rc = object_load(w, false);
	}
	if (rc == 0 && why)
		log_error("nic %s: barriers with values run in the daemon, not in the kernel: %s; "
			  "the programs for them need Linux " KERNEL_VALUES_SINCE,
			  nic, strerror(why));
	if (rc < 0) {
		log_error(
			"nic %s: the kernel does not take the programs of wire kernel: %s; it must "
			"be Linux 6.6 or later, and the daemon needs CAP_BPF and CAP_NET_ADMIN",
			nic, strerror(-rc));
		return rc;
	}
	w->hand = program_fd(w, "kernel_hand");
	w->groups = map_fd(w, "groups");
	w->ports = map_fd(w, "ports");
	w->cells = map_fd(w, "cells");
	w->pages = map_fd(w, "pages");
	w->bell = map_fd(w, "bell");
	w->routes = map_fd(w, "routes");
	w->wanted = map_memory(map_fd(w, "wanted"), KERNEL_GROUPS * sizeof(uint64_t),
			       PROT_READ | PROT_WRITE, 0);
	w->heard = map_memory(w->bell, page, PROT_READ | PROT_WRITE, 0);
	w->rung = map_memory(w->bell, page, PROT_READ, (off_t)page);
	/* Each is asked before the next; what a start socket sends, goes no further than the last.
	 */
	for (int i = 0; i < 4; i++) {
		int fd = program_fd(w, program_names[i]);

		if (fd < 0)
			continue; /* not loaded */
		/* A link: the kernel removes the program when the daemon ends. */
		w->link[i] = bpf_link_create(fd, (int)w->ifindex,
					     (enum bpf_attach_type)(FROM_TCX_IN + i / 2), NULL);
		if (w->link[i] < 0) {
			rc = -errno;
			log_error(
				"nic %s: cannot attach a program to its interface: %s; wire kernel "
				"needs Linux 6.6 or later (tcx), and CAP_NET_ADMIN",
				nic, strerror(-rc));
			return rc;
		}
	}
	if (program_fd(w, program_names[1]) >= 0)
		w->values = map_memory(map_fd(w, "values"), KERNEL_VALUES * sizeof(*w->values),
				       PROT_READ | PROT_WRITE, 0);
	if (w->wanted && w->heard && w->rung)
		return 0;
	log_error("nic %s: cannot map what it shares with its programs: %s; look at the memory "
		  "that the daemon may have",
		  nic, strerror(errno));
	return -ENOMEM;
}

/* Only one packet socket of the interface can be in a group of one. No user without CAP_NET_RAW can
 * take its place. */
static int interface_take(const struct kernel_wire *w, const char *nic, const char *dev)
{
	const struct fanout_args one = { .id = (uint16_t)w->ifindex,
					 .type_flags = PACKET_FANOUT_HASH,
					 .max_num_members = 1 };
	int rc;

	if (setsockopt(w->fd, SOL_PACKET, PACKET_FANOUT, &one, sizeof(one)) == 0)
		return 0;
	rc = errno == ENOSPC ? -EBUSY : -errno;
	if (rc == -EBUSY)
		log_error("nic %s: another NIC has interface %s already; each needs its own", nic,
			  dev);
	else
		log_error("nic %s: cannot take interface %s: %s; look whether it is up, and "
			  "whether a program uses fanout group %u",
			  nic, dev, strerror(-rc), one.id);
	return rc;
}

static int interface_open(struct kernel_wire *w, const char *nic, const char *dev)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(KERNEL_TYPE) };
	struct ifreq hw = { 0 };
	int rc;

	w->ifindex = dev ? if_nametoindex(dev) : 0;
	if (w->ifindex == 0) {
		log_error("nic %s: wire kernel needs dev=NAME of a network interface%s%s", nic,
			  dev ? "; there is none of name " : "", dev ? dev : "");
		return -ENODEV;
	}
	at.sll_ifindex = (int)w->ifindex;
	snprintf(hw.ifr_name, sizeof(hw.ifr_name), "%s", dev);
	w->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->fd < 0 || bind(w->fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    ioctl(w->fd, SIOCGIFHWADDR, &hw) < 0) {
		rc = -errno;
		log_error("nic %s: no packet socket on %s: %s; the daemon needs CAP_BPF, "
			  "CAP_NET_ADMIN and CAP_NET_RAW",
			  nic, dev, strerror(-rc));
		return rc;
	}
	rc = interface_take(w, nic, dev);
	if (rc < 0)
		return rc;
	if (hw.ifr_hwaddr.sa_family != ARPHRD_ETHER && hw.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK) {
		log_error("nic %s: wire kernel cannot use interface %s: it has no Ethernet "
			  "headers; use wire=udp",
			  nic, dev);
		return -EPROTONOSUPPORT;
	}
	memcpy(w->mac, hw.ifr_hwaddr.sa_data, sizeof(w->mac));
	memcpy(w->base.addr.byte, w->mac, sizeof(w->mac));
	snprintf(w->base.text, sizeof(w->base.text), "%.40s %02x:%02x:%02x:%02x:%02x:%02x", dev,
		 w->mac[0], w->mac[1], w->mac[2], w->mac[3], w->mac[4], w->mac[5]);
	return 0;
}

/* The interface has this address. True also if nobody knows. */
static bool interface_has(const char *dev, const struct nbnic_addr *a, uint32_t ip)
{
	struct ifaddrs *list = NULL;
	bool has = getifaddrs(&list) < 0;

	for (const struct ifaddrs *i = list; i && !has; i = i->ifa_next) {
		const uint8_t *at = (const void *)i->ifa_addr;

		if (!at || strcmp(i->ifa_name, dev) != 0 ||
		    i->ifa_addr->sa_family != (ip == KERNEL_IP6 ? AF_INET6 : AF_INET))
			continue;
		at += ip == KERNEL_IP6 ? offsetof(struct sockaddr_in6, sin6_addr)
				       : offsetof(struct sockaddr_in, sin_addr);
		has = memcmp(at, a->byte + offsetof(struct kernel_address, ip), ip) == 0;
	}
	freeifaddrs(list);
	return has;
}

/* Frames are in datagrams: the packet socket gets none. */
static int datagrams_open(struct kernel_wire *w, const char *nic, wire_option *option, void *args)
{
	int rc;

	(void)setsockopt(w->fd, SOL_SOCKET, SO_ATTACH_FILTER, &receives_none,
			 sizeof(receives_none));
	rc = udp_begin(&w->udp, nic, option, args);
	w->base.kind = KIND_UDP;
	w->headers = w->udp.family == AF_INET6 ? KERNEL_UDP6 : KERNEL_UDP4;
	if (rc == 0 && !interface_has(option(args, "dev"), &w->base.addr, ip_size(w)))
		log_error("nic %s: barriers run in the daemon, not in the kernel: %s is not an "
			  "address of %s; name the interface that has it",
			  nic, w->base.text, option(args, "dev"));
	return rc;
}

static void kernel_forked(struct wire_base *base)
{
	const struct kernel_wire *w = (struct kernel_wire *)base;

	close(w->fd);
	close(w->udp.fd);
	close(w->epoll);
	for (int i = 0; i < 4; i++)
		close(w->link[i]);
}

static void kernel_close(struct wire_base *base)
{
	kernel_forked(base);
	bpf_object__close(((struct kernel_wire *)base)->object);
	free(base);
}

static int kernel_open(const char *nic, wire_option *option, void *args, struct wire_base **out)
{
	struct epoll_event in = { .events = EPOLLIN };
	struct kernel_wire *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	w->fd = w->epoll = w->udp.fd = -1;
	w->headers = KERNEL_ETHER;
	for (int i = 0; i < 4; i++)
		w->link[i] = -1;
	rc = interface_open(w, nic, option(args, "dev"));
	if (rc == 0 && (option(args, "bind") || option(args, "address")))
		rc = datagrams_open(w, nic, option, args);
	if (rc == 0)
		rc = programs_load(w, nic);
	if (rc == 0) {
		w->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, is_udp(w) ? w->udp.fd : w->fd, &in) < 0 ||
		    epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->bell, &in) < 0)
			rc = -errno;
	}
	if (rc < 0) {
		kernel_close(&w->base);
		return rc;
	}
	*out = &w->base;
	return 0;
}

/* --- frames ---------------------------------------------------------------------------------- */

static unsigned loop_take(struct kernel_wire *w, struct nbnic *nic, uint64_t now, unsigned most)
{
	unsigned n = 0;

	for (uint32_t end = w->loop_tail; w->loop_head != end && n < most; n++) {
		struct nbfw_token t = w->loop[w->loop_head++ % LOOP];

		nbnic_receive(nic, &w->base.addr, &t, now);
	}
	return n;
}

/* Hears the bell: takes back the groups that the programs want the NIC to take. */
static unsigned bell_hear(struct kernel_wire *w, struct nbnic *nic, uint64_t now)
{
	/* Pairs with the store of the kernel after a record. */
	unsigned long rung = __atomic_load_n(w->rung, __ATOMIC_ACQUIRE);

	if (rung == *w->heard)
		return 0;
	/* Before the words are read: the programs set a word before they ring. Either this sees the
	 * word, or a program that found the ring full sees this. */
	__atomic_store_n(w->heard, rung, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < KERNEL_GROUPS && i < nic->high; i++)
		if (__atomic_load_n(&w->wanted[i], __ATOMIC_RELAXED))
			nbnic_lend_wanted(nic, i,
					  (enum nbnic_want)__atomic_exchange_n(&w->wanted[i], 0,
									       __ATOMIC_ACQ_REL),
					  now);
	return 1;
}

_Static_assert(KERNEL_WAKE == (int)NBNIC_WANT_WAKE && KERNEL_TAKE == (int)NBNIC_WANT_TAKE &&
		       KERNEL_TIMEOUT == (int)NBNIC_WANT_TIMEOUT,
	       "the programs want what the NIC knows");

static unsigned kernel_poll(struct wire_base *base, struct nbnic *nic, uint64_t now,
			    unsigned budget)
{
	struct kernel_wire *w = (struct kernel_wire *)base;
	unsigned n = bell_hear(w, nic, now) + loop_take(w, nic, now, (budget + 1) / 2);

	if (is_udp(w))
		return n < budget ? n + wire_udp_ops.poll(base, nic, now, budget - n) : n;
	for (; n < budget; n++) {
		uint8_t frame[FRAME_MAX];
		struct sockaddr_ll who = { 0 };
		socklen_t size = sizeof(who);
		struct nbnic_addr from = { { 0 } };
		struct nbfw_token t;
		ssize_t length = recvfrom(w->fd, frame, sizeof(frame), MSG_DONTWAIT,
					  (struct sockaddr *)&who, &size);

		if (length < 0)
			break;
		if (length < (ssize_t)KERNEL_ETHER || who.sll_pkttype != PACKET_HOST)
			continue;
		memcpy(from.byte, frame + ETH_ALEN, ETH_ALEN);
		if (wire_frame_unpack(base, nic, &from, frame + KERNEL_ETHER,
				      (size_t)length - KERNEL_ETHER, &t))
			nbnic_receive(nic, &from, &t, now);
	}
	return n;
}

static void ether_header(const struct kernel_wire *w, const struct nbnic_addr *to, uint8_t *frame)
{
	memcpy(frame, to->byte, ETH_ALEN);
	memcpy(frame + ETH_ALEN, w->mac, ETH_ALEN);
	frame[2 * ETH_ALEN] = KERNEL_TYPE >> 8;
	frame[2 * ETH_ALEN + 1] = KERNEL_TYPE & 0xff;
}

static bool kernel_transmit(struct wire_base *base, const struct nbnic_addr *to,
			    const struct nbfw_token *t)
{
	struct kernel_wire *w = (struct kernel_wire *)base;
	uint8_t frame[FRAME_MAX];
	size_t length = KERNEL_ETHER;

	if (is_udp(w))
		return wire_udp_ops.transmit(base, to, t);
	if (memcmp(to->byte, w->mac, sizeof(w->mac)) == 0) {
		if (w->loop_tail - w->loop_head == LOOP) {
			base->refused++;
			return false;
		}
		w->loop[w->loop_tail++ % LOOP] = *t;
		return true;
	}
	ether_header(w, to, frame);
	length += wire_frame_pack(base, to, t, frame + KERNEL_ETHER);
	if (send(w->fd, frame, length, MSG_DONTWAIT) >= 0)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS) {
		base->refused++;
		return false;
	}
	base->errors++;
	return true;
}

static int kernel_wakes(const struct wire_base *base)
{
	return ((const struct kernel_wire *)base)->epoll;
}

static void kernel_show(const struct wire_base *base, const struct nbnic_addr *a, char *text,
			size_t size)
{
	if (is_udp((const struct kernel_wire *)base)) {
		wire_udp_ops.show(base, a, text, size);
		return;
	}
	snprintf(text, size, "%02x:%02x:%02x:%02x:%02x:%02x", a->byte[0], a->byte[1], a->byte[2],
		 a->byte[3], a->byte[4], a->byte[5]);
}

/* --- groups ---------------------------------------------------------------------------------- */

/* Writes the headers of datagrams to a NIC. False: none has left by this interface of late. */
static bool route_find(const struct kernel_wire *w, const struct nbnic_addr *to, uint8_t *header)
{
	const uint32_t ip = ip_size(w);
	struct kernel_address at;
	struct kernel_route route;

	memcpy(&at, to->byte, sizeof(at));
	/* The map may give its memory to another NIC while the kernel copies it. */
	if (bpf_map_lookup_elem(w->routes, &at, &route) < 0 ||
	    nbar_now_ns() - route.time > ROUTE_NS ||
	    memcmp(route.header + KERNEL_AT_IP(w->headers, ip) + ip, at.ip, ip) != 0 ||
	    memcmp(route.header + KERNEL_AT_PORT(w->headers) + 2, &at.port, 2) != 0)
		return false;
	memcpy(header, route.header, w->headers);
	return true;
}

/* Adds up a datagram without its epoch, which is 0, and its pseudo-header. */
static uint32_t datagram_sum(const struct kernel_wire *w, uint8_t *frame)
{
	const uint32_t headers = w->headers, ip = ip_size(w);
	const uint32_t size = headers + NBFW_FRAME_SIZE;
	uint32_t sum = htons(IPPROTO_UDP) + htons((uint16_t)(size - KERNEL_AT_PORT(headers)));
	uint16_t word;

	memset(frame + KERNEL_AT_SUM(headers), 0, sizeof(word));
	for (uint32_t at = KERNEL_AT_IP(headers, ip); at < size; at += sizeof(word)) {
		memcpy(&word, frame + at, sizeof(word));
		sum += word;
	}
	return sum;
}

/* Writes the frame of send i. False: the programs cannot send it. */
static bool send_describe(const struct kernel_wire *w, const struct nbnic_group *g, uint32_t i,
			  struct kernel_send *out)
{
	const struct nbnic_peer *to = &g->peer[g->send_peer[i]];
	const struct nbfw_token t = {
		.type = NBFW_TOKEN,
		.handle = to->handle,
		.cookie = to->cookie,
		.src = g->rank,
		.slot = nbfw_plan_send(g->plan, i)->slot,
		.arg = NBAR_RANK_NONE,
		.sender = g->handle,
	};

	/* The programs have no frames to this NIC itself. */
	if (memcmp(to->addr.byte, w->base.addr.byte, sizeof(to->addr.byte)) == 0)
		return false;
	if (!is_udp(w))
		ether_header(w, &to->addr, out->frame);
	else if (!route_find(w, &to->addr, out->frame))
		return false;
	nbfw_token_pack(&t, out->frame + w->headers);
	if (is_udp(w))
		out->sum = datagram_sum(w, out->frame);
	return true;
}

/* Writes all that the programs need of a group, but its state. */
static bool group_describe(struct kernel_wire *w, const struct nbnic_group *g, uint32_t index,
			   uint32_t values)
{
	const struct nbar_plan *p = g->plan;
	uint64_t cell = (uint64_t)g->port << 32 | g->cell;
	struct kernel_group k = {
		.cookie = g->cookie,
		.handle = g->handle,
		.port = g->port,
		.cell = g->cell,
		.values = values,
	};
	uint32_t before, step = 0;

	k.plan.p = *p;
	memcpy(k.plan.step, nbfw_plan_steps(p), p->nstep * sizeof(struct nbar_step));
	memcpy(k.plan.send, nbfw_plan_sends(p), p->nsend * sizeof(struct nbar_send));
	memcpy(k.plan.recv, nbfw_plan_recvs(p), p->nrecv * sizeof(struct nbar_recv));
	for (uint32_t i = 0; i < p->nrecv; i++) {
		memcpy(k.source[i], g->peer[g->recv_peer[i]].addr.byte, sizeof(k.source[i]));
		k.sender[i] = g->peer[g->recv_peer[i]].handle;
	}
	for (uint32_t i = 0; i < p->nsend; i++) {
		if (!send_describe(w, g, i, &k.send[i]))
			return false;
		while (i >= k.plan.step[step].first_send + k.plan.step[step].nsend)
			step++;
		k.send[i].step = (uint8_t)step;
	}
	/* The group that had this index before, if its cell has no other group by now. */
	if (w->handle[index] && w->cell[index] != cell &&
	    bpf_map_lookup_elem(w->cells, &w->cell[index], &before) == 0 && before == index)
		bpf_map_delete_elem(w->cells, &w->cell[index]);
	w->handle[index] = 0;
	w->cell[index] = cell;
	if (bpf_map_update_elem(w->groups, &index, &k, 0) < 0 ||
	    bpf_map_update_elem(w->cells, &cell, &index, 0) < 0)
		return false;
	w->handle[index] = g->handle;
	return true;
}

/* --- values ---------------------------------------------------------------------------------- */

static struct nbfw_values *values_there(const struct kernel_wire *w, uint32_t index)
{
	return (void *)w->values[index];
}

/* True if the programs have places for what the group keeps of its values. */
static bool values_fit(const struct kernel_wire *w, const struct nbnic_group *g, uint32_t index)
{
	const struct nbar_plan *p = g->plan;

	if (!w->values || index >= KERNEL_VALUES || p->nstep + 1u + p->nrecv > NBFW_FIXED_PLACES)
		return false;
	for (uint32_t epoch = 0; epoch < 2; epoch++)
		if (g->values->length[epoch] > NBFW_FIXED_PLACE ||
		    (is_udp(w) && g->values->length[epoch] % KERNEL_VALUE_UNIT != 0) ||
		    (g->values->length[epoch] &&
		     nbfw_values_place(g->values, epoch, 0)->type > NBAR_DOUBLE))
			return false;
	for (uint32_t i = 0; i < p->nstep; i++)
		if (nbfw_plan_step(p, i)->nslot > NBFW_FIXED_STEP_SLOTS)
			return false;
	return true;
}

/* Copies values and their state between a group and the kernel, whose places have another size. */
static void values_move(const struct nbnic_group *g, struct nbfw_values *theirs, bool lend)
{
	struct nbfw_values *x = g->values;
	size_t size = x->size < NBFW_FIXED_PLACE ? x->size : NBFW_FIXED_PLACE;

	for (uint32_t epoch = 0; epoch < 2; epoch++)
		for (uint32_t i = 0; i <= (uint32_t)g->plan->nstep + g->plan->nrecv; i++) {
			void *its = theirs->memory + NBFW_FIXED_STEPS +
				    (i + epoch * NBFW_FIXED_PLACES) * NBFW_FIXED_PLACE;
			void *own = nbfw_values_place(x, epoch, i);
			void *to = lend ? its : own, *from = lend ? own : its;

			memcpy(to, from, size);
		}
	nbfw_values_heads(lend ? theirs : x, lend ? x : theirs);
}

static void values_lend(struct nbfw_values *theirs, const struct nbnic_group *g)
{
	theirs->size = g->values->size < NBFW_FIXED_PLACE ? g->values->size : NBFW_FIXED_PLACE;
	memcpy(theirs->memory, g->values->memory, g->plan->nstep);
	values_move(g, theirs, true);
	/* It is step + 1 if a token was folded that the engine then refused. */
	if (theirs->folded > g->state->step)
		theirs->folded = g->state->step;
}

/* Runs the program that changes hands. */
static bool hand(const struct kernel_wire *w, struct kernel_hand *h)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = h, .data_size_in = sizeof(*h), .data_out = h,
		    .data_size_out = sizeof(*h), .repeat = 1);

	return bpf_prog_test_run_opts(w->hand, &run) == 0 && run.retval == 0;
}

static bool kernel_lend(struct wire_base *base, const struct nbnic_group *g,
			const struct wire_lend *how)
{
	struct kernel_wire *w = (struct kernel_wire *)base;
	uint32_t index = g->handle & 0xffff;
	struct kernel_hand h = {
		.index = index,
		.lend = 1,
		.first_ns = how->first_ns,
		.left_ns = how->left_ns,
		.sleeper = how->sleeper,
	};
	const uint64_t now = (uint64_t)g->handle << 32 | g->state->epoch;
	bool is_new;

	if (index >= KERNEL_GROUPS || !w->port[g->port].results || base->auth ||
	    g->plan->nstep > NBFW_FIXED_STEPS || g->plan->nsend > NBFW_FIXED_SENDS ||
	    g->plan->nrecv > NBFW_FIXED_SLOTS || g->plan->nrecv == 0)
		return false;
	if (g->values && !values_fit(w, g, index))
		return false;
	is_new = w->handle[index] != g->handle;
	/* Since then, the daemon has sent nothing for this group. */
	if (is_udp(w) && w->tried[index] == now)
		return false;
	/* Its frames are to go as those of the daemon go now. */
	if ((is_new || is_udp(w)) && !group_describe(w, g, index, how->values)) {
		w->tried[index] = now;
		return false;
	}
	/* No value of another group stays. Those of this group may be on their way. */
	if (g->values && is_new)
		memset(values_there(w, index), 0, KERNEL_VALUES_SIZE);
	memcpy(h.state, g->state, nbfw_state_size(g->plan));
	if (g->values)
		values_lend(values_there(w, index), g);
	return hand(w, &h);
}
_Static_assert(sizeof(struct nbfw_state) + 3 * sizeof(uint32_t) <= KERNEL_STATE_SIZE,
	       "a state of one word a set fits");

static bool kernel_take(struct wire_base *base, struct nbnic_group *g, struct wire_counts *out)
{
	static const struct kernel_group none;
	struct kernel_wire *w = (struct kernel_wire *)base;
	struct kernel_hand h = { .index = g->handle & 0xffff };

	if (!hand(w, &h)) {
		log_error("%s: group %u fails, because the kernel keeps its state: %s; the daemon "
			  "needs CAP_BPF and memory",
			  base->text, h.index, strerror(errno));
		w->handle[h.index] = 0;
		if (bpf_map_update_elem(w->groups, &h.index, &none, BPF_F_LOCK) < 0)
			log_error("%s: group %u stays in the kernel: %s; restart the daemon",
				  base->text, h.index, strerror(errno));
		return false;
	}
	memcpy(g->state, h.state, nbfw_state_size(g->plan));
	if (g->values)
		values_move(g, values_there(w, h.index), false);
	memcpy(out, &h.counts, sizeof(*out));
	return true;
}
_Static_assert(sizeof(struct kernel_counts) == sizeof(struct wire_counts), "the same counts");

/* --- ports ----------------------------------------------------------------------------------- */

/* A socket whose packets have the mark, to a group that needs neither a route nor a neighbour. The
 * program takes them. A host without CAP_NET_RAW cannot change the mark, and it receives nothing.
 * If it asks for checksums again, the program drops what it sends.
 * It can name another interface, as with a socket of its own (IP_PKTINFO). */
static int start_socket(const struct kernel_wire *w, uint64_t *cookie)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(KERNEL_UDP_PORT),
				  .sin_addr.s_addr = htonl(KERNEL_UDP_TO) };
	socklen_t size = sizeof(*cookie);
	const int no = 0, yes = 1, mark = KERNEL_MARK, by = (int)w->ifindex;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &by, sizeof(by)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) == 0 &&
	    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &no, sizeof(no)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &yes, sizeof(yes)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &receives_none, sizeof(receives_none)) ==
		    0 &&
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &yes, sizeof(yes)) == 0 &&
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &size) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1; /* a descriptor is not negative */
}

static void kernel_port_end(struct wire_base *base, uint32_t port)
{
	struct kernel_wire *w = (struct kernel_wire *)base;
	struct kernel_port *p = &w->port[port];

	if (!p->results)
		return;
	bpf_map_delete_elem(w->ports, &p->cookie);
	bpf_map_delete_elem(w->pages, &port);
	munmap(p->results, sizeof(*p->results));
	close(p->map);
	close(p->socket);
	*p = (struct kernel_port){ 0 };
}

static struct nbar_results *kernel_port_begin(struct wire_base *base, uint32_t port)
{
	LIBBPF_OPTS(bpf_map_create_opts, shared, .map_flags = BPF_F_MMAPABLE);
	struct kernel_wire *w = (struct kernel_wire *)base;
	struct kernel_port *p = &w->port[port];

	p->map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "results", sizeof(uint32_t),
				sizeof(*p->results), 1, &shared);
	p->socket = start_socket(w, &p->cookie);
	p->results = p->map < 0
			     ? NULL
			     : map_memory(p->map, sizeof(*p->results), PROT_READ | PROT_WRITE, 0);
	if (p->results && p->socket >= 0 && bpf_map_update_elem(w->pages, &port, &p->map, 0) == 0 &&
	    bpf_map_update_elem(w->ports, &p->cookie, &port, 0) == 0)
		return p->results;
	log_error(
		"port %u: its barriers run in the daemon, not in the kernel: %s; the daemon must keep "
		"CAP_BPF and CAP_NET_ADMIN",
		port, strerror(errno));
	bpf_map_delete_elem(w->pages, &port);
	if (p->results)
		munmap(p->results, sizeof(*p->results));
	close(p->map);
	close(p->socket);
	*p = (struct kernel_port){ 0 };
	return NULL;
}

static bool kernel_port_fds(const struct wire_base *base, uint32_t port, int fd[2])
{
	const struct kernel_port *p = &((const struct kernel_wire *)base)->port[port];

	fd[0] = p->map;
	fd[1] = p->socket;
	return p->results;
}

static const struct wire_ops kernel_ops = {
	.quota = 1, /* each frame is a system call */
	.values = true,
	.open = kernel_open,
	.close = kernel_close,
	.poll = kernel_poll,
	.transmit = kernel_transmit,
	.peer_begin = wire_auth_peer_begin,
	.peer_end = wire_auth_peer_end,
	.wakes = kernel_wakes,
	.show = kernel_show,
	.forked = kernel_forked,
	.lend = kernel_lend,
	.take = kernel_take,
	.port_begin = kernel_port_begin,
	.port_end = kernel_port_end,
	.port_fds = kernel_port_fds,
};

__attribute__((visibility("default"))) const struct wire_object nbar_wire = {
	.build = WIRE_BUILD,
	.nic_size = sizeof(struct nbnic),
	.ops = &kernel_ops,
	.log = &wire_object_log,
};
