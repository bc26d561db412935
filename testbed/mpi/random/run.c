/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - runs the actions of this rank, and checks the results.
 *
 * Called by main.c on every rank, also on ranks that do not take part in the program. It reports to
 * world.c when it enters and leaves a barrier. Messages and other collectives carry values that
 * only their own event has.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../oracle.h"
#include "run.h"

#define ALLREDUCES 5
#define TAG_GROUPS 30000

struct run run;

static const struct event *event_at(uint32_t i)
{
	return &run.p->event[run.p->action[i].event];
}

MPI_Request *request_of(uint32_t event)
{
	const struct event *e = &run.p->event[event];

	return &run.request[e->kind == EVENT_START || e->kind == EVENT_UNINIT ? e->init : event];
}

static uint32_t rank_in(const struct comm *c, uint32_t member)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->member[i] == member)
			return i;
	return NONE;
}

int value_of(uint32_t event)
{
	return (int)(run.p->seed % 100000 * EVENTS + event);
}

/* --- starts of events ------------------------------------------------------------------------ */

static void message(uint32_t event)
{
	const struct event *e = &run.p->event[event];
	const struct comm *c = &run.p->comm[e->comm];
	bool blocks = e->blocks & 1u << run.p->me, send = e->from == run.p->me;
	int peer = (int)rank_in(c, send ? e->to : e->from), size = (int)e->size, tag = (int)event;
	MPI_Comm comm = run.comm[e->comm];
	char *buffer = run.buffer[event] = malloc(e->size + 1);
	MPI_Request *request = &run.request[event];
	MPI_Status status;

	if (!buffer)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (uint32_t i = 0; i < e->size; i++)
		buffer[i] = send ? (char)(event + i) : 0;
	counts.messages += send;
	if (!send && event % 3 == 0)
		peer = MPI_ANY_SOURCE;
	if (send)
		(e->turned ? MPI_Issend : MPI_Isend)(buffer, size, MPI_BYTE, peer, tag, comm,
						     request);
	else if (!blocks)
		MPI_Irecv(buffer, size, MPI_BYTE, peer, tag, comm, request);
	else
		MPI_Recv(buffer, size, MPI_BYTE, peer, tag, comm, &status);
	if (blocks && send)
		MPI_Wait(request, &status);
	if (blocks)
		finish(event, &status);
}

/* Several, because the MPI runs the first ones of a communicator: of several operations, types and
 * sizes. They have their own sum, of which only the last one is checked by finish. */
static void allreduces(uint32_t event, MPI_Comm comm)
{
	const struct comm *c = &run.p->comm[run.p->event[event].comm];
	const int least = value_of(event), n = (int)c->n;

	for (int i = 0; i < ALLREDUCES; i++) {
		double in[ALLREDUCES] = { 0 }, out[ALLREDUCES];
		long own = least + (long)rank_in(c, run.p->me), most = own;
		int count = 1 + (int)event % ALLREDUCES;

		in[count - 1] = i + 0.5;
		MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
		world_want(out[count - 1] == n * (i + 0.5), run.p, "a wrong sum of reals", event);
		MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_LONG, MPI_MAX, comm);
		world_want(most == least + n - 1, run.p, "a wrong maximum", event);
		MPI_Allreduce(&least, &run.sum[event], 1, MPI_INT, MPI_SUM, comm);
	}
}

static void collective(uint32_t event)
{
	const struct event *e = &run.p->event[event];
	MPI_Comm comm = run.comm[e->comm];
	int *value = &run.value[event];

	counts.collectives++;
	*value = value_of(event);
	if (e->kind == EVENT_ALLREDUCE) {
		allreduces(event, comm);
		finish(event, NULL);
	} else if (e->kind == EVENT_IALLREDUCE) {
		MPI_Iallreduce(value, &run.sum[event], 1, MPI_INT, MPI_SUM, comm,
			       &run.request[event]);
	} else {
		if (rank_in(&run.p->comm[e->comm], run.p->me) != e->from)
			*value = -1;
		MPI_Ibcast(value, 1, MPI_INT, (int)e->from, comm, &run.request[event]);
	}
}

static void barriers(uint32_t event)
{
	const struct event *e = &run.p->event[event];

	for (uint32_t i = 0; i < e->n; i++) {
		if (draw(&run.state, 8) == 0)
			usleep(draw(&run.state, 200));
		world_enter(run.p, e->step + i);
		MPI_Barrier(run.comm[e->comm]);
		world_left(run.p, e, e->step + i);
	}
	counts.barriers += e->n;
}

static void ibarrier(uint32_t event)
{
	const struct event *e = &run.p->event[event];
	unsigned long long before[3] = { 0 }, after[3] = { 0 };
	bool known = oracle_counters(before);

	world_enter(run.p, e->step);
	MPI_Ibarrier(run.comm[e->comm], &run.request[event]);
	run.own[event] = !known || !oracle_counters(after) || after[2] != before[2];
	counts.ibarriers++;
}

static void persistent(uint32_t event)
{
	const struct event *e = &run.p->event[event];

	if (e->kind == EVENT_START) {
		world_enter(run.p, e->step);
		counts.persistent++;
#ifdef BARRIER_INIT
		MPI_Start(request_of(event));
#else
		MPI_Ibarrier(run.comm[e->comm], request_of(event));
#endif
	} else if (e->kind == EVENT_UNINIT) {
#ifdef BARRIER_INIT
		MPI_Request_free(request_of(event));
#endif
	} else {
#ifdef BARRIER_INIT
		BARRIER_INIT(run.comm[e->comm], MPI_INFO_NULL, &run.request[event]);
#endif
	}
}

/* --- communicators --------------------------------------------------------------------------- */

static MPI_Group group_of(const struct event *e)
{
	const struct comm *c = &run.p->comm[e->comm];
	int ranks[MEMBERS], n = 0;
	MPI_Group all, group;

	for (uint32_t i = 0; i < c->n; i++)
		if (e->color_of & 1u << i)
			ranks[n++] = (int)i;
	MPI_Comm_group(run.comm[e->comm], &all);
	MPI_Group_incl(all, n, ranks, &group);
	MPI_Group_free(&all);
	return group;
}

static void birth_of_inter(const struct event *e)
{
	const struct comm *half[2] = { &run.p->comm[e->made[0]], &run.p->comm[e->made[1]] };
	uint32_t parent = run.p->comm[e->comm].parent;
	int mine = rank_in(half[0], run.p->me) == NONE;
	int leader = (int)rank_in(&run.p->comm[parent], half[1 - mine]->member[0]);

	MPI_Intercomm_create(run.comm[e->made[mine]], 0, run.comm[parent], leader, TAG_GROUPS,
			     &run.comm[e->comm]);
}

static void birth(const struct event *e)
{
	const struct comm *c = &run.p->comm[e->comm];
	uint32_t rank = rank_in(c, run.p->me);
	MPI_Comm from = run.comm[e->comm], made = MPI_COMM_NULL;
	bool color = e->kind == EVENT_SPLIT && e->color_of & 1u << rank;
	MPI_Group group = MPI_GROUP_NULL;

	if (e->kind == EVENT_CREATE || e->kind == EVENT_CREATE_GROUP)
		group = group_of(e);
	if (e->kind == EVENT_DUP)
		MPI_Comm_dup(from, &made);
	else if (e->kind == EVENT_SPLIT)
		MPI_Comm_split(from, color, (int)(e->turned ? c->n - rank : rank), &made);
	else if (e->kind == EVENT_CREATE)
		MPI_Comm_create(from, group, &made);
	else if (e->kind == EVENT_CREATE_GROUP)
		MPI_Comm_create_group(from, group, TAG_GROUPS, &made);
	else
		MPI_Intercomm_merge(from, rank >= c->near, &made);
	if (group != MPI_GROUP_NULL)
		MPI_Group_free(&group);
	if (made != MPI_COMM_NULL)
		run.comm[e->made[color]] = made;
	counts.comms++;
}

/* Frees the communicator, perhaps with barriers under way. Open MPI does not permit this for
 * barriers that it runs itself: completes these first. */
static void death(const struct event *e)
{
	for (uint32_t i = 0; i < run.p->nevent; i++) {
		const struct event *b = &run.p->event[i];

		if (b->comm != e->comm || run.request[i] == MPI_REQUEST_NULL)
			continue;
		counts.pending++;
#ifdef OPEN_MPI
		if (run.own[i]) {
			MPI_Wait(&run.request[i], MPI_STATUS_IGNORE);
			finish(i, NULL);
		}
#endif
	}
	MPI_Comm_free(&run.comm[e->comm]);
}

/* --- the whole program ----------------------------------------------------------------------- */

static void start(uint32_t event)
{
	const struct event *e = &run.p->event[event];

	switch (e->kind) {
	case EVENT_BARRIERS:
		barriers(event);
		return;
	case EVENT_IBARRIER:
		ibarrier(event);
		return;
	case EVENT_INIT:
	case EVENT_START:
	case EVENT_UNINIT:
		persistent(event);
		return;
	case EVENT_MESSAGE:
		message(event);
		return;
	case EVENT_ALLREDUCE:
	case EVENT_IALLREDUCE:
	case EVENT_IBCAST:
		collective(event);
		return;
	case EVENT_INTERCOMM:
		birth_of_inter(e);
		return;
	case EVENT_DUP:
	case EVENT_SPLIT:
	case EVENT_CREATE:
	case EVENT_CREATE_GROUP:
	case EVENT_MERGE:
		birth(e);
		return;
	case EVENT_FREE:
		death(e);
		return;
	}
}

/* Makes communicator 0, of the ranks that take part. */
static void begin(const struct program *p)
{
	memset(&run, 0, sizeof(run));
	run.p = p;
	run.state = p->seed * MEMBERS + p->me;
	for (uint32_t i = 0; i < EVENTS; i++)
		run.request[i] = MPI_REQUEST_NULL;
	if (p->on_world)
		run.comm[0] = MPI_COMM_WORLD;
	else
		MPI_Comm_split(MPI_COMM_WORLD, p->me == p->n ? MPI_UNDEFINED : 0, (int)p->me,
			       &run.comm[0]);
}

void program_run(const struct program *p)
{
	world_program(p);
	begin(p);
	while (run.at < p->naction) {
		const struct action *a = &p->action[run.at];
		const struct event *e = event_at(run.at);

		if (a->delay)
			usleep(a->delay);
		if (a->phase == PHASE_WAIT) {
			wait_from(run.at);
			continue;
		}
		world_at(run.at, "%s %u, %s on communicator %u",
			 a->phase == PHASE_TEST ? "tests" : "calls", a->event, event_name(e->kind),
			 e->comm);
		if (a->phase == PHASE_TEST)
			test(a->event);
		else
			start(a->event);
		run.at++;
	}
	world_at(run.at, "has ended the program");
}
