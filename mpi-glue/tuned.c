/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tuned.c - plans by a profile. See tuned.h.
 *
 * libnbar-tune is loaded when it is asked for, and not before: a job without profiles needs neither
 * that library nor the one that reads JSON. What fails becomes a fault that all members see.
 */
#include "tuned.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "nbar_tune.h"

#define LIBRARY "libnbar-tune.so.0"

enum fault { FAULT_NONE, FAULT_LIBRARY, FAULT_PROFILE, FAULT_HOST, FAULT_END };

/* What a rank tells the others. */
struct tuned_record {
	uint64_t digest;
	uint32_t host; /* in the profile */
	uint32_t fault;
};

/* The profile of this process, read once; with nbmpi_self.lock. */
static struct {
	bool read;
	struct tuned_record mine;
	struct nbar_tune *tune;
	int (*open)(const char *path, struct nbar_tune **out, char *why, size_t size);
	uint64_t (*digest)(const struct nbar_tune *t);
	int (*host)(const struct nbar_tune *t, const char *name, uint32_t *out, char *why,
		    size_t size);
	int (*plan)(const struct nbar_tune *t, const uint32_t *host, uint32_t size, uint32_t rank,
		    struct nbar_plan **plan, size_t *length, char *why, size_t whysize);
} self;

static const char *profile(void)
{
	const char *alg = nbmpi_self.start.config.alg;
	size_t n = strlen(NBAR_TUNE_PREFIX);

	return strncmp(alg, NBAR_TUNE_PREFIX, n) == 0 ? alg + n : NULL;
}

/* The same function by dlsym: ISO C has no cast from an object to a function. */
static bool find(void *library, const char *name, void *function)
{
	void *symbol = dlsym(library, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (library && find(library, "nbar_tune_open", &self.open) &&
	    find(library, "nbar_tune_digest", &self.digest) &&
	    find(library, "nbar_tune_host", &self.host) &&
	    find(library, "nbar_tune_plan", &self.plan))
		return true;
	nbmpi_log(1, "cannot load " LIBRARY ": %s", dlerror());
	return false;
}

/* By the name of the host, or else of its NIC. */
static int find_host(char *why, size_t size)
{
	const char *nic = strrchr(nbmpi_self.nic, '/');
	struct utsname name;
	char text[64];
	int rc = -ENOENT;

	if (uname(&name) == 0)
		rc = self.host(self.tune, name.nodename, &self.mine.host, why, size);
	if (rc == 0 || !nbmpi_self.nic[0])
		return rc;
	nic = nic ? nic + 1 : nbmpi_self.nic;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(nic, ":."), nic);
	return self.host(self.tune, text, &self.mine.host, why, size) ? rc : 0;
}

static enum fault read_profile(void)
{
	char why[512] = "";

	if (!load())
		return FAULT_LIBRARY;
	if (self.open(profile(), &self.tune, why, sizeof(why)) != 0) {
		nbmpi_log(1, "%s", why);
		return FAULT_PROFILE;
	}
	self.mine.digest = self.digest(self.tune);
	if (find_host(why, sizeof(why)) != 0) {
		nbmpi_log(2, "%s", why);
		return FAULT_HOST;
	}
	return FAULT_NONE;
}

/* NULL, or why the records do not make plans; *rank: of whom. All members read the same. */
static const char *check(const struct nbmpi_comm *c, const struct tuned_record *record,
			 uint32_t *rank)
{
	static const char *const text[FAULT_END] = {
		[FAULT_LIBRARY] = "cannot load " LIBRARY,
		[FAULT_PROFILE] = "cannot read the profile",
		[FAULT_HOST] = "the profile does not have its host",
	};

	for (*rank = 0; *rank < c->size; ++*rank) {
		const struct tuned_record *r = &record[*rank];

		if (r->fault != FAULT_NONE)
			return r->fault < FAULT_END ? text[r->fault]
						    : "has another version of nbar";
		if (r->digest != record[0].digest)
			return "has another profile than rank 0";
	}
	for (uint32_t a = 0; a < c->nhost; a++) {
		for (uint32_t b = 0; b < a; b++) {
			*rank = c->leaders[a];
			if (record[*rank].host == record[c->leaders[b]].host)
				return "another host has the same place in the profile";
		}
	}
	return NULL;
}

static void take(struct nbmpi_comm *c, const struct tuned_record *record)
{
	uint32_t rank;
	const char *why = check(c, record, &rank);

	if (!why) {
		c->tuned_host = malloc(c->nhost * sizeof(*c->tuned_host));
		/* Without memory the plan fails later, and the vote with it. */
		for (uint32_t host = 0; c->tuned_host && host < c->nhost; host++)
			c->tuned_host[host] = record[c->leaders[host]].host;
		c->tuned = true;
	} else if (c->rank == 0) {
		nbmpi_log(1, "communicator of %u ranks: algorithm auto in place of %s: rank %u: %s",
			  c->size, nbmpi_self.start.config.alg, rank, why);
	}
}

int nbmpi_tuned_agree(struct nbmpi_comm *c)
{
	struct tuned_record *record;
	int code;

	if (!profile() || c->nhost < 2)
		return 0;
	pthread_mutex_lock(&nbmpi_self.lock);
	if (!self.read)
		self.mine.fault = read_profile();
	self.read = true;
	pthread_mutex_unlock(&nbmpi_self.lock);
	record = malloc(c->size * sizeof(*record));
	if (!record)
		return nbmpi_self.start.ops->error("nbar: no memory to agree on a profile");
	code = nbmpi_self.start.ops->gather(c->mpi, &self.mine, record, sizeof(*record));
	if (code == 0)
		take(c, record);
	free(record);
	return code;
}

int nbmpi_tuned_plan(const struct nbmpi_comm *c, struct nbar_group_attr *attr)
{
	struct nbar_plan *plan;
	char why[256] = "no memory";
	int rc;

	if (!profile())
		return 0;
	attr->alg = "auto";
	if (!c->tuned)
		return 0;
	rc = c->tuned_host ? self.plan(self.tune, c->tuned_host, c->nhost, c->host, &plan,
				       &attr->plan_length, why, sizeof(why))
			   : -ENOMEM;
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
