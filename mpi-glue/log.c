/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - what the glue says to people: lines on stderr, texts of failures, counters.
 *
 * Called when a communicator is decided, when a barrier fails or waits for long, and at the end.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "comm_internal.h"
#include "tuned.h"

#define RANKS_MAX 7u /* of one host that a text names, beside its first */

void nbmpi_log(int verbose, const char *format, ...)
{
	char text[600];
	va_list args;

	if (nbmpi_self.start.config.verbose < verbose)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* One call, so that lines of different ranks do not mix. */
	fprintf(stderr, "nbar: %s\n", text);
}

const char *nbmpi_why_text(enum nbmpi_why why)
{
	static const char *const text[] = {
#define WHY_TEXT(name, text) [NBMPI_WHY_##name] = text,
		NBMPI_WHYS(WHY_TEXT)
#undef WHY_TEXT
	};

	return why < NBMPI_WHY_END ? text[why] : "an unknown reason";
}

void nbmpi_log_path(const struct nbmpi_comm *c)
{
	char who[48] = "";

	if (c->rank != 0)
		return;
	if (c->path == NBMPI_OFFLOADED) {
		if (c->group && nbmpi_self.start.config.where == NBMPI_WHERE_HOST)
			nbmpi_log(
				2,
				"communicator of %u ranks on %u hosts: barriers by in-process NICs "
				"them, %s",
				c->size, c->nhost, nbmpi_tuned_name(c));
		else if (c->group)
			nbmpi_log(
				2,
				"communicator of %u ranks on %u hosts: barriers offloaded to NICs, %s",
				c->size, c->nhost, nbmpi_tuned_name(c));
		else
			nbmpi_log(2, "communicator of %u ranks on one host: barriers by its ranks",
				  c->size);
		return;
	}
	/* A rank of its own has nothing to wait for: not worth a line. */
	if (c->why_rank != NBAR_RANK_NONE)
		snprintf(who, sizeof(who), "rank %u: ", c->why_rank);
	nbmpi_log(c->why == NBMPI_WHY_alone ? 2 : 1,
		  "communicator of %u ranks: fallback to MPI's barrier: %s%s", c->size, who,
		  nbmpi_why_text(c->why));
}

/* "rank 3", or "rank 3, 7 or 11 (host 1)" if these are on one host: its NIC tells no more. */
static size_t host_text(const struct nbmpi_comm *c, uint32_t host, char *out, size_t size)
{
	size_t at;
	uint32_t n = 0, more = 0;

	if (host >= c->nhost)
		return (size_t)snprintf(out, size, "an unknown rank");
	at = (size_t)snprintf(out, size, "rank %u", c->leaders[host]);
	if (c->nhost == c->size)
		return at;
	for (uint32_t r = c->leaders[host] + 1; r < c->size; r++)
		more += c->host_of[r] == host;
	for (uint32_t r = c->leaders[host] + 1; r < c->size && n < more && at < size; r++) {
		if (c->host_of[r] != host)
			continue;
		if (++n > RANKS_MAX) {
			at += (size_t)snprintf(out + at, size - at, " or %u more", more - n + 1);
			break;
		}
		at += (size_t)snprintf(out + at, size - at, n == more ? " or %u" : ", %u", r);
	}
	if (at < size)
		at += (size_t)snprintf(out + at, size - at, " (host %u)", host);
	return at;
}

/* False: nobody is known. */
static bool missing_text(const struct nbmpi_comm *c, char *out, size_t size)
{
	uint32_t host[NBAR_STRAGGLERS_MAX];
	int n = c->group ? nbar_missing(c->group, host, NBAR_STRAGGLERS_MAX) : 0;
	size_t at = 0;

	snprintf(out, size, "nobody known");
	for (int i = 0; i < n && i < (int)NBAR_STRAGGLERS_MAX && at + 2 < size; i++) {
		if (i > 0)
			at += (size_t)snprintf(out + at, size - at, ", ");
		at += host_text(c, host[i], out + at, size - at);
	}
	return n > 0;
}

static int failed(struct nbmpi_comm *c, const char *missing, const char *cause)
{
	char text[800];

	snprintf(text, sizeof(text), "nbar: barrier over %u ranks failed; missing: %s (%s)",
		 c->size, missing, cause);
	c->code = nbmpi_self.start.ops->error(text);
	c->error = NBMPI_FAILED;
	nbmpi_bump(&c->failed);
	return c->error;
}

/* A member of the group is a host here: where ranks share hosts, "rank 3" is to be "host 3". */
static void hosts_for_ranks(char *text)
{
	for (char *at = strstr(text, "rank "); at; at = strstr(at, "rank "))
		memcpy(at, "host", 4);
}

int nbmpi_fail(struct nbmpi_comm *c, int error)
{
	char cause[512], missing[200];

	snprintf(cause, sizeof(cause), "%s", nbar_error());
	if (c->nhost != c->size)
		hosts_for_ranks(cause);
	/* A NIC that is inside our leader can have gone with it, and then names nobody. */
	if (!missing_text(c, missing, sizeof(missing)) && error == -ENETDOWN && c->group &&
	    c->rank != c->leader && nbmpi_self.start.config.where == NBMPI_WHERE_HOST)
		snprintf(missing, sizeof(missing), "rank %u", c->leader);
	return failed(c, missing, cause);
}

int nbmpi_fail_ended(struct nbmpi_comm *c, const struct nbmpi_mate *mate)
{
	char cause[80], missing[24];

	snprintf(missing, sizeof(missing), "rank %u", mate->rank);
	snprintf(cause, sizeof(cause), "its process %d has ended: look there for what went wrong",
		 mate->pid);
	return failed(c, missing, cause);
}

void nbmpi_log_missing(const struct nbmpi_comm *c, double seconds)
{
	char missing[200];

	missing_text(c, missing, sizeof(missing));
	nbmpi_log(1, "rank %u of %u has waited %.0f s in a barrier; missing: %s", c->rank, c->size,
		  seconds, missing);
}

static uint64_t count_of(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void nbmpi_count(const struct nbmpi_comm *c, struct nbmpi_counters *out)
{
	uint64_t offloaded = count_of(&c->offloaded);

	if (c->nhost > 1)
		out->by_nic += offloaded;
	else
		out->by_host += offloaded;
	for (int i = 0; i < NBMPI_WHY_END; i++) {
		uint64_t n = count_of(&c->fallback[i]);

		out->why[i] += n;
		out->fallback += n;
	}
	out->failed += count_of(&c->failed);
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
	for (int i = 1; i < NBMPI_WHY_END; i++)
		if (n.why[i])
			nbmpi_log(1, "%llu barriers by fallback: %s", (unsigned long long)n.why[i],
				  nbmpi_why_text((enum nbmpi_why)i));
}
