/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algs.c - algorithms as options of the tools name them. See algs.h.
 */
#include "algs.h"

#include <string.h>

#include "plan.h"
#include "tool.h"

#define WIDTH 80u /* of a screen */

bool algs_read(const char *text, struct nbfw_alg *out)
{
	return strlen(text) < NBAR_NAME_MAX && nbfw_alg_parse(text, out) == 0 &&
	       nbfw_alg_plans(*out);
}

int algs_refuse(const char *option, const char *text)
{
	struct nbfw_alg alg;

	if (nbfw_alg_parse(text, &alg) == -NBFW_ERANGE) {
		const struct nbfw_alg_row *row = nbfw_alg_row(nbfw_alg_find(text));

		return tool_usage("%s: '%s': %s of %s%s goes from %u to %u", option, text,
				  row->param + 1, row->name, row->param, row->low, row->high);
	}
	return tool_usage("%s: '%s' is none of " NBFW_ALG_NAMES ", all", option, text);
}

int algs_all(int (*each)(void *arg, const char *name), void *arg)
{
	int r = 0;

	for (uint32_t kind = NBFW_ALG_FIRST; kind < NBFW_ALG_END; kind++) {
		struct nbfw_alg alg = { (enum nbfw_alg_kind)kind, 0 };
		const struct nbfw_alg_row *row = nbfw_alg_row(alg.kind);
		char name[NBAR_NAME_MAX];

		for (alg.n = row->usual; r == 0 && alg.n <= row->usual_end; alg.n++) {
			nbfw_alg_name(alg, name);
			r = each(arg, name);
		}
	}
	return r;
}

void algs_names(FILE *to, const char *margin)
{
	static const char *const names[] = {
#define ROW(kind, name, param, ...) name param,
		NBFW_ALGS(ROW)
#undef ROW
			NBFW_ALG_AUTO,
		"all"
	};
	size_t n = sizeof(names) / sizeof(names[0]), column = 0;

	for (size_t i = 0; i < n; i++) {
		const char *before = !i ? margin : " ";

		if (column + strlen(names[i]) + 2 > WIDTH) {
			fputc('\n', to);
			column = 0;
			before = margin;
		}
		column += (size_t)fprintf(to, "%s%s%s", before, names[i], i + 1 < n ? "," : "\n");
	}
}
