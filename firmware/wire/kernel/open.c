/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * open.c - opens the interface of a NIC, and loads and attaches its programs (programs.bpf.c).
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "kernel.h"

#define KIND_UDP 3u
#define FROM_TCX_IN 46 /* BPF_TCX_INGRESS, which older headers lack; the next is BPF_TCX_EGRESS */

/* The programs, as clang has built them: for frames on Ethernet, and in datagrams of IPv4 and IPv6.
 */
extern const uint8_t programs[], programs_4[], programs_6[], programs_end[];
__asm__(".section .rodata\n"
	".balign 8\nprograms: .incbin \"" KERNEL_PROGRAMS ".bpf.o\"\n"
	".balign 8\nprograms_4: .incbin \"" KERNEL_PROGRAMS "4.bpf.o\"\n"
	".balign 8\nprograms_6: .incbin \"" KERNEL_PROGRAMS "6.bpf.o\"\nprograms_end:\n"
	".previous");

const struct sock_fprog kernel_receives_none = { 1, &(struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
										  0) };

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

void *kernel_map_memory(int fd, size_t size, int prot, off_t at)
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

	if (!kernel_is_udp(w))
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
	const uint8_t *const *at = &begin[!kernel_is_udp(w)           ? 0
					  : w->headers == KERNEL_UDP4 ? 1
								      : 2];
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
	w->wanted = kernel_map_memory(map_fd(w, "wanted"), KERNEL_GROUPS * sizeof(uint64_t),
				      PROT_READ | PROT_WRITE, 0);
	w->heard = kernel_map_memory(w->bell, page, PROT_READ | PROT_WRITE, 0);
	w->rung = kernel_map_memory(w->bell, page, PROT_READ, (off_t)page);
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
		w->values =
			kernel_map_memory(map_fd(w, "values"), KERNEL_VALUES * sizeof(*w->values),
					  PROT_READ | PROT_WRITE, 0);
	w->base.fast_value = w->values ? NBFW_FIXED_VALUE : 0;
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
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(NBFW_ETHER_TYPE) };
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

		/* A name may have a label, after a colon. */
		if (!at || strncmp(i->ifa_name, dev, strcspn(i->ifa_name, ":")) != 0 ||
		    dev[strcspn(i->ifa_name, ":")] != 0 ||
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

	(void)setsockopt(w->fd, SOL_SOCKET, SO_ATTACH_FILTER, &kernel_receives_none,
			 sizeof(kernel_receives_none));
	rc = udp_begin(&w->udp, nic, option, args);
	w->base.kind = KIND_UDP;
	w->headers = w->udp.family == AF_INET6 ? KERNEL_UDP6 : KERNEL_UDP4;
	if (rc == 0 && !interface_has(option(args, "dev"), &w->base.addr, kernel_ip_size(w)))
		log_error("nic %s: barriers may run in the daemon, not in the kernel: %s is not "
			  "an address of %s; name the interface that has it",
			  nic, w->base.text, option(args, "dev"));
	return rc;
}

void kernel_forked(struct wire_base *base)
{
	const struct kernel_wire *w = (struct kernel_wire *)base;

	close(w->fd);
	close(w->udp.fd);
	close(w->epoll);
	for (int i = 0; i < 4; i++)
		close(w->link[i]);
}

void kernel_close(struct wire_base *base)
{
	kernel_forked(base);
	bpf_object__close(((struct kernel_wire *)base)->object);
	free(base);
}

int kernel_open(const char *nic, wire_option *option, void *args, struct wire_base **out)
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
		if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, kernel_is_udp(w) ? w->udp.fd : w->fd, &in) <
			    0 ||
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
