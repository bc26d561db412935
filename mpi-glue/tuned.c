/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tuned.c - plans by a profile. See tuned.h.
 *
 * libnbar-tune is loaded only on request: a job without profiles needs neither this library nor the
 * library that reads JSON. A failure becomes a fault that all members see.
 */
#include "tuned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "nbar_tune.h"

enum fault {
	FAULT_NONE,
	FAULT_LIBRARY,
	FAULT_PROFILE,
	FAULT_HOST,
	FAULT_DIGEST, /* other ranks have another profile */
	FAULT_MEMORY,
	FAULT_PLACE, /* two hosts have the same index in the profile */
};

/* The profile of this process, read once; with nbmpi_self.lock. */
static struct {
	bool read;
	enum fault fault;
	uint64_t digest;
	uint32_t place; /* index of this host in the profile */
	struct nbar_tune *tune;
	const struct nbar_tune_ops *ops;
} self;

static const char *profile(void)
{
	const char *alg = nbmpi_self.start.config.alg;
	size_t n = strlen(NBAR_TUNE_PREFIX);

	return strncmp(alg, NBAR_TUNE_PREFIX, n) == 0 ? alg + n : NULL;
}

/* Searches by the name of the host, then by the name of its NIC. */
static int find_host(char *why, size_t size)
{
	const char *nic = strrchr(nbmpi_self.nic, '/');
	struct utsname name;
	char text[64];
	int rc = -ENOENT;

	if (uname(&name) == 0)
		rc = self.ops->host(self.tune, name.nodename, &self.place, why, size);
	if (rc == 0 || !*nbmpi_self.nic)
		return rc;
	nic = nic ? nic + 1 : nbmpi_self.nic;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(nic, ":."), nic);
	return self.ops->host(self.tune, text, &self.place, why, size) ? rc : 0;
}

static enum fault read_profile(void)
{
	char why[512] = "";

	self.ops = nbar_tune_load(why, sizeof(why));
	if (!self.ops) {
		nbmpi_log(1, "%s", why);
		return FAULT_LIBRARY;
	}
	if (self.ops->open(profile(), &self.tune, why, sizeof(why)) != 0) {
		nbmpi_log(1, "%s", why);
		return FAULT_PROFILE;
	}
	self.digest = self.ops->digest(self.tune);
	if (find_host(why, sizeof(why)) != 0) {
		nbmpi_log(2, "%s", why);
		return FAULT_HOST;
	}
	return FAULT_NONE;
}

static const char *fault_text(enum fault fault)
{
	switch (fault) {
	case FAULT_LIBRARY:
		return "cannot load " NBAR_TUNE_LIBRARY;
	case FAULT_PROFILE:
		return "cannot read the profile";
	case FAULT_HOST:
		return "the profile does not have its host";
	case FAULT_DIGEST:
		return "has another profile than other ranks";
	case FAULT_MEMORY:
		return "has no memory for the places of all hosts";
	case FAULT_PLACE:
		return "another host has the same place in the profile";
	case FAULT_NONE:
		break;
	}
	return "has another version of nbar";
}

/* Votes on faults. *least: if a rank has a fault, the least vote against; else the least `value` of
 * all ranks. A value has the bits below NBMPI_VOTE_YES. */
static int vote(const struct nbmpi_comm *c, enum fault fault, uint64_t value, uint64_t *least)
{
	struct nbmpi_sum sum = { .least = NBMPI_VOTE_YES | value };
	int rc;

	if (fault != FAULT_NONE)
		sum.least = (uint64_t)c->rank << 32 | (uint32_t)fault;
	rc = nbmpi_self.start.ops->sum(c->mpi, &sum);
	*least = sum.least;
	return rc;
}

static int by_place(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* True if two of n places are equal. room: for n numbers. */
static bool has_twins(const uint32_t *place, uint32_t n, uint32_t *room)
{
	memcpy(room, place, n * sizeof(*room));
	qsort(room, n, sizeof(*room), by_place);
	for (uint32_t i = 1; i < n; i++)
		if (room[i] == room[i - 1])
			return true;
	return false;
}

/* Sets the indices of all hosts in the profile; *least: a vote on them. */
static int take_places(struct nbmpi_comm *c, const struct nbmpi_channel *at, uint64_t *least)
{
	uint32_t place = c->rank == c->leader ? self.place : NBAR_RANK_NONE, n = 0;
	int rc = nbmpi_exchange_numbers(at, c->rank, c->size, place, c->tuned_host);

	if (rc != 0)
		return rc;
	for (uint32_t r = 0; r < c->size; r++)
		if (c->tuned_host[r] != NBAR_RANK_NONE)
			c->tuned_host[n++] = c->tuned_host[r];
	return vote(c,
		    has_twins(c->tuned_host, n, &c->tuned_host[c->size]) ? FAULT_PLACE : FAULT_NONE,
		    0, least);
}

/* Holds three votes: does each rank have a profile, are the profiles equal, do they have all
 * hosts? */
int nbmpi_tuned_agree(struct nbmpi_comm *c, const struct nbmpi_channel *at)
{
	const uint64_t bits = NBMPI_VOTE_YES - 1;
	uint64_t least;
	enum fault fault = FAULT_NONE;
	int rc;

	if (!profile() || c->nhost < 2)
		return 0;
	pthread_mutex_lock(&nbmpi_self.lock);
	if (!self.read)
		self.fault = read_profile();
	self.read = true;
	pthread_mutex_unlock(&nbmpi_self.lock);
	rc = vote(c, self.fault, self.digest & bits, &least);
	if (rc == 0 && least >= NBMPI_VOTE_YES) {
		if ((least & bits) != (self.digest & bits))
			fault = FAULT_DIGEST;
		c->tuned_host = malloc(2 * (size_t)c->size * sizeof(*c->tuned_host));
		if (!c->tuned_host)
			fault = FAULT_MEMORY;
		/* If digests differ, some rank does not have the least digest: now all ranks learn
		 * it. */
		rc = vote(c, fault, 0, &least);
	}
	if (rc == 0 && least >= NBMPI_VOTE_YES)
		rc = take_places(c, at, &least);
	if (rc != 0)
		return rc;
	c->tuned = least >= NBMPI_VOTE_YES;
	if (!c->tuned && c->rank == 0)
		nbmpi_log(1, "communicator of %u ranks: algorithm auto in place of %s: rank %u: %s",
			  c->size, nbmpi_self.start.config.alg, (uint32_t)(least >> 32),
			  fault_text((enum fault)(uint32_t)least));
	return 0;
}

int nbmpi_tuned_plan(const struct nbmpi_comm *c, struct nbar_group_attr *attr)
{
	struct nbar_plan *plan;
	char why[256] = "";
	int rc;

	if (!profile())
		return 0;
	attr->alg = "auto";
	if (!c->tuned)
		return 0;
	rc = self.ops->plan(self.tune, c->tuned_host, c->nhost, attr->rank, &plan,
			    &attr->plan_length, why, sizeof(why));
	if (rc != 0) {
		nbmpi_log(1, "no plan by %s: %s", nbmpi_self.start.config.alg, why);
		return rc;
	}
	attr->alg = "custom";
	attr->plan = plan;
	return 0;
}

const char *nbmpi_tuned_name(const struct nbmpi_comm *c)
{
	return profile() && !c->tuned ? "auto" : nbmpi_self.start.config.alg;
}
