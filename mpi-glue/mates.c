/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mates.c - the ranks of a host: the memory that they share, and whether they still run.
 *
 * Called by the set-up (join.c), and by ranks that wait for long. The memory has no name: nothing
 * is left behind, even if the ranks are killed. Its descriptor goes through a socket, because ranks
 * in different containers may not read each other's /proc.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "comm_internal.h"

#define STRANGERS 16 /* messages of other users that a rank skips */

static size_t size_of(uint32_t nlocal)
{
	return sizeof(struct nbmpi_memory) + nlocal * sizeof(struct nbmpi_mate);
}

static int failed(int fd)
{
	int err = errno;

	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

/* --- memory ---------------------------------------------------------------------------------- */

static struct nbmpi_memory *map(int fd, uint32_t nlocal)
{
	void *at = mmap(NULL, size_of(nlocal), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

int nbmpi_memory_make(uint32_t nlocal)
{
	int fd = memfd_create("nbar-procs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct nbmpi_memory *m;

	if (fd < 0 || ftruncate(fd, (off_t)size_of(nlocal)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return failed(fd);
	m = map(fd, nlocal);
	if (!m)
		return failed(fd);
	errno = -nbar_process_team_init(&m->procs, nlocal);
	munmap(m, size_of(nlocal));
	return errno == 0 ? fd : failed(fd);
}

/* --- its descriptor -------------------------------------------------------------------------- */

/* Makes an abstract address, and no file: valid in one network namespace, as a host is (node.h). */
static socklen_t address_of(uint64_t key, uint32_t rank, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
	       (socklen_t)snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "nbar-%016llx-%u",
				   (unsigned long long)key, rank);
}

int nbmpi_memory_socket(uint64_t key, uint32_t rank)
{
	struct sockaddr_un address;
	socklen_t size = address_of(key, rank, &address);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
	    bind(fd, (const struct sockaddr *)&address, size) != 0)
		return failed(fd);
	return fd;
}

union rights {
	struct cmsghdr align;
	char byte[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

int nbmpi_memory_send(int memory, uint64_t key, uint32_t rank)
{
	struct sockaddr_un to;
	union rights rights = { .byte = { 0 } };
	struct iovec body = { "m", 1 };
	struct msghdr msg = {
		.msg_name = &to,
		.msg_namelen = address_of(key, rank, &to),
		.msg_iov = &body,
		.msg_iovlen = 1,
		.msg_control = &rights,
		.msg_controllen = CMSG_SPACE(sizeof(int)),
	};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &memory, sizeof(memory));
	if (fd < 0 || sendmsg(fd, &msg, MSG_NOSIGNAL) < 0)
		return failed(fd);
	close(fd);
	return 0;
}

/* Returns the received descriptor. *ours: a process of this user has sent it. */
static int take(struct msghdr *msg, bool *ours)
{
	struct ucred who;
	int fd = -1;

	*ours = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		/* Our leader sends one descriptor; a stranger may send more. */
		for (size_t at = 0;
		     c->cmsg_type == SCM_RIGHTS && CMSG_LEN(at + sizeof(fd)) <= c->cmsg_len;
		     at += sizeof(fd)) {
			if (fd >= 0)
				close(fd);
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
		}
		if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof(who))) {
			memcpy(&who, CMSG_DATA(c), sizeof(who));
			*ours = who.uid == geteuid();
		}
	}
	return fd;
}

int nbmpi_memory_receive(int socket)
{
	for (int i = 0; i < STRANGERS; i++) {
		char byte;
		union rights rights;
		struct iovec body = { &byte, 1 };
		struct msghdr msg = {
			.msg_iov = &body,
			.msg_iovlen = 1,
			.msg_control = &rights,
			.msg_controllen = sizeof(rights),
		};
		bool ours;
		int fd;

		if (recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) < 0)
			return -1;
		fd = take(&msg, &ours);
		if (ours && fd >= 0)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	errno = EPERM;
	return -1;
}

/* --- who is there ---------------------------------------------------------------------------- */

/* Reads the start time of a process, in ticks; 0: the process has ended. False: not known, for
 * example because this process has no free descriptor. */
static bool born(int32_t pid, uint64_t *out)
{
	char path[32], text[512], state;
	unsigned long long ticks;
	const char *at;
	long threads;
	ssize_t n;
	int fd, err;

	*out = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	n = read(fd, text, sizeof(text) - 1);
	err = errno;
	close(fd);
	if (n < 0)
		return err == ESRCH;
	text[n] = '\0';
	at = strrchr(text, ')'); /* the name before it may contain any character */
	if (!at ||
	    sscanf(at,
		   ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld "
		   "%*s %llu",
		   &state, &threads, &ticks) != 3)
		return false;
	/* A zombie: its parent has not fetched the exit status. But other threads may still run. */
	if (state != 'Z' || threads > 1)
		*out = ticks;
	return true;
}

int nbmpi_memory_join(struct nbmpi_comm *c, int memory)
{
	struct nbmpi_mate *me;
	struct stat st;

	if (fstat(memory, &st) < 0)
		return -1;
	errno = ESTALE;
	c->memory = st.st_size == (off_t)size_of(c->nlocal) ? map(memory, c->nlocal) : NULL;
	if (!c->memory)
		return -1;
	me = &c->memory->mate[c->mate];
	me->rank = c->rank;
	me->pid = (int32_t)getpid();
	born(me->pid, &me->born); /* 0: the others do not check us */
	return 0;
}

void nbmpi_memory_leave(struct nbmpi_comm *c)
{
	if (c->memory)
		munmap(c->memory, size_of(c->nlocal));
	c->memory = NULL;
}

const struct nbmpi_mate *nbmpi_mate_ended(const struct nbmpi_comm *c)
{
	const struct nbmpi_mate *mate = c->memory->mate;
	uint64_t now;

	for (uint32_t i = 0; i < c->nlocal; i++)
		if (i != c->mate && mate[i].born != 0 && born(mate[i].pid, &now) &&
		    now != mate[i].born)
			return &mate[i];
	return NULL;
}

const struct nbmpi_mate *nbmpi_mate_blame(const struct nbmpi_comm *c,
					  const struct nbmpi_mate *ended)
{
	const struct nbmpi_mate *mate = c->memory->mate;
	uint32_t first = 0, number = 1 + (uint32_t)(ended - mate);

	/* The partner is this statement in another rank. No other data depends on the word. */
	if (__atomic_compare_exchange_n(&c->memory->ended, &first, number, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		return ended;
	return first <= c->nlocal && first != c->mate + 1 ? &mate[first - 1] : ended;
}
