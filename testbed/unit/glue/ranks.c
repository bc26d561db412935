/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks.c - the ranks of an MPI, as processes. Messages go through memory that they share.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "exchange.h"
#include "node.h"
#include "ranks.h"
#include "unit/descriptors.h"
#include "unit/inproc.h"

#define LETTERS 512u
#define SECONDS 120u /* after which a rank counts as hung; much longer than any rank runs */

struct letter {
	bool full;
	uint32_t comm, from, to, tag, size;
	uint64_t number; /* letters are taken in this order */
	uint8_t data[1024];
};

struct mail {
	pthread_mutex_t lock;
	uint64_t sent;
	struct letter letter[LETTERS];
	uint32_t in_barrier[4][RANKS_MAX]; /* by communicator and rank of the world */
	uint32_t entered[4][RANKS_MAX];
};

struct ranks *ranks;
uint32_t ranks_me;
double ranks_progress_takes;
static struct mail *mail;
static uint32_t mpi_left, closes_0_left;

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);

static void *shared(size_t size)
{
	void *at =
		__real_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	return at;
}

void ranks_begin(uint32_t size, uint32_t each)
{
	pthread_mutexattr_t attr;

	if (!ranks) {
		ranks = shared(sizeof(*ranks));
		mail = shared(sizeof(*mail));
	}
	require(size <= RANKS_MAX, "%u ranks", size);
	memset(ranks, 0, sizeof(*ranks));
	memset(mail, 0, sizeof(*mail));
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&mail->lock, &attr);
	ranks->size = size;
	ranks->each = each;
	nbmpi_config_init(&ranks->config);
	strcpy(ranks->config.nic, "n%r");
	ranks->config.where = NBMPI_WHERE_NIC; /* the same barriers are offloaded in each run */
	ranks->config.verbose = 2;
}

/* --- NICs --------------------------------------------------------------------------------------
 */

uint32_t ranks_nics;
static pid_t nics_pid;
static int nics_pipe[2]; /* the NICs stop when the end of the test program is closed */

/* Tells the test program the run directory, and waits until the test program ends. */
static _Noreturn void nics_main(int tell)
{
	struct inproc *nics = inproc_start(ranks_nics, NULL);
	const char *dir = inproc_run_dir(nics);
	char byte;

	if (write(tell, dir, strlen(dir) + 1) < 0)
		abort();
	close(tell);
	for (ssize_t n = 1; n > 0 || (n < 0 && errno == EINTR);) {
		n = read(nics_pipe[0], &byte, 1);
		if (n <= 0)
			continue;
		inproc_set_loss(nics, (uint32_t)byte);
		n = write(nics_pipe[0], &byte, 1);
	}
	inproc_stop(nics);
	_exit(0);
}

int ranks_nics_start(void **state)
{
	char dir[128];
	int told[2];
	ssize_t n;

	if (pipe2(told, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, nics_pipe) < 0)
		return -1;
	nics_pid = fork();
	if (nics_pid == 0) {
		close(nics_pipe[1]);
		nics_main(told[1]);
	}
	close(told[1]);
	close(nics_pipe[0]);
	n = read(told[0], dir, sizeof(dir)); /* one write: it comes at once */
	close(told[0]);
	if (nics_pid < 0 || n <= 0)
		return -1;
	setenv("NBAR_RUN_DIR", dir, 1);
	return 0;
}

void ranks_nics_loss(uint32_t percent)
{
	char byte = (char)percent;

	assert_int_equal(write(nics_pipe[1], &byte, 1), 1);
	assert_int_equal(read(nics_pipe[1], &byte, 1), 1);
}

int ranks_nics_end(void **state)
{
	int status;

	close(nics_pipe[1]);
	return waitpid(nics_pid, &status, 0) == nics_pid && status == 0 ? 0 : -1;
}

/* --- the fake MPI ------------------------------------------------------------------------------
 */

static bool broken(void)
{
	return __atomic_load_n(&ranks->broken, __ATOMIC_RELAXED);
}

static void nap(void)
{
	if (__atomic_load_n(&ranks->failed, __ATOMIC_RELAXED))
		_exit(1);
	usleep(20);
}

/* A rank calls the MPI no more after a call has failed. */
static int fails(void)
{
	static bool has_failed;

	expect(!has_failed, "it calls the MPI again");
	has_failed = true;
	return MPI_BROKEN;
}

/* True: this call fails. */
static bool call_fails(void)
{
	if (closes_0_left > 0 && --closes_0_left == 0)
		close(0);
	if (mpi_left > 0 && --mpi_left == 0) {
		__atomic_store_n(&ranks->hurry, true, __ATOMIC_RELAXED);
		__atomic_store_n(&ranks->broken, 1, __ATOMIC_RELAXED);
	}
	return broken();
}

static void put(const struct ranks_comm *c, uint32_t tag, const struct nbmpi_message *m)
{
	struct letter *l = mail->letter;

	while (l < mail->letter + LETTERS && l->full)
		l++;
	expect(l < mail->letter + LETTERS && m->size <= sizeof(l->data), "%u bytes", m->size);
	expect(m->rank < c->size && c->first + m->rank != ranks_me, "to %u", m->rank);
	*l = (struct letter){ .full = true,
			      .comm = c->id,
			      .from = ranks_me,
			      .to = c->first + m->rank,
			      .tag = tag,
			      .size = m->size,
			      .number = mail->sent++ };
	memcpy(l->data, m->data, m->size);
}

/* The first letter for this rank that matches. */
static bool take(const struct ranks_comm *c, uint32_t tag, const struct nbmpi_message *m)
{
	struct letter *first = NULL;

	for (struct letter *l = mail->letter; l < mail->letter + LETTERS; l++)
		if (l->full && l->comm == c->id && l->to == ranks_me && l->tag == tag &&
		    (m->rank == NBAR_RANK_NONE || l->from == c->first + m->rank) &&
		    (!first || l->number < first->number))
			first = l;
	if (!first)
		return false;
	expect((m->rank == NBAR_RANK_NONE) == (tag % 2 == 0), "tag %u", tag);
	expect(first->size == m->size, "%u bytes in place of %u", first->size, m->size);
	memcpy(m->data, first->data, first->size);
	first->full = false;
	return true;
}

static int exchange(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n)
{
	const struct ranks_comm *c = mpi;

	if (call_fails())
		return fails();
	pthread_mutex_lock(&mail->lock);
	for (uint32_t i = 0; i < n; i++)
		if (!message[i].in)
			put(c, tag, &message[i]);
	for (uint32_t i = 0; i < n; i++)
		while (message[i].in && !take(c, tag, &message[i])) {
			pthread_mutex_unlock(&mail->lock);
			if (broken())
				return fails();
			nap();
			pthread_mutex_lock(&mail->lock);
		}
	pthread_mutex_unlock(&mail->lock);
	return 0;
}

static enum nbmpi_why meet(void *mpi, uint32_t rank)
{
	const struct ranks_comm *c = mpi;

	expect(rank < c->size, "meets %u", rank);
	return NBMPI_WHY_none;
}

static int exchange_in_set_up(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n)
{
	expect(tag / 2 != 0, "the tags of sums");
	return exchange(mpi, tag, message, n);
}

/* As MPI_MIN of some MPIs, it takes bit 63 for a sign. */
static int sum(void *mpi, struct nbmpi_sum *sum)
{
	const struct nbmpi_channel at = { .exchange = exchange, .mpi = mpi };
	const struct ranks_comm *c = mpi;

	expect(sum->least >> 63 == 0, "a vote has bit 63");
	return nbmpi_tree_sum(&at, ranks_me - c->first, c->size, meet, sum);
}

static uint64_t host(void *mpi, uint32_t rank)
{
	const struct ranks_comm *c = mpi;

	return (c->first + rank) / ranks->each + 1;
}

static uint32_t *mates(void *mpi, uint32_t *n, enum nbmpi_why *why)
{
	const struct ranks_comm *c = mpi;
	uint32_t *rank = malloc(c->size * sizeof(*rank));

	*n = 0;
	for (uint32_t r = 0; r < c->size; r++) {
		if ((c->first + r) / ranks->each != ranks_me / ranks->each)
			continue;
		if (rank)
			rank[*n] = r;
		(*n)++;
	}
	if (ranks->mates_say != NBMPI_WHY_none)
		*why = ranks->mates_say;
	return rank;
}

static void progress(void)
{
	ranks->rank[ranks_me].progress++;
	clock_advance(ranks_progress_takes *
		      (__atomic_load_n(&ranks->hurry, __ATOMIC_RELAXED) ? HURRY_FOLD : 1));
	if (ranks_progress_takes > 0 && ranks->rank[ranks_me].progress % 8 == 0)
		usleep(200); /* the NICs have a clock of their own */
	sched_yield();
}

static int revoked(void *mpi)
{
	return __atomic_load_n(&ranks->revoked, __ATOMIC_RELAXED);
}

static int error(const char *text)
{
	snprintf(ranks->rank[ranks_me].error, sizeof(ranks->rank[0].error), "%s", text);
	return MPI_TEXT;
}

void ranks_mpi_fails(uint32_t n)
{
	mpi_left = n;
}

void ranks_mpi_closes_0(uint32_t n)
{
	closes_0_left = n;
}

/* --- a rank ------------------------------------------------------------------------------------
 */

/* Mappings of the memory of a host's ranks. */
static uint32_t mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char text[512];
	uint32_t n = 0;

	while (f && fgets(text, sizeof(text), f))
		n += strstr(text, ".procs") != NULL;
	if (f)
		fclose(f);
	return n;
}

static _Noreturn void rank_main(uint32_t me, void (*body)(void), int said)
{
	static struct nbmpi_ops ops = {
		.mates = mates,
		.host = host,
		.sum = sum,
		.exchange = exchange_in_set_up,
		.progress = progress,
		.receive = progress,
		.revoked = revoked,
		.error = error,
	};
	struct nbmpi_start start = {
		.config = ranks->config,
		.ops = &ops,
		.rank = me / ranks->each,
	};
	uint32_t before;
	int64_t blocks, mutexes;

	ranks_me = me;
	dup2(said, 2);
	alarm(SECONDS);
	if (ranks->cannot_revoke)
		ops.revoked = NULL;
	ranks->rank[me].pid = (int32_t)getpid();
	before = unit_descriptors();
	blocks = blocks_in_use();
	mutexes = mutexes_in_use();
	nbmpi_start(&start);
	body();
	faults_set(0, NULL, 0);
	nbmpi_stop();
	expect(calls.threads == 0 && calls.exposed == 0, "%u threads are left, %u get signals",
	       calls.threads, calls.exposed);
	expect(unit_descriptors() == before, "%u descriptors, before %u", unit_descriptors(),
	       before);
	expect(blocks_in_use() == blocks, "%d blocks of memory are left",
	       (int)(blocks_in_use() - blocks));
	expect(mappings() == 0, "memory of the ranks is left");
	expect(mutexes_in_use() == mutexes && calls.held == 0, "%d mutexes are left, %u held",
	       (int)(mutexes_in_use() - mutexes), calls.held);
	_exit(0);
}

static void gather(struct rank_shown *rank, int said)
{
	ssize_t n = pread(said, rank->said, sizeof(rank->said) - 1, 0);

	rank->said[n > 0 ? n : 0] = '\0';
	close(said);
}

void ranks_run(void (*body)(void))
{
	int said[RANKS_MAX];
	pid_t pid[RANKS_MAX];

	for (uint32_t r = 0; r < ranks->size; r++) {
		said[r] = memfd_create("said", MFD_CLOEXEC);
		pid[r] = fork();
		require(said[r] >= 0 && pid[r] >= 0, "rank %u: %s", r, strerror(errno));
		if (pid[r] == 0)
			rank_main(r, body, said[r]);
	}
	for (uint32_t r = 0; r < ranks->size; r++)
		require(waitpid(pid[r], &ranks->rank[r].status, 0) == pid[r], "rank %u", r);
	for (uint32_t r = 0; r < ranks->size; r++)
		gather(&ranks->rank[r], said[r]);
	for (uint32_t r = 0; r < ranks->size && ranks->failed; r++)
		print_error("%s", ranks->rank[r].said);
	for (uint32_t r = 0; r < ranks->size; r++)
		if (ranks->killed[r])
			require(WIFSIGNALED(ranks->rank[r].status) &&
					WTERMSIG(ranks->rank[r].status) == SIGKILL,
				"rank %u: %x", r, (unsigned)ranks->rank[r].status);
		else
			require(ranks->rank[r].status == 0, "rank %u: status %x: %s", r,
				(unsigned)ranks->rank[r].status, ranks->rank[r].said);
}

void ranks_open(struct ranks_comm *c, uint32_t id, uint32_t first, uint32_t size)
{
	*c = (struct ranks_comm){ .id = id, .first = first, .size = size };
	c->nbar = nbmpi_comm_open(c, ranks_me - first, size, false, NBMPI_BARRIERS);
	expect(c->nbar, "no communicator");
}

/* Waits until all ranks of c have reached a number. */
static bool all_at(const struct ranks_comm *c, uint32_t *count, uint32_t n)
{
	for (uint32_t r = c->first; r < c->first + c->size; r++)
		while ((int32_t)(__atomic_load_n(&count[r], __ATOMIC_SEQ_CST) - n) < 0) {
			if (broken())
				return false;
			nap();
		}
	return true;
}

int ranks_barrier(struct ranks_comm *c)
{
	uint32_t *count = mail->entered[c->id];
	uint32_t n = __atomic_add_fetch(&count[ranks_me], 1, __ATOMIC_SEQ_CST);
	int rc = nbmpi_barrier(c->nbar);

	if (rc == NBMPI_BY_MPI) {
		uint32_t *in = mail->in_barrier[c->id];

		ranks->rank[ranks_me].mpi_barriers++;
		all_at(c, in, __atomic_add_fetch(&in[ranks_me], 1, __ATOMIC_SEQ_CST));
		clock_advance(ranks->barrier_takes);
		nbmpi_barrier_by_mpi(c->nbar);
	}
	for (uint32_t r = c->first; r < c->first + c->size && rc >= 0 && !broken(); r++)
		expect((int32_t)(__atomic_load_n(&count[r], __ATOMIC_SEQ_CST) - n) >= 0,
		       "leaves barrier %u (result %d) before rank %u enters it", n, rc, r);
	return rc;
}

int ranks_set_up(struct ranks_comm *c)
{
	for (uint32_t i = 0; i < NBMPI_PAYS; i++) {
		int rc = ranks_barrier(c);

		expect(rc == NBMPI_BY_MPI, "barrier %u: %d", i, rc);
	}
	return ranks_barrier(c);
}

void ranks_await(uint32_t i, uint32_t n)
{
	while (__atomic_load_n(&ranks->go[i], __ATOMIC_SEQ_CST) < n)
		nap();
}

void ranks_signal(uint32_t i)
{
	__atomic_add_fetch(&ranks->go[i], 1, __ATOMIC_SEQ_CST);
}
