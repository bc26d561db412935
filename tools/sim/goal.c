/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * goal.c - writes and reads GOAL; see goal.h.
 */
#include "goal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The sends of a step wait for all slots of earlier steps: a calc of length 0 joins these slots. */
static void write_rank(const struct sim_plans *plans, uint32_t m, FILE *to)
{
	const struct nbar_plan *p = sim_plan(plans, m);
	const struct nbar_step *step = nbfw_plan_steps(p);
	uint32_t label = 0, joined = 0;

	fprintf(to, "\nrank %u {\n", m);
	for (uint32_t k = 0; k < p->nstep; k++) {
		for (uint32_t i = step[k].first_send; i < step[k].first_send + step[k].nsend; i++) {
			const struct nbar_send *s = &nbfw_plan_sends(p)[i];

			fprintf(to, "l%u: send 1b to %u tag %u\n", ++label,
				sim_plans_rank(plans, m, s->dst), s->slot);
			if (joined)
				fprintf(to, "l%u requires l%u\n", label, joined);
		}
		uint32_t first = label + 1;

		for (uint32_t i = step[k].first_slot; i < step[k].first_slot + step[k].nslot; i++)
			fprintf(to, "l%u: recv 1b from %u tag %u\n", ++label,
				sim_plans_rank(plans, m, nbfw_plan_recvs(p)[i].src), i);
		uint32_t last = label, before = joined;

		joined = ++label;
		fprintf(to, "l%u: calc 0\n", joined);
		for (uint32_t i = first; i <= last; i++)
			fprintf(to, "l%u requires l%u\n", joined, i);
		if (before)
			fprintf(to, "l%u requires l%u\n", joined, before);
	}
	fputs("}\n", to);
}

void goal_write(const struct sim_plans *plans, FILE *to)
{
	fprintf(to, "num_ranks %u\n", plans->size);
	for (uint32_t m = 0; m < plans->size; m++)
		write_rank(plans, m, to);
}

struct label {
	char *name;
	uint32_t op;
};

struct reader {
	struct goal *g;
	uint32_t line;
	bool in_rank;
	uint32_t rank;
	struct label *label; /* of this rank: a hash table */
	uint32_t nlabel, label_room;
	char *why;
	size_t room;
};

__attribute__((format(printf, 2, 3))) static int bad(struct reader *r, const char *format, ...)
{
	va_list args;
	int n = snprintf(r->why, r->room, "line %u: ", r->line);

	va_start(args, format);
	if (n > 0 && (size_t)n < r->room)
		vsnprintf(r->why + n, r->room - (size_t)n, format, args);
	va_end(args);
	return -EINVAL;
}

static void drop_labels(struct reader *r)
{
	for (uint32_t i = 0; i < r->label_room; i++)
		free(r->label[i].name);
	free(r->label);
	r->label = NULL;
	r->nlabel = r->label_room = 0;
}

/* The label of this name, or the free place for it. The table is never full. */
static struct label *find_label(const struct reader *r, const char *name)
{
	uint32_t at = 5381;

	for (const char *c = name; *c; c++)
		at = at * 33 ^ (unsigned char)*c;
	at = (at ^ at >> 15) % r->label_room;
	while (r->label[at].name && strcmp(r->label[at].name, name))
		at = at + 1 < r->label_room ? at + 1 : 0;
	return &r->label[at];
}

static int grow_labels(struct reader *r)
{
	struct reader old = *r;

	if (2 * r->nlabel < r->label_room)
		return 0;
	r->label_room = 4 * old.label_room + 64;
	r->label = calloc(r->label_room, sizeof(*r->label));
	if (!r->label) {
		*r = old;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < old.label_room; i++)
		if (old.label[i].name)
			*find_label(r, old.label[i].name) = old.label[i];
	free(old.label);
	return 0;
}

/* Makes room for one more item. */
static int grow(void **array, uint32_t n, uint32_t *room, size_t size)
{
	if (n < *room)
		return 0;
	uint32_t more = 2 * *room + 64;
	void *at = more < GOAL_OPS_MAX ? realloc(*array, more * size) : NULL;

	if (!at)
		return -ENOMEM;
	*array = at;
	*room = more;
	return 0;
}

static int add_op(struct reader *r, const char *name, const struct goal_op *op)
{
	struct goal *g = r->g;
	struct label *l;

	if (grow_labels(r) || grow((void **)&g->op, g->nop, &g->op_room, sizeof(*op)))
		return -ENOMEM;
	l = find_label(r, name);
	if (l->name)
		return bad(r, "label '%s' is used twice", name);
	l->name = strdup(name);
	if (!l->name)
		return -ENOMEM;
	l->op = g->nop;
	r->nlabel++;
	g->op[g->nop++] = *op;
	return 0;
}

/* Parses "send 8b to 3 tag 7", after the label. */
static int read_op(struct reader *r, const char *name, const char *text)
{
	struct goal_op op = { .rank = r->rank };
	char verb[8], word[8];
	int n = 0, end = -1;

	if (sscanf(text, "calc %" SCNu64 " %n", &op.size, &end) == 1 && end > 0 && !text[end]) {
		op.type = GOAL_CALC;
		return op.size > UINT64_C(1000000000000) ? bad(r, "calc of more than 1000 s")
							 : add_op(r, name, &op);
	}
	if (sscanf(text, "%7s %" SCNu64 "b %7s %" SCNu32 " %n", verb, &op.size, word, &op.peer,
		   &n) != 4 ||
	    (strcmp(verb, "send") && strcmp(verb, "recv")) ||
	    strcmp(word, *verb == 's' ? "to" : "from"))
		return bad(r, "'%s' is none of send, recv and calc", text);
	op.type = *verb == 's' ? GOAL_SEND : GOAL_RECV;
	if (text[n] && (sscanf(text + n, "tag %" SCNu32 " %n", &op.tag, &end) != 1 || end < 0 ||
			text[n + end]))
		return bad(r, "'%s' is no tag; processors and NICs cannot be chosen", text + n);
	if (op.peer >= r->g->ranks)
		return bad(r, "there is no rank %u: num_ranks is %u", op.peer, r->g->ranks);
	if (op.size == 0 || op.size > GOAL_BYTES_MAX)
		return bad(r,
			   "%" PRIu64 " bytes: 1 to %u are sent eagerly, and nothing else is "
			   "simulated",
			   op.size, GOAL_BYTES_MAX);
	return add_op(r, name, &op);
}

static int read_dep(struct reader *r, const char *name, const char *on, bool at_start)
{
	const struct label *first = r->nlabel ? find_label(r, name) : NULL;
	const struct label *second = r->nlabel ? find_label(r, on) : NULL;
	struct goal *g = r->g;

	if (!first || !first->name || !second->name)
		return bad(r, "no label is called '%s'", first && first->name ? on : name);
	if (grow((void **)&g->dep, g->ndep + 1, &g->dep_room, sizeof(*g->dep)))
		return -ENOMEM;
	g->ndep += g->ndep == 0;
	g->dep[g->ndep] = (struct goal_dep){ first->op, g->op[second->op].next_dep, at_start };
	g->op[second->op].next_dep = g->ndep++;
	g->op[first->op].waits++;
	return 0;
}

static int read_in_rank(struct reader *r, char *text)
{
	char name[64], on[64];
	char *colon = strchr(text, ':');
	int end = -1;

	if (!strcmp(text, "}")) {
		r->in_rank = false;
		drop_labels(r);
		return 0;
	}
	if (colon) {
		*colon = 0;
		return read_op(r, text, colon + 1 + strspn(colon + 1, " \t"));
	}
	if (sscanf(text, "%63s requires %63s %n", name, on, &end) == 2 && end > 0 && !text[end])
		return read_dep(r, name, on, false);
	if (sscanf(text, "%63s irequires %63s %n", name, on, &end) == 2 && end > 0 && !text[end])
		return read_dep(r, name, on, true);
	return bad(r, "'%s' is no operation and no dependency", text);
}

static int read_line(struct reader *r, char *text)
{
	struct goal *g = r->g;
	int end = -1;

	while (isspace((unsigned char)*text))
		text++;
	for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
		text[n - 1] = 0;
	if (!*text || !strncmp(text, "//", 2))
		return 0;
	if (r->in_rank)
		return read_in_rank(r, text);
	if (sscanf(text, "num_ranks %" SCNu32 " %n", &r->rank, &end) == 1 && end > 0 &&
	    !text[end]) {
		if (g->ranks || r->rank == 0 || r->rank > GOAL_RANKS_MAX)
			return bad(r, "num_ranks must be given once, from 1 to %u", GOAL_RANKS_MAX);
		g->ranks = r->rank;
		return 0;
	}
	if (sscanf(text, "rank %" SCNu32 " { %n", &r->rank, &end) == 1 && end > 0 && !text[end]) {
		r->in_rank = true;
		return r->rank < g->ranks ? 0 : bad(r, "there is no rank %u", r->rank);
	}
	return bad(r, "'%s' is neither num_ranks nor a rank", text);
}

/* Dependants were added at the front: reverses their lists into the order of the file. */
static void reverse_deps(struct goal *g)
{
	for (uint32_t i = 0; i < g->nop; i++) {
		uint32_t first = 0;

		for (uint32_t d = g->op[i].next_dep, next; d; d = next) {
			next = g->dep[d].next;
			g->dep[d].next = first;
			first = d;
		}
		g->op[i].next_dep = first;
	}
}

int goal_read(FILE *from, struct goal *g, char *why, size_t room)
{
	struct reader r = { .g = g, .why = why, .room = room };
	char *text = NULL;
	size_t length = 0;
	int e = 0;

	*g = (struct goal){ 0 };
	while (!e && getline(&text, &length, from) >= 0) {
		r.line++;
		e = read_line(&r, text);
	}
	if (!e && (r.in_rank || g->ranks == 0))
		e = bad(&r, "the file ends too early");
	reverse_deps(g);
	if (e == -ENOMEM)
		snprintf(why, room, "line %u: no memory", r.line);
	drop_labels(&r);
	free(text);
	if (e)
		goal_free(g);
	return e;
}

void goal_free(struct goal *g)
{
	free(g->op);
	free(g->dep);
	*g = (struct goal){ 0 };
}
