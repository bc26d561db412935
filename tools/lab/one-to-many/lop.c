/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lop.c - see lop.h. Pure.
 */
#include "lop.h"

#include <errno.h>

struct line {
	double start, each;
};

/*
 * Fits a straight line to n points; its start and its slope must not be below 0. If the best line
 * without this condition has a start or a slope below 0, the best allowed line has 0 there.
 */
static struct line lop_fit_points(const double *x, const double *y, size_t n)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0, count = (double)n;

	for (size_t i = 0; i < n; i++) {
		sx += x[i];
		sy += y[i];
		sxx += x[i] * x[i];
		sxy += x[i] * y[i];
	}
	double each = (count * sxy - sx * sy) / (count * sxx - sx * sx);
	double start = (sy - each * sx) / count;

	if (each < 0)
		return (struct line){ sy > 0 ? sy / count : 0, 0 };
	if (start < 0)
		return (struct line){ 0, sxy > 0 ? sxy / sxx : 0 };
	return (struct line){ start, each };
}

#define POINTS_MAX 1024u

int lop_fit(const struct lop_point *point, size_t n, struct lop *out)
{
	double peers[POINTS_MAX], sent[POINTS_MAX], latency[POINTS_MAX];
	size_t differ = 0;

	if (n > POINTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		peers[i] = point[i].peers;
		sent[i] = point[i].sent_us;
		latency[i] = (point[i].rtt_us - point[i].sent_us) / 2;
		differ += point[i].peers != point[0].peers;
	}
	if (differ == 0)
		return -EINVAL;
	struct line o = lop_fit_points(peers, sent, n), l = lop_fit_points(peers, latency, n);

	*out = (struct lop){ o.start, o.each, l.start, l.each };
	return 0;
}

double lop_o(const struct lop *m, double peers)
{
	return m->o_start / peers + m->o_each;
}

double lop_l(const struct lop *m, double peers)
{
	return m->l_start + m->l_each * peers;
}

double lop_round(const struct lop *m, uint32_t peers)
{
	return peers * lop_o(m, peers) + lop_l(m, peers);
}

double lop_barrier(const struct lop *m, uint32_t size, uint32_t ways)
{
	double us = 0;

	/* As the plan has it: a peer at a distance of size or more is left out. */
	for (uint64_t distance = 1; distance < size; distance *= ways + 1) {
		uint64_t peers = (size - 1) / distance;

		us += lop_round(m, peers < ways ? (uint32_t)peers : ways);
	}
	return us;
}

uint32_t lop_ways(const struct lop *m, uint32_t size, uint32_t most)
{
	uint32_t best = 1;

	for (uint32_t n = 2; n <= most; n++)
		if (lop_barrier(m, size, n) < lop_barrier(m, size, best) * (1 - 1e-9))
			best = n;
	return best;
}
