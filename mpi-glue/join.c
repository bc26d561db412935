/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * join.c - how the ranks of a communicator become members of a group: group, shared memory, votes.
 *
 * Called by barrier.c within a blocking barrier, and by comm.c when a communicator ends. The
 * lowest rank of a host (its leader) opens the host's member of the group and the memory of its
 * process team; the other ranks of the host attach to both. A failure returns a reason, and never
 * ends the program.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "comm_internal.h"
#include "exchange.h"
#include "node.h"
#include "tuned.h"

/* How long the NICs may take to hear each other, and then to complete their first barriers: as long
 * as a barrier may by default. Where many threads share each processor, healthy NICs need seconds.
 */
#define TRIAL_S 8.0
#define REACH_NS (UINT64_C(1000000000) * (uint64_t)TRIAL_S)
#define TRIAL_LOOK_S 1.0 /* longer between two tests: this rank or its machine stood still */
#define TRIAL_ROUNDS 4u  /* tests between two calls into the MPI */
#define TAG UINT32_C(0x4d504931) /* of groups of MPI programs: other programs cannot join them */

/* A set-up under way. */
struct set_up {
	struct nbmpi_comm *c;
	struct nbmpi_channel channel;
	uint64_t key; /* the same at all ranks; different for each set-up */
	uint32_t *local;
	struct nbmpi_host host; /* of a leader */
	struct nbmpi_speech *speech;
	int memory;      /* a descriptor; -1: none */
	char cause[512]; /* reason of this rank's vote against the set-up */
	bool pays;       /* false: the ranks try again later */
	bool follows;    /* this reason may follow from the failure of another rank */
};

/* Message from a leader to the other ranks of its host. */
struct told {
	uint32_t why;
	uint32_t reserved;
	struct nbar_share share;
};

static const char *nic(void)
{
	return *nbmpi_self.nic ? nbmpi_self.nic : NULL;
}

static enum nbmpi_why nic_failed(struct set_up *s, enum nbmpi_why why)
{
	snprintf(s->cause, sizeof(s->cause), "%s", nbar_error());
	if (s->c->nhost != s->c->size)
		nbmpi_hosts_for_ranks(s->cause);
	return why;
}

static enum nbmpi_why memory_failed(struct set_up *s, const char *what, int err)
{
	snprintf(s->cause, sizeof(s->cause), "cannot %s: %s", what, strerror(err));
	return NBMPI_WHY_memory;
}

static enum nbmpi_why port_failed(struct set_up *s, enum nbmpi_why why)
{
	return why == NBMPI_WHY_memory ? memory_failed(s, "keep a port", errno)
				       : nic_failed(s, why);
}

/* --- port and group, with nbmpi_self.lock ---------------------------------------------------- */

static enum nbmpi_why group_open(struct set_up *s)
{
	struct nbmpi_comm *c = s->c;
	struct nbar_group_attr attr = {
		.struct_size = sizeof(attr),
		.rank = s->host.index,
		.size = c->nhost,
		.alg = nbmpi_self.start.config.alg,
		.tag = TAG,
		.value_max = c->kind == NBMPI_ALLREDUCES ? NBAR_VALUE_MAX : 0,
	};
	const struct nbar_wait_policy sleep = { .block = true };
	enum nbmpi_why why;

	if (nbmpi_tuned_plan(c, &attr) != 0)
		return NBMPI_WHY_group;
	why = nbmpi_port_open_group(c, nic(), &attr, &s->host.mine);
	free((void *)(uintptr_t)attr.plan); /* the NIC has a copy */
	if (why == NBMPI_WHY_group && c->kind == NBMPI_ALLREDUCES)
		why = NBMPI_WHY_values;
	if (why != NBMPI_WHY_none)
		return port_failed(s, why);
	/* wait.c decides how a rank waits; it calls nbar_wait only to sleep. */
	nbar_group_set_wait(c->group, &sleep);
	s->host.npeer = (uint32_t)nbar_group_peers(c->group, &s->host.peer);
	s->host.address = calloc(s->host.npeer + 1, sizeof(*s->host.address));
	return s->host.address ? NBMPI_WHY_none : memory_failed(s, "keep addresses", errno);
}

/* --- the set-up ------------------------------------------------------------------------------ */

/* A leader opens its group and makes the memory of its host. */
static enum nbmpi_why open_all(struct set_up *s)
{
	struct nbmpi_comm *c = s->c;
	enum nbmpi_why why = NBMPI_WHY_none;

	if (c->rank != c->leader)
		return why;
	if (c->nlocal > 1) {
		s->memory = nbmpi_memory_make(s->key, c);
		if (s->memory < 0)
			return s->memory == -ERANGE ? nic_failed(s, NBMPI_WHY_memory)
						    : memory_failed(s, "make it", -s->memory);
	}
	if (c->nhost > 1) {
		pthread_mutex_lock(&nbmpi_self.lock);
		why = group_open(s);
		pthread_mutex_unlock(&nbmpi_self.lock);
	}
	return why;
}

/* Step "open". A rank takes part even after a failure, because the other ranks wait for it. */
static int join_prepare(struct set_up *s, enum nbmpi_why *why)
{
	struct nbmpi_comm *c = s->c;
	int rc;

	*why = open_all(s);
	if (c->nhost == 1)
		return 0;
	rc = nbmpi_exchange_begin(&s->channel, c->rank, c->nhost,
				  c->rank == c->leader ? &s->host : NULL, &s->speech);
	if (rc == 0 && c->rank < c->nhost && !s->speech && *why == NBMPI_WHY_none)
		*why = memory_failed(s, "exchange addresses", errno);
	return rc;
}

/* The leader of a host informs its other ranks; *why: the reason of a failure. */
static int tell_mates(struct set_up *s, enum nbmpi_why *why)
{
	struct nbmpi_comm *c = s->c;
	struct told told = { .why = NBMPI_WHY_none };
	int rc = 0;

	if (c->group)
		nbar_group_share(c->group, &told.share);
	/* The leader is the first rank of its host. */
	for (uint32_t i = 1; i < c->nlocal && rc == 0; i++) {
		struct nbmpi_message message = { s->local[i], sizeof(told), false, &told, NULL };

		told.why = *why;
		rc = s->channel.exchange(c->mpi, s->channel.tag + 1, &message, 1);
	}
	return rc;
}

/* The other ranks of the host receive what their leader sends in tell_mates. */
static int hear_leader(struct set_up *s, struct told *told, enum nbmpi_why *why)
{
	struct nbmpi_comm *c = s->c;
	struct nbmpi_message message = { c->leader, sizeof(*told), true, told, NULL };
	int rc = s->channel.exchange(c->mpi, s->channel.tag + 1, &message, 1);

	if (rc != 0)
		return rc;
	*why = (enum nbmpi_why)told->why;
	if (*why != NBMPI_WHY_none)
		return 0;
	s->memory = nbmpi_memory_open(s->key, c->leader);
	if (s->memory < 0)
		*why = memory_failed(s, "open that of the first rank of this host", -s->memory);
	return 0;
}

/* With nbmpi_self.lock. */
static enum nbmpi_why group_join(struct set_up *s, const struct nbar_share *share)
{
	if (s->c->rank != s->c->leader) {
		enum nbmpi_why why = nbmpi_port_attach_group(s->c, nic(), share);

		return why == NBMPI_WHY_none ? why : port_failed(s, why);
	}
	if (nbar_group_connect_peers(s->c->group, s->host.address) != 0)
		return nic_failed(s, NBMPI_WHY_connect);
	return NBMPI_WHY_none;
}

/* A rank takes part even after a failure, because the other ranks wait for it. */
static int join_all(struct set_up *s, enum nbmpi_why *why)
{
	struct nbmpi_comm *c = s->c;
	bool leads = c->rank == c->leader;
	struct told told = { .why = NBMPI_WHY_none };
	int rc = leads ? tell_mates(s, why) : hear_leader(s, &told, why);

	if (rc == 0 && c->nhost > 1)
		rc = nbmpi_exchange_addresses(&s->channel, c->rank, leads ? &s->host : NULL,
					      s->speech);
	if (rc != 0)
		return rc;
	if (*why == NBMPI_WHY_none && s->memory >= 0) {
		rc = nbmpi_memory_join(c, s->memory);
		if (rc < 0)
			*why = memory_failed(s, "map it", -rc);
	}
	if (*why != NBMPI_WHY_none || c->nhost == 1)
		return 0;
	pthread_mutex_lock(&nbmpi_self.lock);
	*why = group_join(s, &told.share);
	pthread_mutex_unlock(&nbmpi_self.lock);
	if (*why == NBMPI_WHY_none && leads && nbar_group_reach(c->group, REACH_NS) != 0)
		*why = nic_failed(s, NBMPI_WHY_reach);
	return 0;
}

/*
 * One barrier of the NICs. 1: complete; 0: not in the time that is *left; or an error of the
 * library. Time in which this rank stood still says nothing about the NICs: it counts little.
 */
static int try_once(struct nbmpi_comm *c, double *left)
{
	struct nbar_value value = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 1 };
	struct nbmpi_request r = { .value = c->value ? &value : NULL };
	double seen = nbmpi_now_s(), now;
	uint64_t yields_since = 0;
	int rc;

	if (c->value && nbmpi_value_is_fast(c, c->value))
		value = *c->value;
	pthread_mutex_lock(&c->lock);
	nbmpi_want(c, &r);
	rc = nbmpi_post(c);
	pthread_mutex_unlock(&c->lock);
	for (uint32_t round = 1; rc == 0; round++) {
		rc = c->memory ? nbar_process_team_test(&c->memory->procs, c->group, c->wanted)
			       : nbar_test(c->group, c->wanted);
		if (rc != 0 || *left <= 0)
			break;
		now = nbmpi_now_s();
		*left -= now - seen < TRIAL_LOOK_S ? now - seen : TRIAL_LOOK_S;
		seen = now;
		if (round % TRIAL_ROUNDS == 0)
			nbmpi_self.start.ops->progress();
		nbmpi_wait_yield(&yields_since);
	}
	pthread_mutex_lock(&c->lock);
	nbmpi_forget(c, &r);
	c->posted = c->wanted; /* if the post failed, no thread must post it later */
	pthread_mutex_unlock(&c->lock);
	return rc;
}

/*
 * The first barriers of the NICs. A NIC may have died since it was connected, or a firewall may
 * drop its frames: here the ranks can still agree on the barrier of the MPI. If a rank cannot take
 * part, the others wait in vain. Those after the first are timed as barriers of the program are.
 */
static enum nbmpi_why join_trial(struct set_up *s)
{
	struct nbmpi_comm *c = s->c;
	double left = TRIAL_S, since;
	int rc = 1;

	for (uint32_t i = 0; i <= (c->judge.closed ? 0 : NBMPI_TRIALS) && rc == 1; i++) {
		since = nbmpi_now_s();
		rc = try_once(c, &left);
		nbmpi_self.start.ops->progress();
		if (i > 0)
			nbmpi_judge_note(&c->judge, NBMPI_WAY_NBAR, nbmpi_now_s() - since);
	}
	if (rc < 0)
		return nic_failed(s, NBMPI_WHY_connect);
	if (rc == 1)
		return NBMPI_WHY_none;
	snprintf(
		s->cause, sizeof(s->cause),
		"a first barrier was not complete after %.0f s: see by `nbar stat` whether all NICs "
		"run, and whether a firewall drops their frames",
		TRIAL_S);
	return NBMPI_WHY_connect;
}

/* All ranks vote: yes, or a reason against. 0 and the result in c->why, or an error of the MPI. */
static int join_vote(struct set_up *s, enum nbmpi_why why, struct nbmpi_sum *sum)
{
	struct nbmpi_comm *c = s->c;
	int rc;

	if (why != NBMPI_WHY_none)
		sum->least = nbmpi_vote_no(why, c->rank) | (s->follows ? NBMPI_VOTE_FOLLOWS : 0);
	rc = nbmpi_self.start.ops->sum(c->mpi, sum);
	if (rc == 0 && sum->least < NBMPI_VOTE_YES) {
		c->why = (enum nbmpi_why)(uint32_t)sum->least;
		c->why_rank = (uint32_t)((sum->least & ~NBMPI_VOTE_FOLLOWS) >> 32);
	}
	return rc;
}

/* Finds the ranks of this host. *why: unknown, or a reason against NICs that all ranks know. */
static void find_mates(struct set_up *s, enum nbmpi_why *why)
{
	struct nbmpi_comm *c = s->c;

	s->local = nbmpi_self.start.ops->mates(c->mpi, &c->nlocal, why);
	if (*why == NBMPI_WHY_memory || (!s->local && *why == NBMPI_WHY_none))
		*why = memory_failed(s, "list its ranks", ENOMEM);
	for (c->mate = 0; s->local && c->mate < c->nlocal && s->local[c->mate] != c->rank;)
		c->mate++;
	/* If processes have different settings, mates() returns an empty list. */
	c->leader = s->local && c->nlocal > 0 ? s->local[0] : c->rank;
}

/* Holds three votes, if a set-up pays: the number of hosts; have all ranks opened; have all ranks
 * joined? Returns as vote. */
static int join_agree(struct set_up *s)
{
	struct nbmpi_comm *c = s->c;
	uint32_t min_hosts = nbmpi_self.start.config.min_hosts;
	enum nbmpi_why why = NBMPI_WHY_none;
	struct nbmpi_sum sum;
	int rc;

	/* Within a host, the MPI's own allreduce is as good. */
	if (c->kind == NBMPI_ALLREDUCES && min_hosts < 2)
		min_hosts = 2;
	find_mates(s, &why);
	c->why = why == NBMPI_WHY_memory ? NBMPI_WHY_none : why;
	if (c->nlocal == c->size && min_hosts > 1)
		c->why = NBMPI_WHY_few;
	if (c->why == NBMPI_WHY_nic) {
		c->why_rank = 0;
		snprintf(s->cause, sizeof(s->cause), "%s", nbmpi_node_lacks_nic());
	}
	if (c->why != NBMPI_WHY_none)
		return 0;
	if (c->nlocal < c->size && !c->judge.closed) {
		rc = nbmpi_judge_pays(c, &s->pays);
		if (rc != 0 || !s->pays)
			return rc;
	}
	sum = (struct nbmpi_sum){ .total = c->rank == c->leader };
	if (getrandom(&sum.least, sizeof(sum.least), 0) != sizeof(sum.least))
		why = memory_failed(s, "draw a number for it", errno);
	sum.least = sum.least >> 2 | NBMPI_VOTE_YES;
	rc = join_vote(s, why, &sum);
	if (rc != 0 || c->why != NBMPI_WHY_none)
		return rc;
	s->key = sum.least;
	s->channel.tag = (uint32_t)s->key & ~1u;
	s->host.index = sum.before;
	c->nhost = sum.total;
	if (c->nhost < min_hosts) {
		c->why = NBMPI_WHY_few;
		return 0;
	}
	if (c->kind == NBMPI_BARRIERS) /* no composed barrier carries values */
		rc = nbmpi_tuned_agree(c, &s->channel);
	if (rc != 0)
		return rc;
	rc = join_prepare(s, &why);
	sum = (struct nbmpi_sum){
		.least = NBMPI_VOTE_YES,
		.also = { c->group ? nbar_group_fast_value(c->group) : NBAR_VALUE_MAX },
	};
	if (rc == 0)
		rc = join_vote(s, why, &sum);
	c->fast_value = (uint32_t)sum.also[0];
	if (rc == 0 && c->why == NBMPI_WHY_none)
		rc = join_all(s, &why);
	if (rc != 0 || c->why != NBMPI_WHY_none)
		return rc;
	if (why == NBMPI_WHY_none && c->group) {
		why = join_trial(s);
		s->follows = true;
	}
	sum = (struct nbmpi_sum){ .least = NBMPI_VOTE_YES };
	nbmpi_judge_give(c, &sum);
	rc = join_vote(s, why, &sum);
	if (rc == 0 && c->why == NBMPI_WHY_none && c->group &&
	    c->judge.n[NBMPI_WAY_MPI] >= NBMPI_TIMED_LEAST &&
	    nbmpi_judge_take(c, &sum, s->cause, sizeof(s->cause)))
		c->why = NBMPI_WHY_slow;
	c->judge.n[NBMPI_WAY_NBAR] = 0;
	return rc;
}

int nbmpi_set_up(struct nbmpi_comm *c)
{
	const struct nbmpi_ops *ops = nbmpi_self.start.ops;
	struct set_up s = {
		.c = c,
		.channel = { .exchange = ops->exchange, .mpi = c->mpi },
		.memory = -1,
		.pays = true,
	};
	int rc = join_agree(&s);

	free(s.local);
	free(s.host.address);
	free(s.speech);
	free(c->tuned_host);
	c->tuned_host = NULL;
	if (s.memory >= 0) {
		if (c->rank == c->leader)
			nbmpi_memory_unlink(s.key, c->leader);
		close(s.memory);
	}
	if (rc == 0 && !s.pays)
		return 0;
	c->path = rc == 0 && c->why == NBMPI_WHY_none ? NBMPI_OFFLOADED : NBMPI_PLAIN;
	if (c->path == NBMPI_PLAIN) {
		pthread_mutex_lock(&c->lock);
		nbmpi_leave(c);
		pthread_mutex_unlock(&c->lock);
	}
	if (rc == 0) {
		nbmpi_log_path(c, s.cause);
		return 0;
	}
	c->path = NBMPI_OPENING;
	c->error = NBMPI_FAILED;
	c->code = rc;
	return NBMPI_MPI_FAILED;
}

void nbmpi_leave(struct nbmpi_comm *c)
{
	if (c->group) {
		pthread_mutex_lock(&nbmpi_self.lock);
		nbmpi_port_close_group(c);
		pthread_mutex_unlock(&nbmpi_self.lock);
	}
	c->group = NULL;
	nbmpi_memory_leave(c);
}
