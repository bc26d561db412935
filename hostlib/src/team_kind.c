/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team_kind.c - the ways in which threads of a process meet: a count (sense-reverse), two kinds of
 * trees, rounds.
 *
 * Called by team.c. The threads arrive. One thread learns that all have arrived, and releases the
 * others: at once, or when the barrier of the group is complete. Each word holds the epoch of the
 * last barrier that a thread wrote it for. Epochs only grow, so the epoch serves as the sense. Only
 * the count of sense-reverse is reset. Nothing here allocates memory or knows the group.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"
#include "order.h"

/*
 * In a sense-reverse team of up to this size, the word that releases is in the cache line of the
 * count. Then the last thread owns the line when it has counted. This saves a transfer between
 * cores, and halves the time of two threads. But threads that poll the line delay threads that
 * still count, and the delay grows with the team.
 */
#define NEAR_MAX 4u
#define TAKES 64u
#define COUNT(word) ((uint32_t)((word) >> 32) & 0x7fffffffu) /* the uppermost bit: a sleeper */

/* Behind struct nbar_team, each thread has `lines` structs of this kind. The first holds the
 * thread's own epoch, which no other thread reads. Flags follow. In a tree: the flag that the
 * thread sets for its parent, and the flag that releases the thread. In a dissemination: a flag per
 * signal. */
struct line {
	uint64_t word;
	uint64_t reserved[15];
};
enum { LINE_MINE, LINE_UP, LINE_DOWN, LINES_OF_TREE, LINE_ROUND = LINE_UP };

_Static_assert(sizeof(struct line) == 128, "a pair of cache lines, as processors fetch them");
_Static_assert(sizeof(struct nbar_team) == 384, "three pairs of cache lines");
_Static_assert(NBLIB_SENSE_REVERSE == 0,
	       "nblib_kind_parse leaves kind, ways and lines of such a team 0");
_Static_assert(NBAR_TEAM_MAX <= 1u << 30, "child_up shifts by the number of a round");

static uint64_t *line_of(struct nbar_team *team, uint32_t thread, uint32_t line)
{
	struct line *first = (struct line *)(team + 1);

	return &first[(size_t)thread * team->lines + line].word;
}

/* Computes the number of rounds of a dissemination, in integer arithmetic. */
static uint32_t rounds_of(uint32_t size, uint32_t ways)
{
	uint32_t rounds = 0;

	for (uint64_t reach = 1; reach < size; reach *= ways + 1)
		rounds++;
	return rounds;
}

/* Returns N of "dissemination:N"; 0 for another text. */
static uint32_t ways_of(const char *kind)
{
	static const char name[] = "dissemination:";
	const char *digit = kind + sizeof(name) - 1;
	uint32_t ways = 0;

	if (strncmp(kind, name, sizeof(name) - 1) != 0 || *digit == '0')
		return 0;
	for (; *digit >= '0' && *digit <= '9' && ways <= NBAR_TEAM_WAYS_MAX; digit++)
		ways = ways * 10 + (uint32_t)(*digit - '0');
	return *digit == '\0' && ways <= NBAR_TEAM_WAYS_MAX ? ways : 0;
}

int nblib_kind_parse(struct nbar_team *team, const char *kind)
{
	if (!kind || strcmp(kind, "sense-reverse") == 0)
		return 0;
	team->lines = LINES_OF_TREE;
	if (strcmp(kind, "mcs") == 0) {
		team->kind = NBLIB_MCS;
	} else if (strcmp(kind, "tournament") == 0) {
		team->kind = NBLIB_TOURNAMENT;
	} else {
		team->kind = NBLIB_DISSEMINATION;
		team->ways = ways_of(kind);
		if (team->ways == 0)
			return nblib_fail(-EINVAL,
					  "no team is of kind \"%s\": it must be sense-reverse, "
					  "mcs, tournament, or dissemination:1 to dissemination:%u",
					  kind, NBAR_TEAM_WAYS_MAX);
		team->lines = LINE_ROUND + rounds_of(team->size, team->ways) * team->ways;
	}
	return 0;
}

uint64_t nblib_kind_bytes(const struct nbar_team *team)
{
	return sizeof(*team) + (uint64_t)team->size * team->lines * sizeof(struct line);
}

void nblib_kind_begin(struct nbar_team *team, uint32_t epoch)
{
	team->arrived = (uint64_t)team->size << 32 | epoch;
	team->released = epoch;
	for (uint32_t thread = 0; thread < team->size; thread++)
		for (uint32_t line = 0; line < team->lines; line++)
			*line_of(team, thread, line) = epoch;
}

static void signal_word(uint64_t *word, uint64_t value)
{
	if (order_team_signal(word, value) & NBLIB_TEAM_SLEEPS)
		nblib_wake_team(word);
}

static inline bool wait_word(const struct nbar_team *team, uint64_t *word, uint32_t ticket)
{
	return nblib_reached(order_completion_read(word), ticket) ||
	       nblib_wait_team(team, word, ticket);
}

/* --- sense-reverse --------------------------------------------------------------------------- */

static int count_arrive(struct nbar_team *team, uint32_t *ticket)
{
	uint64_t word = order_team_arrive(&team->arrived);

	*ticket = (uint32_t)word + 1;
	if (COUNT(word) != 1)
		return 0;
	/* If other threads wait for this word, the release writes it. */
	if (team->size > NEAR_MAX || (team->group && !team->local))
		order_team_reset(&team->arrived, (uint64_t)team->size << 32 | *ticket);
	return 1;
}

static void count_release(struct nbar_team *team, uint32_t ticket)
{
	if (team->size > NEAR_MAX)
		signal_word(&team->released, ticket);
	else
		signal_word(&team->arrived, (uint64_t)team->size << 32 | ticket);
}

/*
 * In a team of two, the waiting thread writes the word next, when it arrives again. So it reads the
 * word in a way that also fetches the cache line for writing. This saves a transfer, but takes the
 * line from the other thread; so the thread does this only for a short time.
 */
static bool count_take(struct nbar_team *team, uint32_t ticket)
{
	uint64_t seen = order_completion_read(&team->arrived);

	for (uint32_t i = 0; i < TAKES && !nblib_reached(seen, ticket); i++) {
		order_pause();
		order_team_take(&team->arrived, &seen);
	}
	return nblib_reached(seen, ticket);
}

static uint64_t *count_word(struct nbar_team *team)
{
	return team->size > NEAR_MAX ? &team->released : &team->arrived;
}

static bool count_wait(struct nbar_team *team, uint32_t ticket)
{
	return (team->size == 2 && nblib_spins(&team->wait) && count_take(team, ticket)) ||
	       wait_word(team, count_word(team), ticket);
}

bool nblib_kind_reached(const struct nbar_team *team, uint32_t ticket)
{
	const uint64_t *word = team->group ? &team->group->completion->word
					   : count_word((struct nbar_team *)(uintptr_t)team);

	return nblib_reached(order_completion_read(word), ticket);
}

/* --- trees ----------------------------------------------------------------------------------- */

/* Returns the child number k, from 0, that a thread waits for; NBAR_TEAM_MAX: no more children. */
static uint32_t child_up(const struct nbar_team *team, uint32_t me, uint32_t k)
{
	uint32_t child = NBAR_TEAM_MAX;

	if (team->kind == NBLIB_MCS && k < 4)
		child = 4 * me + 1 + k;
	else if (team->kind == NBLIB_TOURNAMENT && me % (2u << k) == 0)
		child = me + (1u << k); /* the loser of round k */
	return child < team->size ? child : NBAR_TEAM_MAX;
}

/* Returns the child number k that a thread wakes. In a tournament, a thread wakes the children that
 * it waits for; tree_release does this in reverse order. */
static uint32_t child_down(const struct nbar_team *team, uint32_t me, uint32_t k)
{
	if (team->kind == NBLIB_TOURNAMENT)
		return child_up(team, me, k);
	return k < 2 && 2 * me + 1 + k < team->size ? 2 * me + 1 + k : NBAR_TEAM_MAX;
}

static int tree_arrive(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	uint32_t child;

	for (uint32_t k = 0; (child = child_up(team, me, k)) != NBAR_TEAM_MAX; k++)
		if (!wait_word(team, line_of(team, child, LINE_UP), ticket))
			return -ECANCELED;
	if (me == 0)
		return 1;
	signal_word(line_of(team, me, LINE_UP), ticket);
	return 0;
}

/* Wakes the last child first: in a tournament, it has the largest subtree. */
static void tree_release(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	uint32_t k = 0;

	while (child_down(team, me, k) != NBAR_TEAM_MAX)
		k++;
	while (k-- > 0)
		signal_word(line_of(team, child_down(team, me, k), LINE_DOWN), ticket);
}

static bool tree_wait(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	if (!wait_word(team, line_of(team, me, LINE_DOWN), ticket))
		return false;
	tree_release(team, me, ticket);
	return true;
}

/* --- dissemination --------------------------------------------------------------------------- */

static uint32_t further(const struct nbar_team *team, uint32_t me, uint64_t distance)
{
	uint64_t thread = me + distance;

	return (uint32_t)(thread < team->size ? thread : thread - team->size);
}

/* Every thread learns that all have arrived; by convention, thread 0 posts or releases. */
static int rounds_arrive(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	uint32_t size = team->size, line = LINE_ROUND;

	for (uint64_t step = 1; step < size; step *= team->ways + 1, line += team->ways) {
		/* At a distance of `size` or more, the thread already has the signal. */
		for (uint32_t i = 1; i <= team->ways && i * step < size; i++)
			signal_word(line_of(team, further(team, me, i * step), line + i - 1),
				    ticket);
		for (uint32_t i = 1; i <= team->ways && i * step < size; i++)
			if (!wait_word(team, line_of(team, me, line + i - 1), ticket))
				return -ECANCELED;
	}
	return me == 0;
}

/* --------------------------------------------------------------------------------------------- */

int nblib_kind_arrive(struct nbar_team *team, uint32_t me, uint32_t *ticket)
{
	enum nblib_kind kind = (enum nblib_kind)team->kind;

	if (kind == NBLIB_SENSE_REVERSE)
		return count_arrive(team, ticket);
	*ticket = (uint32_t)++ * line_of(team, me, LINE_MINE);
	return kind == NBLIB_DISSEMINATION ? rounds_arrive(team, me, *ticket)
					   : tree_arrive(team, me, *ticket);
}

void nblib_kind_release(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	switch ((enum nblib_kind)team->kind) {
	case NBLIB_SENSE_REVERSE:
		count_release(team, ticket);
		return;
	case NBLIB_MCS:
	case NBLIB_TOURNAMENT:
		tree_release(team, me, ticket);
		return;
	case NBLIB_DISSEMINATION:
		signal_word(&team->released, ticket);
		return;
	}
}

bool nblib_kind_wait(struct nbar_team *team, uint32_t me, uint32_t ticket)
{
	switch ((enum nblib_kind)team->kind) {
	case NBLIB_SENSE_REVERSE:
		return count_wait(team, ticket);
	case NBLIB_MCS:
	case NBLIB_TOURNAMENT:
		return tree_wait(team, me, ticket);
	case NBLIB_DISSEMINATION:
		break;
	}
	return wait_word(team, &team->released, ticket);
}
