/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lop.h - the LoP model of messages that are posted one after the other, fitted to a 1:P ping-pong;
 * and the n of an n-way dissemination that it suggests.
 *
 * LoP (Hoefler, Rehm: A communication model for small messages with InfiniBand, 2005) is LogP with
 * overhead and latency as functions of the number P of messages just posted. Only this definition
 * is from the paper; the shape of the two functions is ours:
 *
 * One node posts P messages, which takes it S(P); R(P) after its first post it has all P answers.
 *
 *     o(P) = S(P) / P             what a message costs the processor that posts it
 *     L(P) = (R(P) - S(P)) / 2    what is left of the way there and back, one way
 *
 * The start takes some time. Each message then adds the time of the stages that handle one message
 * at a time: posting, NIC, wire. So both S and L are straight lines in P,
 *
 *     S(P) = o_start + o_each P        L(P) = l_start + l_each P
 *
 * with nothing below 0. Then R(P)/P = a + b/P: it falls, then settles, as the literature has it.
 *
 * In a round of a dissemination with k peers, each member posts k messages and waits for k
 * messages, which are under way at the same time: k o(k) + L(k). A barrier is the sum of its
 * rounds. The model does not know that members may share a processor or a NIC; then their messages
 * wait for each other. Pure.
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

/* Least squares. 0; -EINVAL if there are not two points that differ in P. */
int lop_fit(const struct lop_point *point, size_t n, struct lop *out);

double lop_o(const struct lop *m, double peers);
double lop_l(const struct lop *m, double peers);

/* A round with so many peers, and a barrier of `size` members by n-way dissemination. */
double lop_round(const struct lop *m, uint32_t peers);
double lop_barrier(const struct lop *m, uint32_t size, uint32_t ways);

/* The n from 1 to most with the fastest barrier; if several are equal, the least of them. */
uint32_t lop_ways(const struct lop *m, uint32_t size, uint32_t most);

#endif
