/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * join.c - how the members of a communicator become those of a group: port, group, shared memory.
 *
 * Called by barrier.c within a blocking barrier, and by comm.c when a communicator is gone. The
 * lowest rank of a host (its leader) opens the host's member of the group and the memory of its
 * process team; the others of that host attach to both. What fails is a reason that comes back,
 * never an end of the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm_internal.h"
#include "tuned.h"

#define TAG UINT32_C(0x4d504931) /* groups of MPI programs: no others join them by mistake */

/* A port of another process that this one has attached to. */
struct nbmpi_attached {
	struct nbmpi_attached *next;
	struct nbar_share share; /* of some group of it */
	struct nbar_port *port;
};

static const char *nic(void)
{
	return nbmpi_self.nic[0] ? nbmpi_self.nic : NULL;
}

/* --- memory of a process team ---------------------------------------------------------------- */

static enum nbmpi_why memory_failed(const char *what)
{
	nbmpi_log(2, "memory for the ranks of a host: cannot %s: %s", what, strerror(errno));
	return NBMPI_WHY_memory;
}

static struct nbmpi_memory *map(int fd)
{
	void *at =
		mmap(NULL, sizeof(struct nbmpi_memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Memory without a name: nothing is left behind however the ranks end. */
static enum nbmpi_why memory_make(struct nbmpi_comm *c)
{
	uint64_t id;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return memory_failed("draw a number");
	c->memory_fd = memfd_create("nbar-procs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (c->memory_fd < 0)
		return memory_failed("make it");
	if (ftruncate(c->memory_fd, sizeof(*c->memory)) < 0 ||
	    fcntl(c->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return memory_failed("size it");
	c->memory = map(c->memory_fd);
	if (!c->memory)
		return memory_failed("map it");
	if (nbar_process_team_init(&c->memory->procs, c->nlocal) < 0) {
		nbmpi_log(2, "%s", nbar_error());
		return NBMPI_WHY_memory;
	}
	c->memory->id = id;
	c->mine.procs = id;
	c->mine.fd = c->memory_fd;
	return NBMPI_WHY_none;
}

static enum nbmpi_why memory_join(struct nbmpi_comm *c, const struct nbmpi_record *leader)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", leader->pid, leader->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return memory_failed("open that of the first rank of this host");
	if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof(*c->memory))
		c->memory = map(fd);
	close(fd);
	if (c->memory && c->memory->id == leader->procs)
		return NBMPI_WHY_none;
	errno = ESTALE;
	return memory_failed("use that of the first rank of this host");
}

static void memory_leave(struct nbmpi_comm *c)
{
	if (c->memory)
		munmap(c->memory, sizeof(*c->memory));
	c->memory = NULL;
	free(c->mates);
	c->mates = NULL;
	if (c->memory_fd >= 0)
		close(c->memory_fd);
	c->memory_fd = -1;
}

/* --- mates: who shares the memory ------------------------------------------------------------ */

/* When a process was born, in ticks; 0: it has ended. False: there is no telling, for want of a
 * descriptor for example. */
static bool born(int32_t pid, uint64_t *out)
{
	char path[32], text[512], state;
	unsigned long long ticks;
	const char *at;
	long threads;
	ssize_t n;
	int fd;

	*out = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0 && errno == ESRCH) {
		close(fd);
		return true;
	}
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	at = strrchr(text, ')'); /* a name may have anything in it */
	if (!at || sscanf(at + 1,
			  " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld "
			  "%*s %llu",
			  &state, &threads, &ticks) != 3)
		return false;
	/* Nobody has fetched its exit status yet; but its other threads may live on. */
	if (state != 'Z' || threads > 1)
		*out = ticks;
	return true;
}

static enum nbmpi_why mates_find(struct nbmpi_comm *c)
{
	uint32_t n = 0;

	c->mates = malloc(c->nlocal * sizeof(*c->mates));
	if (!c->mates)
		return memory_failed("list them");
	for (uint32_t r = 0; r < c->size; r++)
		if (c->host_of[r] == c->host)
			c->mates[n++] = (struct nbmpi_mate){ .rank = r,
							     .pid = c->records[r].pid,
							     .born = c->records[r].born };
	return NBMPI_WHY_none;
}

const struct nbmpi_mate *nbmpi_mate_ended(const struct nbmpi_comm *c)
{
	uint64_t now;

	for (uint32_t i = 0; i < c->nlocal; i++)
		if (i != c->mate && c->mates[i].born != 0 && born(c->mates[i].pid, &now) &&
		    now != c->mates[i].born)
			return &c->mates[i];
	return NULL;
}

/* --- port and group, with nbmpi_self.lock ---------------------------------------------------- */

static enum nbmpi_why nic_failed(enum nbmpi_why why)
{
	nbmpi_log(2, "%s", nbar_error());
	return why;
}

static enum nbmpi_why group_make(struct nbmpi_comm *c)
{
	struct nbar_group_attr attr = {
		.rank = c->host,
		.size = c->nhost,
		.alg = nbmpi_self.start.config.alg,
		.tag = TAG,
	};
	const struct nbar_wait_policy sleep = { .block = 1 };
	struct nbar_endpoint endpoint;
	int rc;

	if (!nbmpi_self.port && nbar_open(nic(), &nbmpi_self.port) < 0)
		return nic_failed(NBMPI_WHY_nic);
	if (nbmpi_tuned_plan(c, &attr) != 0)
		return NBMPI_WHY_group;
	rc = nbar_group_open(nbmpi_self.port, &attr, &c->group, &endpoint);
	free((void *)(uintptr_t)attr.plan); /* the NIC has a copy */
	if (rc < 0)
		return nic_failed(NBMPI_WHY_group);
	/* How a rank waits is up to wait.c; when it calls nbar_wait, it is to sleep. */
	nbar_group_set_wait(c->group, &sleep);
	nbar_group_share(c->group, &c->mine.share);
	return NBMPI_WHY_none;
}

/* The port that the share is of; attached to once. */
static struct nbar_port *port_of(const struct nbar_share *share)
{
	struct nbmpi_attached *a = nbmpi_self.attached;

	while (a && memcmp(a->share.secret, share->secret, sizeof(share->secret)) != 0)
		a = a->next;
	if (a)
		return a->port;
	a = malloc(sizeof(*a));
	if (!a)
		return NULL;
	if (nbar_attach(nic(), share, &a->port) < 0) {
		nbmpi_log(2, "%s", nbar_error());
		free(a);
		return NULL;
	}
	a->share = *share;
	a->next = nbmpi_self.attached;
	nbmpi_self.attached = a;
	return a->port;
}

static enum nbmpi_why group_attach(struct nbmpi_comm *c, const struct nbmpi_record *leader)
{
	struct nbar_port *port = port_of(&leader->share);

	if (!port)
		return NBMPI_WHY_attach;
	if (nbar_group_attach(port, &leader->share, &c->group) < 0)
		return nic_failed(NBMPI_WHY_attach);
	return NBMPI_WHY_none;
}

static enum nbmpi_why group_connect(struct nbmpi_comm *c)
{
	struct nbar_endpoint *endpoint = malloc(c->nhost * sizeof(*endpoint));
	int rc;

	if (!endpoint)
		return NBMPI_WHY_connect;
	for (uint32_t host = 0; host < c->nhost; host++)
		endpoint[host] = c->records[c->leaders[host]].share.endpoint;
	rc = nbar_group_connect(c->group, endpoint);
	free(endpoint);
	return rc < 0 ? nic_failed(NBMPI_WHY_connect) : NBMPI_WHY_none;
}

/* --- the set-up ------------------------------------------------------------------------------ */

/* A vote: the least one counts. */
#define VOTE_YES UINT64_MAX

static uint64_t vote_no(uint32_t why, uint32_t rank)
{
	return (uint64_t)rank << 32 | why;
}

/* Fills my record: opens what the leader of a host opens. */
static void record_make(struct nbmpi_comm *c)
{
	enum nbmpi_why why = NBMPI_WHY_none;

	c->mine = (struct nbmpi_record){ .version = NBMPI_VERSION, .pid = (int32_t)getpid() };
	if (c->nlocal > 1)
		born(c->mine.pid, &c->mine.born); /* 0: the others do not look after us */
	if (c->rank == c->leader && c->nlocal > 1)
		why = memory_make(c);
	if (c->rank == c->leader && c->nhost > 1 && why == NBMPI_WHY_none) {
		pthread_mutex_lock(&nbmpi_self.lock);
		why = group_make(c);
		pthread_mutex_unlock(&nbmpi_self.lock);
	}
	c->mine.why = why;
}

/* What stands in the records against it; all members read the same. */
static uint64_t read_records(const struct nbmpi_comm *c)
{
	for (uint32_t r = 0; r < c->size; r++) {
		if (c->records[r].version != NBMPI_VERSION)
			return vote_no(NBMPI_WHY_terms, r);
		if (c->records[r].why != NBMPI_WHY_none)
			return vote_no(c->records[r].why, r);
	}
	return VOTE_YES;
}

static enum nbmpi_why join(struct nbmpi_comm *c)
{
	const struct nbmpi_record *leader = &c->records[c->leader];
	enum nbmpi_why why = NBMPI_WHY_none;

	if (c->rank != c->leader)
		why = memory_join(c, leader);
	if (c->nlocal > 1 && why == NBMPI_WHY_none)
		why = mates_find(c);
	if (c->nhost == 1 || why != NBMPI_WHY_none)
		return why;
	pthread_mutex_lock(&nbmpi_self.lock);
	why = c->rank == c->leader ? group_connect(c) : group_attach(c, leader);
	pthread_mutex_unlock(&nbmpi_self.lock);
	return why;
}

/* Three collectives in one: records, what each makes of them, votes. */
static int agree(struct nbmpi_comm *c, uint64_t *votes)
{
	const struct nbmpi_ops *ops = nbmpi_self.start.ops;
	uint64_t vote;
	enum nbmpi_why why;
	int code;

	code = nbmpi_tuned_agree(c);
	if (code != 0)
		return code;
	record_make(c);
	code = ops->gather(c->mpi, &c->mine, c->records, sizeof(c->mine));
	if (code != 0)
		return code;
	vote = read_records(c);
	if (vote == VOTE_YES) {
		why = join(c);
		if (why != NBMPI_WHY_none)
			vote = vote_no(why, c->rank);
	}
	return ops->minimum(c->mpi, &vote, votes);
}

int nbmpi_set_up(struct nbmpi_comm *c)
{
	uint64_t votes = 0;

	c->records = malloc(c->size * sizeof(*c->records));
	if (!c->records) {
		c->code = nbmpi_self.start.ops->error("nbar: no memory to set up a communicator");
		return c->error = NBMPI_FAILED;
	}
	c->code = agree(c, &votes);
	free(c->records);
	free(c->tuned_host);
	c->records = NULL;
	c->tuned_host = NULL;
	if (c->memory_fd >= 0)
		close(c->memory_fd);
	c->memory_fd = -1;
	if (votes != VOTE_YES)
		nbmpi_leave(c);
	if (c->code != 0) {
		c->error = NBMPI_FAILED;
		return NBMPI_MPI_FAILED;
	}
	c->path = votes == VOTE_YES ? NBMPI_OFFLOADED : NBMPI_PLAIN;
	if (c->path == NBMPI_PLAIN) {
		c->why = (enum nbmpi_why)(uint32_t)votes;
		c->why_rank = (uint32_t)(votes >> 32);
	}
	return 0;
}

void nbmpi_leave(struct nbmpi_comm *c)
{
	if (c->group) {
		pthread_mutex_lock(&nbmpi_self.lock);
		nbar_group_close(c->group);
		pthread_mutex_unlock(&nbmpi_self.lock);
	}
	c->group = NULL;
	memory_leave(c);
}

void nbmpi_ports_close(void)
{
	while (nbmpi_self.attached) {
		struct nbmpi_attached *a = nbmpi_self.attached;

		nbmpi_self.attached = a->next;
		nbar_close(a->port);
		free(a);
	}
	nbar_close(nbmpi_self.port);
	nbmpi_self.port = NULL;
}
