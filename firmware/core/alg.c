/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alg.c - finds, reads and writes names of algorithms. See alg.h, which has the table.
 *
 * Called when a group is opened. A text may be anything, but ends with a zero.
 */
#include "alg.h"

#include <stddef.h>

#include "plan.h"

static const struct nbfw_alg_row rows[] = {
	[NBFW_ALG_CUSTOM] = { .name = NBFW_ALG_CUSTOM_NAME, .limit = NBAR_SIZE_MAX },
	[NBFW_ALG_SIGNAL] = { .name = NBFW_ALG_SIGNAL_NAME, .limit = NBAR_SIZE_MAX },
#define ROW(kind, name, param, low, high, usual, usual_end, limit, ...) \
	[NBFW_ALG_##kind] = { name, param, low, high, usual, usual_end, limit },
	NBFW_ALGS(ROW)
#undef ROW
};

const struct nbfw_alg_row *nbfw_alg_row(enum nbfw_alg_kind kind)
{
	return &rows[kind];
}

bool nbfw_alg_plans(struct nbfw_alg alg)
{
	return alg.kind >= NBFW_ALG_FIRST && alg.kind < NBFW_ALG_END &&
	       alg.n >= rows[alg.kind].low && alg.n <= rows[alg.kind].high;
}

/* The part of text after word, or NULL if text does not begin with word. */
static const char *after(const char *text, const char *word)
{
	while (*word)
		if (*text++ != *word++)
			return NULL;
	return text;
}

static bool same(const char *text, const char *word)
{
	const char *rest = after(text, word);

	return rest && *rest == 0;
}

enum nbfw_alg_kind nbfw_alg_find(const char *text)
{
	uint32_t kind = 0;

	for (; kind < NBFW_ALG_END; kind++) {
		const char *rest = after(text, rows[kind].name);

		if (rest && (*rest == 0 || (*rest == ':' && *rows[kind].param)))
			break;
	}
	return (enum nbfw_alg_kind)kind;
}

/* Reads the parameter of a row. text: what follows the colon. */
static int parse_param(const char *text, const struct nbfw_alg_row *row, uint32_t *out)
{
	uint32_t n = 0;

	if (*text == 0)
		return -NBFW_EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -NBFW_EINVAL;
		if (n <= row->high)
			n = n * 10 + (uint32_t)(*text - '0');
	}
	if (n < row->low || n > row->high)
		return -NBFW_ERANGE;
	*out = n;
	return 0;
}

int nbfw_alg_parse(const char *text, struct nbfw_alg *out)
{
	struct nbfw_alg alg = { NBFW_ALG_DISSEMINATION, 1 }; /* the meaning of "auto" */

	if (!same(text, NBFW_ALG_AUTO)) {
		alg.kind = nbfw_alg_find(text);
		if (alg.kind == NBFW_ALG_END)
			return -NBFW_EINVAL;

		const struct nbfw_alg_row *row = &rows[alg.kind];
		const char *rest = after(text, row->name);
		int rc = *rest ? parse_param(rest + 1, row, &alg.n) : 0;

		if (rc)
			return rc;
		if (*rest == 0)
			alg.n = row->usual;
	}
	*out = alg;
	return 0;
}

void nbfw_alg_name(struct nbfw_alg alg, char out[NBAR_NAME_MAX])
{
	const struct nbfw_alg_row *row = &rows[alg.kind];
	uint32_t at = 0;

	for (; row->name[at]; at++)
		out[at] = row->name[at];
	if (*row->param) {
		out[at++] = ':';
		for (uint32_t ten = 100; ten > 0; ten /= 10)
			if (alg.n >= ten)
				out[at++] = (char)('0' + alg.n / ten % 10);
	}
	out[at] = 0;
}
