/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * predict.c - the critical path of a barrier. See predict.h.
 *
 * Called often while a barrier is composed: time and memory grow with its signals. The result
 * depends only on the arguments, so every rank gets the same result.
 */
#include "predict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "predict_shared.h"

/* Two ranks of one host need no message: they cost as much as a call. */
static double cost_o(const struct profile *p, uint32_t i, uint32_t j)
{
	return i == j ? profile_self(p, i) : profile_o(p, i, j);
}

static double cost_l(const struct profile *p, uint32_t i, uint32_t j)
{
	return i == j ? 0 : profile_l(p, i, j);
}

struct path {
	const struct schedule *s;
	const struct profile *p;
	const uint32_t *host;
	enum predict_formula formula;
	double *entered; /* by step; negative: not entered yet */
	double *sent;    /* by step: when its rank has sent all */
	double *arrived; /* by slot; sorted by time within a step that has ended */
};

/* A rank enters a step: its signals leave, one after the other. */
static void path_enter(struct path *x, uint32_t step, double now)
{
	const struct schedule *s = x->s;
	uint32_t i = x->host[s->rank_of[step]];
	double sending = 0;

	x->entered[step] = now;
	for (uint32_t g = s->first_send[step]; g < s->first_send[step + 1]; g++) {
		uint32_t j = x->host[s->send_dst[g]], slot = s->send_slot[g];
		double waits = x->entered[s->slot_step[slot]];
		bool waiting = x->formula == PREDICT_WAITING && waits >= 0 && waits <= now;

		sending += cost_l(x->p, i, j);
		x->arrived[slot] =
			now + sending + (waiting ? profile_self(x->p, i) : cost_o(x->p, i, j));
	}
	x->sent[step] = now + sending;
}

static int compare_times(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Insertion sort for a few; qsort for a root that waits for many. */
static void sort_times(double *t, uint32_t n)
{
	if (n > 16) {
		qsort(t, n, sizeof(*t), compare_times);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		double v = t[i];
		uint32_t k = i;

		for (; k > 0 && t[k - 1] > v; k--)
			t[k] = t[k - 1];
		t[k] = v;
	}
}

/* Returns the time when a rank is done with a step. The rank takes the messages one after the
 * other, in the order of arrival. The senders of one step are mostly similar hosts, so each message
 * costs their average L. */
static double path_leave(struct path *x, uint32_t step)
{
	const struct schedule *s = x->s;
	uint32_t first = s->first_slot[step], n = s->first_slot[step + 1] - first;
	double now = x->sent[step], each = 0;

	if (n > 1) {
		uint32_t i = x->host[s->rank_of[step]];

		for (uint32_t g = first; g < first + n; g++)
			each += cost_l(x->p, x->host[s->slot_src[g]], i) / n;
		sort_times(x->arrived + first, n);
	}
	for (uint32_t g = 0; g < n; g++) {
		double after = g ? now + each : now;

		now = x->arrived[first + g] > after ? x->arrived[first + g] : after;
	}
	return now;
}

static void path_run(struct path *x, double *done)
{
	const struct schedule *s = x->s;

	for (uint32_t i = 0; i < s->nstep; i++)
		x->entered[i] = -1;
	for (uint32_t at = 0; at < s->norder; at++) {
		uint32_t step = s->order[at], first = s->first_step[s->rank_of[step]];

		path_enter(x, step, step == first ? 0 : path_leave(x, step - 1));
	}
	for (uint32_t r = 0; r < s->size; r++) {
		uint32_t end = s->first_step[r + 1];

		done[r] = s->first_step[r] < end ? path_leave(x, end - 1) : 0;
	}
}

static int path_init(struct path *x)
{
	x->entered = malloc((x->s->nstep + 1) * sizeof(double));
	x->sent = malloc((x->s->nstep + 1) * sizeof(double));
	x->arrived = malloc((x->s->nsignal + 1) * sizeof(double));
	return x->entered && x->sent && x->arrived ? 0 : -ENOMEM;
}

static void path_free(struct path *x)
{
	free(x->entered);
	free(x->sent);
	free(x->arrived);
}

int predict_ranks(const struct schedule *s, const struct profile *p, const uint32_t *host,
		  enum predict_formula formula, double *done_s)
{
	struct path x = { .s = s, .p = p, .host = host, .formula = formula };
	int rc = s->norder == s->nstep ? 0 : -EINVAL;

	if (!rc && predict_is_shared(s, p, host))
		return predict_shared(s, p, host, formula, done_s);
	if (!rc)
		rc = path_init(&x);
	if (!rc)
		path_run(&x, done_s);
	path_free(&x);
	return rc;
}

int predict_run(const struct schedule *s, const struct profile *p, const uint32_t *host,
		enum predict_formula formula, struct predict *out)
{
	double *done = malloc((s->size + 1) * sizeof(*done)), call = 0;
	int rc = done ? predict_ranks(s, p, host, formula, done) : -ENOMEM;

	if (!rc) {
		*out = (struct predict){ .first_s = done[0] };
		for (uint32_t r = 0; r < s->size; r++) {
			double self = profile_self(p, host[r]);

			call = self > call ? self : call;
			out->first_s = done[r] < out->first_s ? done[r] : out->first_s;
			if (done[r] > out->all_s) {
				out->all_s = done[r];
				out->last = r;
			}
		}
		out->all_s += call;
		out->first_s += call;
	}
	free(done);
	return rc;
}
