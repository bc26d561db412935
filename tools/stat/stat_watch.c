/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_watch.c - see stat_watch.h. A group waits if it is in the same barrier as at the last look,
 * or if its NIC knows stragglers. A group in a new barrier without stragglers does not wait.
 */
#include "stat_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define HEAD_ROWS 2u /* of the screen: above the NICs, and above the groups */
#define STATE_BYTES 160u

/* The epoch in which a group was seen, and the time of the first look that found this epoch. By
 * index of the group. */
struct seen {
	bool running;
	uint32_t epoch;
	uint64_t since;
};

struct waiting {
	uint32_t nic;
	const struct nbar_group_info *group;
	uint64_t ns;
};

struct nic_watch {
	struct seen *seen;
	uint32_t room;
	uint32_t nfailed, nwaiting;
};

struct stat_watch {
	struct nic_watch nic[NBAR_NICS_MAX];
	struct waiting *waiting; /* the longest first */
	uint32_t n, room;
};

struct stat_watch *stat_watch_new(void)
{
	return tool_alloc(1, sizeof(struct stat_watch));
}

void stat_watch_free(struct stat_watch *w)
{
	for (uint32_t i = 0; i < NBAR_NICS_MAX; i++)
		free(w->nic[i].seen);
	free(w->waiting);
	free(w);
}

static int seen_reserve(struct nic_watch *n, uint32_t index)
{
	uint32_t room = n->room ? n->room : 64;
	struct seen *more;

	while (room <= index)
		room *= 2;
	if (room == n->room)
		return 0;
	more = realloc(n->seen, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + n->room, 0, (room - n->room) * sizeof(*more));
	n->seen = more;
	n->room = room;
	return 0;
}

static int waiting_add(struct stat_watch *w, uint32_t nic, const struct nbar_group_info *g,
		       uint64_t ns)
{
	if (w->n == w->room) {
		uint32_t room = w->room ? 2 * w->room : 64;
		struct waiting *more = realloc(w->waiting, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		w->waiting = more;
		w->room = room;
	}
	w->waiting[w->n++] = (struct waiting){ .nic = nic, .group = g, .ns = ns };
	return 0;
}

static int look_at_group(struct stat_watch *w, uint32_t nic, const struct nbar_group_info *g,
			 uint64_t now)
{
	struct nic_watch *n = &w->nic[nic];
	struct seen *seen;
	bool same;

	if (seen_reserve(n, g->index) < 0)
		return -ENOMEM;
	seen = &n->seen[g->index];
	same = seen->running && g->running && seen->epoch == g->epoch;
	if (!same)
		*seen = (struct seen){ g->running, g->epoch, now };
	n->nfailed += g->status != NBAR_STATUS_OK && g->life != NBAR_LIFE_LINGER;
	if (g->status != NBAR_STATUS_OK || !g->running || !(same || g->nstragglers))
		return 0;
	n->nwaiting++;
	return waiting_add(w, nic, g, now - seen->since);
}

/* Forgets the groups that the NIC no longer has. */
static void forget_gone(struct nic_watch *n, const struct stat_nic *s)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->ngroup && s->group[i].index < n->room; i++) {
		for (; at < s->group[i].index; at++)
			n->seen[at].running = false;
		at++;
	}
	for (; at < n->room; at++)
		n->seen[at].running = false;
}

static int watch_by_time(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->ns != y->ns)
		return (x->ns < y->ns) - (x->ns > y->ns);
	if (x->nic != y->nic)
		return (x->nic > y->nic) - (x->nic < y->nic);
	return (x->group->index > y->group->index) - (x->group->index < y->group->index);
}

int stat_watch_look(struct stat_watch *w, const struct stat_targets *t)
{
	int r = 0;

	w->n = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct stat_nic *s = &t->now[i];

		w->nic[i].nfailed = w->nic[i].nwaiting = 0;
		forget_gone(&w->nic[i], s);
		for (uint32_t k = 0; k < s->ngroup && r == 0; k++)
			r = look_at_group(w, i, &s->group[k], s->at);
	}
	if (w->n)
		qsort(w->waiting, w->n, sizeof(w->waiting[0]), watch_by_time);
	return r;
}

/* The rate of the sum of these counters, as text; "-" without an earlier reply of this daemon. */
static const char *watch_rate(const struct stat_targets *t, uint32_t i,
			      const enum nbar_counter *counter, uint32_t n, char out[24])
{
	const struct stat_nic *now = &t->now[i], *before = &t->before[i];
	uint64_t sum = 0;

	if (now->nic.pid != before->nic.pid || now->at <= before->at)
		return strcpy(out, "-");
	for (uint32_t k = 0; k < n; k++)
		sum += now->nic.counter[counter[k]] - before->nic.counter[counter[k]];
	snprintf(out, 24, "%.1f", (double)sum * 1e9 / (double)(now->at - before->at));
	return out;
}

static const struct column {
	const char *name;
	enum nbar_counter counter[3];
	uint32_t n;
} column[] = {
	{ "barriers/s", { NBAR_COUNTER_barriers_completed }, 1 },
	{ "tokens/s", { NBAR_COUNTER_tokens_received }, 1 },
	{ "pulls/s", { NBAR_COUNTER_pulls_sent }, 1 },
	{ "drops/s",
	  { NBAR_COUNTER_wire_drops, NBAR_COUNTER_wire_errors, NBAR_COUNTER_replies_dropped },
	  3 },
};
#define COLUMNS (sizeof(column) / sizeof(column[0]))

/* "n0 group 3, rank 1/4, epoch 7: 12 s, waits for 3; late: 3, 5" */
static void print_waiting(const struct stat_targets *t, const struct waiting *x, FILE *to)
{
	const struct nbar_group_info *g = x->group;

	fprintf(to, "%s group %u, rank %u/%u, epoch %u: %llu s, ", t->now[x->nic].nic.nic, g->index,
		g->rank, g->size, g->epoch, (unsigned long long)(x->ns / UINT64_C(1000000000)));
	stat_print_state(to, g);
}

static const struct waiting *longest_of(const struct stat_watch *w, uint32_t nic)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->waiting[i].nic == nic)
			return &w->waiting[i];
	return NULL;
}

void stat_watch_lines(const struct stat_watch *w, const struct stat_targets *t, const char *time,
		      FILE *to)
{
	char text[24];

	for (uint32_t i = 0; i < t->n; i++) {
		const struct waiting *x = longest_of(w, i);

		fprintf(to, "%s %s:", time, t->now[i].nic.nic);
		for (uint32_t c = 0; c < COLUMNS; c++)
			fprintf(to, " %s %s,",
				watch_rate(t, i, column[c].counter, column[c].n, text),
				column[c].name);
		fprintf(to, " groups %u, waiting %u, failed %u", t->now[i].nic.ngroup,
			w->nic[i].nwaiting, w->nic[i].nfailed);
		if (x) {
			fputs("; ", to);
			print_waiting(t, x, to);
		}
		fputc('\n', to);
	}
}

/* Prints a line of the screen, cut to the width, and clears the rest of the row. */
static void row(FILE *to, uint32_t columns, const char *text)
{
	fprintf(to, "%.*s\033[K\r\n", (int)columns, text);
}

static void nic_row(const struct stat_watch *w, const struct stat_targets *t, uint32_t i,
		    uint32_t columns, FILE *to)
{
	char line[256], text[24];
	int n = snprintf(line, sizeof(line), "%-12s", t->now[i].nic.nic);

	for (uint32_t c = 0; c < COLUMNS; c++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %11s",
			      watch_rate(t, i, column[c].counter, column[c].n, text));
	snprintf(line + n, sizeof(line) - (size_t)n, " %6u %7u %6u", t->now[i].nic.ngroup,
		 w->nic[i].nwaiting, w->nic[i].nfailed);
	row(to, columns, line);
}

static void waiting_row(const struct stat_targets *t, const struct waiting *x, uint32_t columns,
			FILE *to)
{
	char line[STATE_BYTES] = "";
	FILE *text = fmemopen(line, sizeof(line), "w");

	if (text) {
		print_waiting(t, x, text);
		fclose(text);
	}
	row(to, columns, line);
}

/* The number of items of a list of n that are shown in `room` rows. If not all fit, the last row
 * says how many are left out. */
static uint32_t rows_of(uint32_t n, uint32_t room)
{
	return n <= room ? n : room > 0 ? room - 1 : 0;
}

static void more_row(uint32_t left, uint32_t room, const char *what, uint32_t columns, FILE *to)
{
	char line[64];

	snprintf(line, sizeof(line), "... and %u more %s", left, what);
	if (left && room)
		row(to, columns, line);
}

void stat_watch_screen(const struct stat_watch *w, const struct stat_targets *t, const char *time,
		       uint32_t rows, uint32_t columns, FILE *to)
{
	/* The last row stays empty, so that the terminal does not scroll. */
	uint32_t room = rows > 2 * HEAD_ROWS + 1 ? rows - 2 * HEAD_ROWS - 1 : 0;
	uint32_t for_nics = t->n < room / 2 ? t->n : room / 2, shown = rows_of(t->n, for_nics);
	char line[256];
	int n;

	fputs("\033[H", to);
	snprintf(line, sizeof(line), "nbar stat  %s  %u NICs, %u groups wait  (Ctrl-C ends)", time,
		 t->n, w->n);
	row(to, columns, line);
	n = snprintf(line, sizeof(line), "%-12s", "NIC");
	for (uint32_t c = 0; c < COLUMNS; c++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %11s", column[c].name);
	snprintf(line + n, sizeof(line) - (size_t)n, " groups waiting failed");
	row(to, columns, line);
	for (uint32_t i = 0; i < shown; i++)
		nic_row(w, t, i, columns, to);
	more_row(t->n - shown, for_nics, "NICs", columns, to);
	row(to, columns, "");
	row(to, columns, w->n ? "Groups that wait, the longest first:" : "No group waits.");
	room -= for_nics;
	shown = rows_of(w->n, room);
	for (uint32_t i = 0; i < shown; i++)
		waiting_row(t, &w->waiting[i], columns, to);
	more_row(w->n - shown, room, "groups", columns, to);
	fputs("\033[J", to);
}
