/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lop.h - the LoP model of messages that are posted one after the other, fitted to a 1:P ping-pong.
 * The model suggests the n of an n-way dissemination.
 *
 * LoP (Hoefler, Rehm: A communication model for small messages with InfiniBand, 2005) is LogP with
 * overhead and latency as functions of the number P of messages just posted. Only this definition
 * is from the paper; nbar adds the shape of the two functions:
 *
 * One node posts P messages in the time S(P). It has all P answers at the time R(P) after its first
 * post.
 *
 *     o(P) = S(P) / P             cost of a message for the processor that posts it
 *     L(P) = (R(P) - S(P)) / 2    half of the remaining time of the way there and back
 *
 * The start takes some time. Each message then adds the time of the stages that handle one message
 * at a time: posting, NIC, wire. So both S and L are straight lines in P,
 *
 *     S(P) = o_start + o_each P        L(P) = l_start + l_each P
 *
 * with no coefficient below 0. Then R(P)/P falls, and later settles, as in the literature.
 *
 * In a round of a dissemination with k peers, each member posts k messages and waits for k messages
 * that are in flight at the same time. So a round takes k o(k) + L(k), and a barrier takes the sum
 * of its rounds. The model does not know that members may share a processor or a NIC, where their
 * messages wait for each other. Pure.
 */
#ifndef NBAR_TOOLS_LOP_H
#define NBAR_TOOLS_LOP_H

#include <stddef.h>
#include <stdint.h>

struct lop_point {
	uint32_t peers; /* P */
	double sent_us; /* S(P) */
	double rtt_us;  /* R(P) */
};

struct lop {
	double o_start, o_each, l_start, l_each; /* us */
};

/* Fits the model by least squares. 0, or -EINVAL if all points have the same P. */
int lop_fit(const struct lop_point *point, size_t n, struct lop *out);

double lop_o(const struct lop *m, double peers);
double lop_l(const struct lop *m, double peers);

/* Times of a round with this number of peers, and of a barrier of `size` members by n-way
 * dissemination. */
double lop_round(const struct lop *m, uint32_t peers);
double lop_barrier(const struct lop *m, uint32_t size, uint32_t ways);

/* The n from 1 to `most` with the fastest barrier; if several are fastest, the least n. */
uint32_t lop_ways(const struct lop *m, uint32_t size, uint32_t most);

#endif
