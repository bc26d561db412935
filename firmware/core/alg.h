/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alg.h - the table of algorithms. No other code of the NIC knows their names.
 *
 * Names, ranges, limits, generators, help texts, tests and `--alg all` come from the rows below. A
 * new algorithm is one row here and, if no function of plan.c fits, one new function there. Used
 * when a group is opened and by tools; never on the path from token to completion. The table must
 * hold no pointers, because they would have to be relocated.
 */
#ifndef NBFW_ALG_H
#define NBFW_ALG_H

#include <stdbool.h>
#include <stdint.h>

#include "nbar_abi.h"

/* The most ranks of a barrier whose root waits for all other ranks in one step, and signals all of
 * them. */
#define NBFW_ROOT_MAX (NBAR_SLOTS_MAX + 1u)
NBAR_ABI_ASSERT(NBAR_SLOTS_MAX <= NBAR_SENDS_MAX && NBAR_SLOTS_MAX <= NBAR_PEERS_MAX,
		"a barrier with one root is limited by its slots");

/* clang-format off */
/*
 * X(KIND, name, param, low, high, usual, usual_end, limit, plan, help, source): one row each.
 *
 *   KIND    makes NBFW_ALG_KIND. The NICs of a group compare this number: new rows go to the end.
 *   name    what users write: lower case letters, at most 15.
 *   param   the parameter as help texts show it, ":N"; or "", and then the next four columns are 0.
 *   low     lowest value of the parameter; the column high has its highest value.
 *   usual   a name without a parameter means this value. `--alg all` runs usual to usual_end.
 *   limit   ranks of a group, at most.
 *   plan    a call of a function of plan.c. It may use w, size, rank, and the parameter n.
 *   help    one line, at most 60 characters.
 *   source  literature.
 *
 * Each file expands only the columns that it needs, so a NIC holds no help texts.
 */
#define NBFW_ALGS(X)                                                                             \
	X(PAIRWISE, "pairwise", "", 0, 0, 0, 0, NBAR_SIZE_MAX, plan_pairwise(w, size, rank),     \
	  "exchange among 2^k ranks; each other rank joins one of them",                         \
	  "Buntinas, Panda, Sadayappan 2001")                                                    \
	X(DISSEMINATION, "dissemination", ":N", 1, 16, 1, 3, NBAR_SIZE_MAX,                      \
	  plan_dissemination(w, size, rank, n),                                                  \
	  "each rank signals N others a round",                                                  \
	  "Hensgen, Finkel, Manber 1988; Hoefler, Mehlan, Mietke, Rehm 2006")                    \
	X(MCS, "mcs", "", 0, 0, 0, 0, NBAR_SIZE_MAX, plan_trees(w, size, rank, 4, 2),            \
	  "arrival up a tree of 4 ways, release down a tree of 2 ways",                          \
	  "Mellor-Crummey, Scott 1991, 3.5")                                                     \
	X(TOURNAMENT, "tournament", "", 0, 0, 0, 0, NBAR_SIZE_MAX,                               \
	  plan_knockout(w, size, rank, true),                                                    \
	  "rounds of pairs: a loser signals its winner, rank 0 wins",                            \
	  "Hensgen, Finkel, Manber 1988; Mellor-Crummey, Scott 1991, 3.4")                       \
	X(BINOMIAL, "binomial", "", 0, 0, 0, 0, NBAR_SIZE_MAX, plan_knockout(w, size, rank, false),\
	  "up a binomial tree to rank 0, and down again",                                        \
	  "Hoefler, Mehlan, Mietke, Rehm 2004")                                                  \
	X(LINEAR, "linear", "", 0, 0, 0, 0, NBFW_ROOT_MAX, plan_trees(w, size, rank, size, size),\
	  "all ranks signal rank 0, which then signals all",                                     \
	  "Meyer, Elster 2011")                                                                  \
	X(TREE, "tree", ":K", 1, 16, 2, 4, NBAR_SIZE_MAX, plan_trees(w, size, rank, n, n),       \
	  "up a tree of K ways to rank 0, and down again",                                       \
	  "Buntinas, Panda, Sadayappan 2001: gather and broadcast")

#define NBFW_ALG_ENUM_(kind, ...) NBFW_ALG_##kind,
#define NBFW_ALG_TEXT_(kind, name, param, ...) ", " name param
/* clang-format on */

enum nbfw_alg_kind {
	NBFW_ALG_CUSTOM,                     /* the host uploads the plan */
	NBFW_ALG_SIGNAL,                     /* no plan: raw messages; the host runs the protocol */
	NBFW_ALGS(NBFW_ALG_ENUM_)            /* the NIC makes the plans of these */
	NBFW_ALG_END,                        /* one more than the last */
	NBFW_ALG_FIRST = NBFW_ALG_SIGNAL + 1 /* the first row */
};

/* Names without a row. auto: the default of this NIC; custom: the host uploads a plan; signal: raw
 * messages, no barrier. */
#define NBFW_ALG_AUTO "auto"
#define NBFW_ALG_CUSTOM_NAME "custom"
#define NBFW_ALG_SIGNAL_NAME "signal"

/* "auto, pairwise, dissemination:N, ...": for messages; all names whose plans the NIC makes. */
#define NBFW_ALG_NAMES NBFW_ALG_AUTO NBFW_ALGS(NBFW_ALG_TEXT_)

struct nbfw_alg {
	enum nbfw_alg_kind kind;
	uint32_t n; /* the parameter; 0 if there is none */
};

/* The columns that a NIC needs. */
struct nbfw_alg_row {
	char name[16], param[4];
	uint8_t low, high, usual, usual_end;
	uint32_t limit;
};

/* The row of a kind below NBFW_ALG_END. */
const struct nbfw_alg_row *nbfw_alg_row(enum nbfw_alg_kind kind);

/* True if the NIC makes the plans of alg: a row of NBFW_ALGS with a parameter inside its range. */
bool nbfw_alg_plans(struct nbfw_alg alg);

/* The kind that a text such as "dissemination:3" begins with; NBFW_ALG_END if there is none. Does
 * not check the parameter. */
enum nbfw_alg_kind nbfw_alg_find(const char *text);

/*
 * Reads a name with or without its parameter from a zero-terminated text. "auto" becomes the
 * default of this NIC. -EINVAL: no such name, or no such parameter; -ERANGE: a parameter outside
 * the range that nbfw_alg_row(nbfw_alg_find(text)) has. *out changes only if the result is 0.
 */
int nbfw_alg_parse(const char *text, struct nbfw_alg *out);

/* Writes the name by which nbfw_alg_parse finds alg again, with its parameter if it has one. alg
 * must come from nbfw_alg_parse, or nbfw_alg_plans(alg) must hold. */
void nbfw_alg_name(struct nbfw_alg alg, char out[NBAR_NAME_MAX]);

#endif
