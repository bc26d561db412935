/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - messages of the glue to users: lines on stderr, texts of failures, counters.
 *
 * Called after the set-up of a communicator, when a barrier fails or waits for long, and at the
 * end.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm_internal.h"
#include "node.h"
#include "tuned.h"

#define RANKS_MAX 7u /* ranks of a host that a text names, besides the first one */

void nbmpi_log(int verbose, const char *format, ...)
{
	va_list args;

	if (nbmpi_self.start.config.verbose < verbose)
		return;
	va_start(args, format);
	nbmpi_vsay(format, args);
	va_end(args);
}

const char *nbmpi_why_text(enum nbmpi_why why)
{
	static const char *const text[] = {
#define WHY_TEXT(name, level, text) [NBMPI_WHY_##name] = text,
		NBMPI_WHYS(WHY_TEXT)
#undef WHY_TEXT
	};

	return why < NBMPI_WHY_END ? text[why] : "an unknown reason";
}

/* True if this process has not printed this reason yet. */
static bool is_first(enum nbmpi_why why)
{
	static uint32_t told;

	/* Relaxed: it orders nothing. */
	return !(__atomic_fetch_or(&told, 1u << why, __ATOMIC_RELAXED) & 1u << why);
}

static int level_of(enum nbmpi_why why)
{
	static const int level[] = {
#define WHY_LEVEL(name, level, text) [NBMPI_WHY_##name] = level,
		NBMPI_WHYS(WHY_LEVEL)
#undef WHY_LEVEL
	};

	return why >= NBMPI_WHY_END || (level[why] == 0 && !is_first(why)) ? 1 : level[why];
}

const char *nbmpi_kind_text(const struct nbmpi_comm *c)
{
	return c->kind == NBMPI_ALLREDUCES ? "allreduce" : "barrier";
}

static void tell_why(const struct nbmpi_comm *c, const char *cause)
{
	char who[24] = "";

	if (c->why_rank != NBAR_RANK_NONE)
		snprintf(who, sizeof(who), "rank %u: ", c->why_rank);
	nbmpi_log(level_of(c->why), "communicator of %u ranks: fallback to MPI's %s: %s%s%s%s",
		  c->size, nbmpi_kind_text(c), who, nbmpi_why_text(c->why), *cause ? ": " : "",
		  cause);
}

void nbmpi_log_path(const struct nbmpi_comm *c, const char *cause)
{
	const char *where = "by its ranks";

	/* A rank without nbar cannot print the reason. */
	if (c->path == NBMPI_PLAIN &&
	    (c->why_rank == c->rank || (c->rank == 0 && c->why_rank == NBAR_RANK_NONE)))
		tell_why(c, cause);
	if (c->path == NBMPI_PLAIN || c->rank != 0)
		return;
	if (c->group)
		where = nbmpi_self.start.config.where == NBMPI_WHERE_HOST ? "by in-process NICs"
									  : "offloaded to NICs";
	nbmpi_log(2, "communicator of %u ranks on %u host%s: %ss %s%s%s", c->size, c->nhost,
		  c->nhost == 1 ? "" : "s", nbmpi_kind_text(c), where, c->group ? ", " : "",
		  c->group ? nbmpi_tuned_name(c) : "");
}

/* Numbers hosts in the order of their lowest ranks, and returns the number of each rank's host; the
 * caller frees the array. NULL: not known. Looks up all ranks. */
static uint32_t *hosts_of(const struct nbmpi_comm *c)
{
	return c->closed ? NULL : nbmpi_hosts_number(nbmpi_self.start.ops->host, c->mpi, c->size);
}

/* Appends to a text, as far as there is room. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *format,
						      ...)
{
	size_t length = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + length, size - length, format, args);
	va_end(args);
}

/* Appends "rank 3", or "rank 3, 7 or 11 (host 1)" if several ranks share a host: a NIC knows only
 * hosts. This rank itself is not missing. */
static void add_host(const struct nbmpi_comm *c, uint32_t host, char *out, size_t size)
{
	uint32_t *host_of, n = 0, all = 0;

	if (host >= c->nhost) {
		add(out, size, "an unknown rank");
		return;
	}
	if (c->nhost == c->size) {
		add(out, size, "rank %u", host);
		return;
	}
	host_of = hosts_of(c);
	for (uint32_t r = 0; host_of && r < c->size; r++)
		all += host_of[r] == host && r != c->rank;
	for (uint32_t r = 0; host_of && r < c->size && n <= RANKS_MAX; r++) {
		if (host_of[r] != host || r == c->rank)
			continue;
		add(out, size, "%s%u", n == 0 ? "rank " : n == all - 1 ? " or " : ", ", r);
		n++;
	}
	if (n < all)
		add(out, size, " or %u more", all - n);
	add(out, size, n ? " (host %u)" : "host %u", host);
	free(host_of);
}

/* False: no rank is known. */
static bool missing_text(const struct nbmpi_comm *c, char *out, size_t size)
{
	uint32_t host[NBAR_STRAGGLERS_MAX];
	uint16_t why[NBAR_STRAGGLERS_MAX];
	int n = c->group ? nbar_missing_why(c->group, host, why, NBAR_STRAGGLERS_MAX) : 0;
	char reason[64];

	snprintf(out, size, "%s", n > 0 ? "" : "nobody known");
	for (int i = 0; i < n && i < (int)NBAR_STRAGGLERS_MAX; i++) {
		if (i > 0)
			add(out, size, ", ");
		add_host(c, host[i], out, size);
		nbar_why_text(why[i], reason, sizeof(reason));
		add(out, size, "%s%s", *reason ? ": " : "", reason);
	}
	return n > 0;
}

int nbmpi_fail_code(struct nbmpi_comm *c, int code)
{
	c->code = code;
	c->error = NBMPI_FAILED;
	nbmpi_bump(&c->failed);
	return c->error;
}

static int log_failed(struct nbmpi_comm *c, const char *missing, const char *cause)
{
	char text[800];

	snprintf(text, sizeof(text), "nbar: %s over %u ranks failed; missing: %s (%s)",
		 nbmpi_kind_text(c), c->size, missing, cause);
	return nbmpi_fail_code(c, nbmpi_self.start.ops->error(text));
}

void nbmpi_hosts_for_ranks(char *text)
{
	for (char *at = strstr(text, "rank "); at; at = strstr(at, "rank "))
		memcpy(at, "host", strlen("host"));
}

int nbmpi_fail(struct nbmpi_comm *c, int error)
{
	char cause[512], missing[200];

	snprintf(cause, sizeof(cause), "%s", nbar_error());
	if (c->nhost != c->size)
		nbmpi_hosts_for_ranks(cause);
	/* If our leader has ended, its in-process NIC has ended too, and names no rank. */
	if (!missing_text(c, missing, sizeof(missing)) && error == -ENETDOWN && c->group &&
	    c->rank != c->leader && nbmpi_self.start.config.where == NBMPI_WHERE_HOST)
		snprintf(missing, sizeof(missing), "rank %u", c->leader);
	return log_failed(c, missing, cause);
}

int nbmpi_fail_ended(struct nbmpi_comm *c, const struct nbmpi_mate *mate)
{
	char cause[80], missing[24];

	snprintf(missing, sizeof(missing), "rank %u", mate->rank);
	snprintf(cause, sizeof(cause), "its process %d has ended: look there for what went wrong",
		 mate->pid);
	return log_failed(c, missing, cause);
}

void nbmpi_log_missing(const struct nbmpi_comm *c, double seconds)
{
	char missing[400] = "";

	/* While its own NIC does not run, a host learns nothing about the others. */
	if (c->group)
		nbar_nic_why(c->group, missing, sizeof(missing));
	if (!*missing)
		missing_text(c, missing, sizeof(missing));
	nbmpi_log(1, "rank %u of %u has waited %.0f s in a%s %s; missing: %s", c->rank, c->size,
		  seconds, c->kind == NBMPI_ALLREDUCES ? "n" : "", nbmpi_kind_text(c), missing);
}

static uint64_t count_of(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void nbmpi_count(const struct nbmpi_comm *c, struct nbmpi_counters *out)
{
	uint64_t *why = c->kind == NBMPI_ALLREDUCES ? out->why_allreduce : out->why;
	uint64_t offloaded = count_of(&c->offloaded), fallback = 0;

	for (int i = NBMPI_WHY_none; i < NBMPI_WHY_END; i++) {
		uint64_t n = count_of(&c->fallback[i]);

		why[i] += n;
		fallback += n;
	}
	out->failed += count_of(&c->failed);
	if (c->kind == NBMPI_ALLREDUCES) {
		out->allreduces_by_nic += offloaded;
		out->allreduces_by_mpi += fallback;
		return;
	}
	if (c->nhost > 1)
		out->by_nic += offloaded;
	else
		out->by_host += offloaded;
	out->fallback += fallback;
	out->comms++;
}

void nbmpi_counters_read(struct nbmpi_counters *out)
{
	pthread_mutex_lock(&nbmpi_self.lock);
	*out = nbmpi_self.gone;
	for (const struct nbmpi_comm *c = nbmpi_self.comm; c; c = c->next)
		nbmpi_count(c, out);
	pthread_mutex_unlock(&nbmpi_self.lock);
}

static void log_reasons(const uint64_t why[NBMPI_WHY_END], const char *kind)
{
	for (int i = NBMPI_WHY_none; i < NBMPI_WHY_END; i++)
		if (why[i])
			nbmpi_log(1, "%llu %ss by fallback: %s", (unsigned long long)why[i], kind,
				  nbmpi_why_text((enum nbmpi_why)i));
}

void nbmpi_log_counters(void)
{
	struct nbmpi_counters n;

	nbmpi_counters_read(&n);
	nbmpi_log(
		1,
		"%llu barriers offloaded, %llu within the host, %llu by fallback, %llu failed, on %llu "
		"communicators",
		(unsigned long long)n.by_nic, (unsigned long long)n.by_host,
		(unsigned long long)n.fallback, (unsigned long long)n.failed,
		(unsigned long long)n.comms);
	log_reasons(n.why, "barrier");
	if (n.allreduces_by_nic + n.allreduces_by_mpi)
		nbmpi_log(1, "%llu allreduces offloaded, %llu by fallback",
			  (unsigned long long)n.allreduces_by_nic,
			  (unsigned long long)n.allreduces_by_mpi);
	log_reasons(n.why_allreduce, "allreduce");
}
