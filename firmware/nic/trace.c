/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - notes events for people who look at the NIC: see nbar_trace.h.
 *
 * Called by the pass, through the inline functions of nic_internal.h, only while nic->tracing. Must
 * never change what the NIC does.
 */
#include "nic.h"
#include "nic_internal.h"

void nbnic_trace_note_group(struct nbnic *nic, const struct nbnic_group *g,
			    enum nbar_trace_what what, uint32_t epoch, uint32_t peer)
{
	const struct nbar_trace_event e = {
		.handle = g->handle,
		.rank = g->rank,
		.epoch = epoch,
		.peer = peer,
		.what = (uint8_t)what,
	};

	nic->ops->trace(nic->ctx, &e);
}

void nbnic_trace_note_frame(struct nbnic *nic, uint32_t handle, uint32_t rank, uint32_t peer,
			    const struct nbfw_token *t, enum nbar_trace_what what)
{
	const struct nbar_trace_event e = {
		.handle = handle,
		.rank = rank,
		.epoch = t->epoch,
		.peer = peer,
		.cookie = (uint32_t)t->cookie,
		.slot = (uint16_t)t->slot,
		.what = (uint8_t)what,
		.type = t->type,
	};

	nic->ops->trace(nic->ctx, &e);
}

void nbnic_trace_note_send(struct nbnic *nic, const struct nbnic_group *g,
			   const struct nbar_send *send, const struct nbfw_token *t)
{
	nbnic_trace_note_frame(nic, g->handle, g->rank, send->dst, t, NBAR_TRACE_OUT);
}
