/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit_picture.c - draws a barrier as SVG, or for Graphviz: time goes from left to right, each
 * member is a line, and each signal is an arrow at its predicted time.
 */
#include <stdlib.h>

#include "emit.h"
#include "predict.h"

/* Names come from a file. So this leaves out the characters that XML and dot interpret. */
static void write_name(const char *name, FILE *to)
{
	for (const char *c = name; *c; c++)
		fputc(*c < ' ' || *c == '<' || *c == '>' || *c == '&' || *c == '"' || *c == '\\'
			      ? '?'
			      : *c,
		      to);
}

static void write_steps(const struct schedule *s, const struct profile *p, uint32_t host,
			uint32_t rank, FILE *to)
{
	fprintf(to, "\tsubgraph cluster_%u {\n\t\tlabel=\"%u ", rank, rank);
	write_name(p->name[host], to);
	fputs("\";\n", to);
	for (uint32_t i = s->first_step[rank]; i < s->first_step[rank + 1]; i++)
		fprintf(to, "\t\ts%u [label=\"%u\"];\n", i, i - s->first_step[rank]);
	fprintf(to, "\t\te%u [label=\"end\"];\n", rank);
	for (uint32_t i = s->first_step[rank]; i < s->first_step[rank + 1]; i++) {
		if (i + 1 < s->first_step[rank + 1])
			fprintf(to, "\t\ts%u -> s%u [style=dotted];\n", i, i + 1);
		else
			fprintf(to, "\t\ts%u -> e%u [style=dotted];\n", i, rank);
	}
	fputs("\t}\n", to);
}

void emit_dot(const struct schedule *s, const struct profile *p, const uint32_t *host, FILE *to)
{
	fputs("digraph barrier {\n\trankdir=LR;\n\tnode [shape=circle];\n", to);
	for (uint32_t r = 0; r < s->size; r++)
		write_steps(s, p, host[r], r, to);
	for (uint32_t step = 0; step < s->nstep; step++) {
		for (uint32_t i = s->first_send[step]; i < s->first_send[step + 1]; i++) {
			uint32_t wait = s->slot_step[s->send_slot[i]], rank = s->send_dst[i];

			if (wait + 1 < s->first_step[rank + 1])
				fprintf(to, "\ts%u -> s%u;\n", step, wait + 1);
			else
				fprintf(to, "\ts%u -> e%u;\n", step, rank);
		}
	}
	fputs("}\n", to);
}

#define LEFT 110.0
#define WIDTH 900.0
#define ROW 22.0

static void write_arrows(const struct schedule *s, const struct predict_times *t, double scale,
			 FILE *to)
{
	for (uint32_t step = 0; step < s->nstep; step++) {
		for (uint32_t i = s->first_send[step]; i < s->first_send[step + 1]; i++) {
			fprintf(to,
				"<line x1=\"%.2f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\" "
				"marker-end=\"url(#a)\"/>\n",
				LEFT + t->entered[step] * scale, ROW * (s->rank_of[step] + 1.0),
				LEFT + t->arrived[s->send_slot[i]] * scale,
				ROW * (s->send_dst[i] + 1.0));
		}
	}
}

void emit_svg(const struct schedule *s, const struct profile *p, const uint32_t *host, FILE *to)
{
	struct predict_times t;
	double end = 0;

	if (predict_times(s, p, host, PREDICT_FIRST, &t))
		return;
	for (uint32_t r = 0; r < s->size; r++)
		end = t.done[r] > end ? t.done[r] : end;
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<defs><marker id=\"a\" markerWidth=\"7\" markerHeight=\"6\" refX=\"7\" refY=\"3\" "
		"orient=\"auto\"><path d=\"M0,0 L7,3 L0,6 z\" fill=\"#15c\"/></marker></defs>\n"
		"<g stroke=\"#999\">\n",
		LEFT + WIDTH + 20, ROW * (s->size + 2.0));
	for (uint32_t r = 0; r < s->size; r++)
		fprintf(to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.2f\" y2=\"%.1f\"/>\n", LEFT,
			ROW * (r + 1.0), LEFT + (end > 0 ? t.done[r] / end : 0) * WIDTH,
			ROW * (r + 1.0));
	fputs("</g>\n<g stroke=\"#15c\">\n", to);
	write_arrows(s, &t, end > 0 ? WIDTH / end : 0, to);
	fputs("</g>\n", to);
	for (uint32_t r = 0; r < s->size; r++) {
		fprintf(to, "<text x=\"4\" y=\"%.1f\">%u ", ROW * (r + 1.0) + 4, r);
		write_name(p->name[host[r]], to);
		fputs("</text>\n", to);
	}
	fprintf(to,
		"<text x=\"%.0f\" y=\"%.1f\">0</text><text x=\"%.0f\" y=\"%.1f\" "
		"text-anchor=\"end\">%.2f us</text>\n</svg>\n",
		LEFT, ROW * (s->size + 1.5), LEFT + WIDTH, ROW * (s->size + 1.5), end * 1e6);
	predict_times_free(&t);
}
