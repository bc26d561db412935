/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mates.c - the ranks of a host: the memory that they share, and whether they still run.
 *
 * Called by the set-up (join.c), and by ranks that wait for long. The memory is a file that only
 * its user can open, and only during the set-up: then the leader unlinks it. No rank receives
 * anything from a process of another user. If the leader is killed during the set-up, a file of
 * at most some MiB stays in the folder until the user removes it or the machine restarts; nobody
 * opens it, because each set-up draws a new key.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm_internal.h"
#include "nbar_file.h"
#include "nbar_hostnic.h"

static size_t size_of(const struct nbmpi_comm *c)
{
	uint32_t values = c->kind == NBMPI_ALLREDUCES ? NBAR_VALUES_AHEAD : 0;

	return sizeof(struct nbmpi_memory) +
	       c->nlocal * (sizeof(struct nbmpi_mate) + values * sizeof(struct nbar_value));
}

/* --- memory ---------------------------------------------------------------------------------- */

static struct nbmpi_memory *map(int fd, const struct nbmpi_comm *c)
{
	void *at = mmap(NULL, size_of(c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void mates_path_of(uint64_t key, uint32_t leader, char out[64])
{
	snprintf(out, 64, NBAR_HOSTNIC_DIR "/nbar-%016llx-%u.procs", (unsigned long long)key,
		 leader);
}

int nbmpi_memory_make(uint64_t key, const struct nbmpi_comm *c)
{
	struct nbmpi_memory *m = NULL;
	char path[64];
	int fd, rc;

	mates_path_of(key, c->leader, path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* Without reserved pages, a rank would die of SIGBUS in a full folder. */
	rc = nbar_file_reserve(fd, (off_t)size_of(c));
	if (rc == 0) {
		m = map(fd, c);
		rc = m ? nbar_process_team_init(&m->procs, c->nlocal) : -errno;
	}
	if (m)
		munmap(m, size_of(c));
	if (rc == 0)
		return fd;
	nbmpi_memory_unlink(key, c->leader);
	close(fd);
	return rc;
}

int nbmpi_memory_open(uint64_t key, uint32_t leader)
{
	struct stat st;
	char path[64];
	int fd, rc = -EPERM;

	mates_path_of(key, leader, path);
	/* Whatever has this name: open() does not wait for it. */
	fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (S_ISREG(st.st_mode) && st.st_uid == geteuid())
		return fd;
	close(fd);
	return rc;
}

void nbmpi_memory_unlink(uint64_t key, uint32_t leader)
{
	char path[64];

	mates_path_of(key, leader, path);
	unlink(path);
}

/* --- who is there ---------------------------------------------------------------------------- */

/* Reads the start time of a process, in ticks; 0: the process has ended. False: not known, for
 * example because this process has no free descriptor. */
static bool mates_born(int32_t pid, uint64_t *out)
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
		return -errno;
	if (st.st_size != (off_t)size_of(c))
		return -ESTALE;
	c->memory = map(memory, c);
	if (!c->memory)
		return -errno;
	me = &c->memory->mate[c->mate];
	me->rank = c->rank;
	me->pid = (int32_t)getpid();
	mates_born(me->pid, &me->born); /* 0: the others do not check us */
	return 0;
}

void nbmpi_memory_leave(struct nbmpi_comm *c)
{
	if (c->memory)
		munmap(c->memory, size_of(c));
	c->memory = NULL;
}

const struct nbmpi_mate *nbmpi_mate_ended(const struct nbmpi_comm *c)
{
	const struct nbmpi_mate *mate = c->memory->mate;
	uint64_t now;

	for (uint32_t i = 0; i < c->nlocal; i++)
		if (i != c->mate && mate[i].born != 0 && mates_born(mate[i].pid, &now) &&
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
