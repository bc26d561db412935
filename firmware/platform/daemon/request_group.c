/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_group.c - what clients ask for groups: open, close, and their state.
 *
 * As request.c. Memory and plans are made here, in the control thread; the polling thread gets them
 * ready to use.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "control_internal.h"

struct open_call {
	struct control *control;
	struct nicd_nic *nic;
	struct port *port;
	struct nbnic_group *group;
	int rc;
};

static void run_group_open(void *arg, uint64_t now)
{
	struct open_call *call = arg;
	struct nbnic_group *g = call->group;
	struct nbar_rep_group_open *rep;
	uint32_t cell = 0;

	(void)now;
	/* A process that exits ends its ports, while threads of it go on. */
	call->rc = -ENETDOWN;
	if (call->nic->port[call->port->number] != call->port)
		return;
	/* Attached processes may still look at a cell whose group is closed. */
	while (cell < NBAR_GROUPS_MAX && (call->port->group[cell] || call->port->held[cell]))
		cell++;
	g->cell = cell;
	call->rc = cell < NBAR_GROUPS_MAX ? nbnic_group_open(&call->nic->nic, g) : -ENOSPC;
	if (call->rc < 0)
		return;
	page_cell_begin(call->port, cell, g);
	rep = request_reply(call->control, sizeof(*rep));
	rep->cell = cell;
	rep->npeer = g->npeer;
	nbnic_group_blob(&call->nic->nic, g, &rep->blob);
	uint32_t *rank = request_reply(call->control, g->npeer * sizeof(*rank));

	for (uint32_t i = 0; i < g->npeer; i++)
		rank[i] = g->peer[i].rank;
}

/* What a client sent as a name, fit to be shown. */
static const char *shown(const char name[NBAR_NAME_MAX], char out[NBAR_NAME_MAX])
{
	uint32_t i = 0;

	for (; i < NBAR_NAME_MAX - 1 && name[i]; i++)
		out[i] = (char)(isprint((unsigned char)name[i]) ? name[i] : '?');
	out[i] = '\0';
	return out;
}

/* The algorithm of a group, and the name it is shown by. */
struct wanted {
	struct nbfw_alg kind;
	const char *name;
};

/* What a tune file makes of "auto". All members must come to the same: connect sees to that. */
static void tune_wanted(const struct control *k, const struct nbar_req_group_open *req,
			struct wanted *w)
{
	const struct tune_entry *e = k->tune ? tune_find(k->tune, req->size) : NULL;

	w->name = req->alg;
	if (!e || strcmp(req->alg, NBFW_ALG_AUTO) != 0)
		return;
	w->kind = e->alg;
	w->name = e->name;
}

/* The algorithm that a request names, as the table of alg.h has it. */
static int check_alg(struct control *k, const struct nbar_req_group_open *req, struct nbfw_alg *alg)
{
	const struct nbfw_alg_row *row;
	char name[NBAR_NAME_MAX];
	int rc;

	shown(req->alg, name);
	if (!memchr(req->alg, '\0', sizeof(req->alg)))
		return request_fail(k, -EINVAL,
				    "the name of an algorithm has at most %u characters; "
				    "this one begins with \"%s\"",
				    NBAR_NAME_MAX - 1, name);
	rc = nbfw_alg_parse(req->alg, alg);
	if (rc == -ERANGE) {
		row = nbfw_alg_row(nbfw_alg_find(req->alg));
		return request_fail(k, rc, "algorithm \"%s\": %s of %s%s goes from %u to %u", name,
				    row->param + 1, row->name, row->param, row->low, row->high);
	}
	if (rc < 0)
		return request_fail(k, rc,
				    "unknown algorithm \"%s\"; this NIC knows " NBFW_ALG_NAMES
				    ", " NBFW_ALG_CUSTOM_NAME " and " NBFW_ALG_SIGNAL_NAME,
				    name);
	row = nbfw_alg_row(alg->kind);
	if (req->size > row->limit)
		return request_fail(k, -ERANGE,
				    "size %u: a group with the algorithm %s has at most %u ranks; "
				    "use " NBFW_ALG_AUTO,
				    req->size, row->name, row->limit);
	if (req->plan_length > 0 && alg->kind != NBFW_ALG_CUSTOM)
		return request_fail(k, -EINVAL,
				    "algorithm \"%s\" makes its own plan, but one came "
				    "along; ask for \"" NBFW_ALG_CUSTOM_NAME "\" to have it used",
				    name);
	return 0;
}

static int check_open(struct control *k, const struct nbar_req_group_open *req, size_t length,
		      struct wanted *w)
{
	int rc;

	if (length != sizeof(*req) + (uint64_t)req->plan_length)
		return request_fail(k, -EBADMSG, "a plan of %u bytes was announced, %zu came",
				    req->plan_length, length - sizeof(*req));
	if (req->size == 0 || req->size > NBAR_SIZE_MAX)
		return request_fail(k, -ERANGE, "size %u: a group has 1 to %u ranks", req->size,
				    NBAR_SIZE_MAX);
	if (req->rank >= req->size)
		return request_fail(k, -ERANGE, "rank %u: a group of %u has ranks 0 to %u",
				    req->rank, req->size, req->size - 1);
	rc = check_alg(k, req, &w->kind);
	if (rc == 0)
		tune_wanted(k, req, w);
	return rc;
}

static int check_plan(struct control *k, const struct nbar_req_group_open *req)
{
	const struct nbar_plan *plan = (const void *)(req + 1);
	uint64_t *scratch = malloc((nbfw_plan_scratch(req->plan_length) + 1) * sizeof(*scratch));
	const char *why;
	int rc;

	if (!scratch)
		return request_fail(k, -ENOMEM, "no memory to check a plan of %u bytes",
				    req->plan_length);
	rc = nbfw_plan_check(plan, req->plan_length, scratch, &why);
	free(scratch);
	if (rc < 0)
		return request_fail(k, rc, "the plan of rank %u is refused: %s", req->rank, why);
	if (plan->rank != req->rank || plan->size != req->size)
		return request_fail(k, -EINVAL,
				    "the plan is that of rank %u of %u, the group is opened "
				    "as rank %u of %u",
				    plan->rank, plan->size, req->rank, req->size);
	return 0;
}

/* Yields the plan of a group: that of the request, a new one to be freed, or NULL (messages). */
static int make_plan(struct control *k, const struct nbar_req_group_open *req, struct nbfw_alg kind,
		     const struct nbar_plan **plan, void **to_free)
{
	int32_t n;

	*plan = NULL;
	*to_free = NULL;
	if (kind.kind == NBFW_ALG_SIGNAL)
		return 0;
	if (kind.kind == NBFW_ALG_CUSTOM) {
		*plan = (const void *)(req + 1);
		return check_plan(k, req);
	}
	n = nbfw_plan_generate(kind, req->size, req->rank, NULL, 0);
	if (n < 0)
		return request_fail(k, n, "no plan of this algorithm for rank %u of %u", req->rank,
				    req->size);
	*to_free = malloc((size_t)n);
	if (!*to_free)
		return request_fail(k, -ENOMEM, "no memory for a plan of %d bytes", n);
	nbfw_plan_generate(kind, req->size, req->rank, *to_free, (size_t)n);
	*plan = *to_free;
	return 0;
}

/* Makes the group, but opens it nowhere yet. */
static int build(struct control_client *c, const struct nbar_req_group_open *req,
		 const struct wanted *w, const struct nbar_plan *plan, struct nbnic_group **out)
{
	struct control *k = c->at->control;
	struct nbnic_open open = {
		.port = c->port->number,
		.rank = req->rank,
		.size = req->size,
		.tag = req->tag,
		.alg = w->name,
		.kind = w->kind,
		.plan = plan,
	};
	void *block;

	if (getrandom(&open.cookie, sizeof(open.cookie), 0) != sizeof(open.cookie))
		return request_fail(k, -EIO, "the kernel gives no random numbers for a cookie");
	block = malloc(nbnic_group_size(plan, req->size));
	if (!block)
		return request_fail(k, -ENOMEM, "no memory for a group of %u", req->size);
	if (nbnic_group_build(&open, block, out) == 0)
		return 0;
	free(block);
	return request_fail(k, -ENOSPC,
			    "the plan has more than %u different peers; use one with fewer",
			    NBAR_PEERS_MAX);
}

static int open_with(struct control_client *c, const struct nbar_req_group_open *req,
		     const struct wanted *w, const struct nbar_plan *plan)
{
	struct control *k = c->at->control;
	struct open_call call = { .control = k, .nic = c->at->nic, .port = c->port };
	int rc = build(c, req, w, plan, &call.group);

	if (rc < 0)
		return rc;
	k->nblock++;
	k->ngroup++;
	c->ngroup++;
	control_call(k, run_group_open, &call);
	if (call.rc == 0)
		return 0;
	k->nblock--;
	k->ngroup--;
	c->ngroup--;
	free(call.group);
	if (call.rc == -ENETDOWN)
		return request_fail(k, call.rc, "port %u of %s has ended, as its process exits",
				    c->port->number, c->at->nic->name);
	return request_fail(k, call.rc,
			    "%s is full: it has %u groups open; close some, or use "
			    "another NIC",
			    c->at->nic->name, NBAR_GROUPS_MAX);
}

int request_group_open(struct control_client *c, const void *body, size_t length)
{
	struct control *k = c->at->control;
	const struct nbar_req_group_open *req = body;
	const struct nbar_plan *plan;
	struct wanted wanted;
	void *to_free;
	int rc = check_open(k, req, length, &wanted);

	if (rc < 0)
		return rc;
	rc = make_plan(k, req, wanted.kind, &plan, &to_free);
	if (rc == 0)
		rc = open_with(c, req, &wanted, plan);
	free(to_free);
	return rc;
}

struct close_call {
	struct nicd_nic *nic;
	struct port *port;
	uint32_t cell;
	bool found;
};

static void run_group_close(void *arg, uint64_t now)
{
	struct close_call *call = arg;
	struct nbnic_group *g = request_group_in(call->port, call->cell);

	call->found = g;
	if (!g)
		return;
	if (call->port->held[call->cell])
		nbnic_group_fail(&call->nic->nic, g, NBAR_STATUS_CLOSED, now);
	page_cell_end(call->port, call->cell);
	nbnic_group_close(&call->nic->nic, g, NBAR_STATUS_CLOSED, now);
}

int request_group_close(struct control_client *c, const void *body)
{
	struct control *k = c->at->control;
	const struct nbar_req_group_close *req = body;
	struct close_call call = { .nic = c->at->nic, .port = c->port, .cell = req->cell };

	k->ngroup--;
	c->ngroup--;
	control_call(k, run_group_close, &call);
	if (call.found)
		return 0;
	k->ngroup++;
	c->ngroup++;
	return request_fail(k, -ENOENT,
			    "there is no group in cell %u of port %u; was it closed "
			    "before?",
			    req->cell, c->port->number);
}

/* So many that the polling thread is not kept for long. */
#define INFOS_A_CALL 8u

struct info_call {
	struct nicd_nic *nic;
	uint32_t first, next, ninfo;
	struct nbar_group_info info[INFOS_A_CALL];
};

static void run_group_stat(void *arg, uint64_t now)
{
	struct info_call *call = arg;
	const struct nbnic *nic = &call->nic->nic;
	uint32_t i = call->first;

	(void)now;
	for (; i < nic->high && call->ninfo < INFOS_A_CALL; i++) {
		const struct nbnic_group *g = nic->group[i];
		struct nbar_group_info *info = &call->info[call->ninfo];
		const struct port *p = g ? call->nic->port[g->port] : NULL;

		if (!g)
			continue;
		nbnic_group_info(g, info);
		/* The port of a group that lingers may have another owner by now. */
		if (p && g->life != NBAR_LIFE_LINGER) {
			info->pid = p->pid;
			info->uid = p->uid;
		}
		call->ninfo++;
	}
	call->next = i < nic->high ? i : 0;
}

int request_group_stat(struct control_client *c, const void *body)
{
	struct control *k = c->at->control;
	const struct nbar_req_group_stat *req = body;
	struct info_call call = { .nic = c->at->nic, .first = req->first };
	struct nbar_rep_group_stat *rep;

	control_call(k, run_group_stat, &call);
	rep = request_reply(k, sizeof(*rep));
	rep->ninfo = call.ninfo;
	rep->next = call.next;
	memcpy(request_reply(k, call.ninfo * sizeof(call.info[0])), call.info,
	       call.ninfo * sizeof(call.info[0]));
	return 0;
}
