/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ports.c - what the host of a port shares with the programs: its results, and its start socket.
 */
#include <arpa/inet.h>
#include <sys/mman.h>

#include "kernel.h"

/* A socket whose packets have the mark, to a group that needs neither a route nor a neighbour. The
 * program takes them. A host without CAP_NET_RAW cannot change the mark, and it receives nothing.
 * The program drops what a host sends after it has switched checksums on.
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
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &kernel_receives_none,
		       sizeof(kernel_receives_none)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &yes, sizeof(yes)) == 0 &&
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &size) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1; /* a descriptor is not negative */
}

void kernel_port_end(struct wire_base *base, uint32_t port)
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

struct nbar_results *kernel_port_begin(struct wire_base *base, uint32_t port)
{
	LIBBPF_OPTS(bpf_map_create_opts, shared, .map_flags = BPF_F_MMAPABLE);
	struct kernel_wire *w = (struct kernel_wire *)base;
	struct kernel_port *p = &w->port[port];

	p->map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "results", sizeof(uint32_t),
				sizeof(*p->results), 1, &shared);
	p->socket = start_socket(w, &p->cookie);
	p->results = p->map < 0 ? NULL
				: kernel_map_memory(p->map, sizeof(*p->results),
						    PROT_READ | PROT_WRITE, 0);
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

bool kernel_port_fds(const struct wire_base *base, uint32_t port, int fd[2])
{
	const struct kernel_port *p = &((const struct kernel_wire *)base)->port[port];

	fd[0] = p->map;
	fd[1] = p->socket;
	return p->results;
}
