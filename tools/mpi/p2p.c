/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.c - a method: the engine of the NIC, run by the ranks over MPI_Isend and MPI_Irecv.
 *
 * The tag of a message is its slot, so a receive is always posted for each slot of the plan; the
 * two words of a message are epoch and slot.
 *
 * This file drives the engine without the NIC of firmware/nic, because that is shorter: MPI finds
 * the member and loses no message, so only the sends of the engine's actions remain, and
 * send_tokens carries them out. A NIC would also need addresses, peers and a clock; and it would
 * not know which slot's receive to post again.
 */
#include "bench.h"

#include <stdlib.h>

#include "engine.h"

struct p2p {
	MPI_Comm comm;
	struct nbar_plan *plan;
	struct nbfw_state *state;
	uint32_t (*in)[2], (*out)[2]; /* by slot, by send */
	MPI_Request *recv, *send;
	int *index; /* room for the result of MPI_Testsome */
	MPI_Status *status;
};

static void p2p_receive(struct p2p *p, uint32_t slot)
{
	int src = (int)nbfw_plan_recvs(p->plan)[slot].src;

	PMPI_Irecv(p->in[slot], 2, MPI_UINT32_T, src, (int)slot, p->comm, &p->recv[slot]);
}

static void send_tokens(struct p2p *p, const struct nbfw_action *a)
{
	const struct nbar_send *send = nbfw_plan_sends(p->plan);

	for (uint32_t i = a->send_first; i < a->send_end; i++) {
		/* Waits for the send of the last barrier. */
		PMPI_Wait(&p->send[i], MPI_STATUS_IGNORE);
		p->out[i][0] = a->send_epoch;
		p->out[i][1] = send[i].slot;
		PMPI_Isend(p->out[i], 2, MPI_UINT32_T, (int)send[i].dst, (int)send[i].slot, p->comm,
			   &p->send[i]);
	}
}

static void feed(struct p2p *p, const struct nbfw_event *event)
{
	struct nbfw_action action;

	nbfw_step(p->state, p->plan, event, &action);
	if (action.verdict == NBFW_BAD)
		mpib_fatal("p2p: a message that no correct rank sends");
	send_tokens(p, &action);
}

static void p2p_start(struct mpib_method *m)
{
	const struct nbfw_event start = { .type = NBFW_EV_START };

	feed(m->state, &start);
}

static void p2p_finish(struct mpib_method *m)
{
	struct p2p *p = m->state;

	while (p->state->running) {
		const struct nbar_step *step = &nbfw_plan_steps(p->plan)[p->state->step];
		uint32_t first = step->first_slot;
		int n;

		PMPI_Waitsome((int)step->nslot, p->recv + first, &n, p->index, p->status);
		for (int i = 0; i < n; i++) {
			uint32_t slot = first + (uint32_t)p->index[i];
			const struct nbfw_event token = {
				.type = NBFW_EV_TOKEN,
				.token = {
					.type = NBFW_TOKEN,
					.src = nbfw_plan_recvs(p->plan)[slot].src,
					.epoch = p->in[slot][0],
					.slot = p->in[slot][1],
				},
			};

			p2p_receive(p, slot);
			feed(p, &token);
		}
	}
}

static void p2p_barrier(struct mpib_method *m)
{
	p2p_start(m);
	p2p_finish(m);
}

static int p2p_open(struct mpib_method *m)
{
	uint32_t rank = (uint32_t)m->world->rank, size = (uint32_t)m->world->size;
	int32_t length = nbfw_plan_generate(m->choice->alg, size, rank, NULL, 0);
	struct p2p *p;

	/* All ranks fail, or none. */
	if (length < 0) {
		tool_error("%s: %u ranks are too many for it", m->choice->name, size);
		return TOOL_FAILED;
	}
	p = mpib_alloc(1, sizeof(*p));
	m->state = p;
	p->plan = mpib_alloc(1, (size_t)length);
	nbfw_plan_generate(m->choice->alg, size, rank, p->plan, (size_t)length);
	p->state = mpib_alloc(1, nbfw_state_size(p->plan));
	nbfw_init(p->state, p->plan, 0);
	p->in = mpib_alloc(p->plan->nrecv, sizeof(*p->in));
	p->out = mpib_alloc(p->plan->nsend, sizeof(*p->out));
	p->recv = mpib_alloc(p->plan->nrecv, sizeof(*p->recv));
	p->send = mpib_alloc(p->plan->nsend, sizeof(*p->send));
	p->status = mpib_alloc(p->plan->nrecv + p->plan->nsend, sizeof(*p->status));
	p->index = mpib_alloc(p->plan->nrecv, sizeof(*p->index));
	PMPI_Comm_dup(m->world->off, &p->comm);
	for (uint32_t i = 0; i < p->plan->nsend; i++)
		p->send[i] = MPI_REQUEST_NULL;
	for (uint32_t i = 0; i < p->plan->nrecv; i++)
		p2p_receive(p, i);
	return 0;
}

static void p2p_close(struct mpib_method *m)
{
	struct p2p *p = m->state;

	PMPI_Waitall((int)p->plan->nsend, p->send, p->status);
	for (uint32_t i = 0; i < p->plan->nrecv; i++) {
		PMPI_Cancel(&p->recv[i]);
		PMPI_Wait(&p->recv[i], MPI_STATUS_IGNORE);
	}
	PMPI_Comm_free(&p->comm);
	free(p->plan);
	free(p->state);
	free(p->in);
	free(p->out);
	free(p->recv);
	free(p->send);
	free(p->index);
	free(p->status);
	free(p);
	m->state = NULL;
}

const struct mpib_ops mpib_p2p = { p2p_open, p2p_close, p2p_barrier, p2p_start, p2p_finish };
