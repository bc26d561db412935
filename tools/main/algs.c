/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algs.c - algorithms as options of the tools name them. See algs.h.
 */
#include "algs.h"

#include <string.h>

#include "plan.h"
#include "tool.h"

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

static void usage_row(FILE *to, const char *name, const char *help, uint32_t low, uint32_t high,
		      uint32_t usual, uint32_t usual_end)
{
	fprintf(to, "  %-17s %s\n", name, help);
	if (high)
		fprintf(to, "  %-17s %s: %u to %u; all: %u to %u\n", "", strchr(name, ':') + 1, low,
			high, usual, usual_end);
}

void algs_usage(FILE *to)
{
	fputs("Algorithms:\n", to);
#define ROW(kind, name, param, low, high, usual, usual_end, limit, plan, help, source) \
	usage_row(to, name param, help, low, high, usual, usual_end);
	NBFW_ALGS(ROW)
#undef ROW
	usage_row(to, NBFW_ALG_AUTO, "what the NIC thinks best", 0, 0, 0, 0);
	usage_row(to, "all", "each of them, but for " NBFW_ALG_AUTO, 0, 0, 0, 0);
}
