/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit_c.c - writes a barrier as one C file that needs only MPI. The file holds the pattern in
 * tables.
 *
 * The MPI tag of a signal is its slot, so that a rank can tell apart the messages of another rank.
 * Signals of consecutive barriers cannot overtake each other, because MPI keeps messages of one tag
 * in order.
 */
#include "emit.h"

static void write_table(FILE *to, const char *type, const char *name, const uint32_t *value,
			uint32_t n)
{
	fprintf(to, "static const %s %s[] = {", type, name);
	for (uint32_t i = 0; i < n; i++)
		fprintf(to, "%s%u,", i % 16 ? " " : "\n\t", value[i]);
	fputs(n ? "\n};\n" : "\n\t0,\n};\n", to);
}

static uint32_t emit_tag_of(const struct schedule *s, uint32_t slot)
{
	uint32_t rank = s->rank_of[s->slot_step[slot]];

	return slot - s->first_slot[s->first_step[rank]];
}

static void write_signals(const struct schedule *s, FILE *to)
{
	fprintf(to, "static const struct { int rank, tag; } to_send[] = {\n");
	for (uint32_t i = 0; i < s->nsignal; i++)
		fprintf(to, "\t{ %u, %u },\n", s->send_dst[i], emit_tag_of(s, s->send_slot[i]));
	fprintf(to, "%s};\nstatic const struct { int rank, tag; } to_receive[] = {\n",
		s->nsignal ? "" : "\t{ 0, 0 },\n");
	for (uint32_t i = 0; i < s->nsignal; i++)
		fprintf(to, "\t{ %u, %u },\n", s->slot_src[i], emit_tag_of(s, i));
	fprintf(to, "%s};\n", s->nsignal ? "" : "\t{ 0, 0 },\n");
}

/* Returns the greatest number of signals of a rank, which is the number of its requests. */
static uint32_t most_requests(const struct schedule *s)
{
	uint32_t most = 1;

	for (uint32_t r = 0; r < s->size; r++) {
		uint32_t a = s->first_step[r], b = s->first_step[r + 1];
		uint32_t n =
			s->first_send[b] - s->first_send[a] + s->first_slot[b] - s->first_slot[a];

		most = n > most ? n : most;
	}
	return most;
}

static const char function[] =
	"\n/* MPI_ERR_COMM: this barrier is for SIZE ranks. Else as MPI_Barrier. */\n"
	"int nbar_tuned_barrier(MPI_Comm comm)\n"
	"{\n"
	"\tMPI_Request request[REQUESTS];\n"
	"\tint rank, size, n = 0, result = MPI_SUCCESS;\n\n"
	"\tMPI_Comm_rank(comm, &rank);\n"
	"\tMPI_Comm_size(comm, &size);\n"
	"\tif (size != SIZE)\n"
	"\t\treturn MPI_ERR_COMM;\n"
	"\tfor (int s = first_step[rank]; s < first_step[rank + 1] && !result; s++) {\n"
	"\t\tint waits = first_slot[s + 1] - first_slot[s];\n\n"
	"\t\tfor (int i = first_slot[s]; i < first_slot[s + 1] && !result; i++)\n"
	"\t\t\tresult = MPI_Irecv(NULL, 0, MPI_BYTE, to_receive[i].rank,\n"
	"\t\t\t\t\t   to_receive[i].tag, comm, &request[n++]);\n"
	"\t\tfor (int i = first_send[s]; i < first_send[s + 1] && !result; i++)\n"
	"\t\t\tresult = MPI_Isend(NULL, 0, MPI_BYTE, to_send[i].rank, to_send[i].tag,\n"
	"\t\t\t\t\t   comm, &request[n + i - first_send[s]]);\n"
	"\t\tif (!result)\n"
	"\t\t\tresult = MPI_Waitall(waits, request + n - waits, MPI_STATUSES_IGNORE);\n"
	"\t\tn += first_send[s + 1] - first_send[s];\n"
	"\t}\n"
	"\t/* Receives are complete, and their requests null. */\n"
	"\treturn result ? result : MPI_Waitall(n, request, MPI_STATUSES_IGNORE);\n"
	"}\n";

void emit_c(const struct schedule *s, const struct profile *p, const uint32_t *host, FILE *to)
{
	fprintf(to,
		"/*\n"
		" * A barrier of %u ranks, written by nbar-lab tune from a profile of %u hosts\n"
		" * (%016llx). Call it on a communicator that nothing else uses. Ranks are on\n"
		" * the hosts:\n"
		" *\n",
		s->size, p->hosts, (unsigned long long)profile_digest(p));
	for (uint32_t r = 0; r < s->size; r++) {
		fprintf(to, " * %u ", r);
		for (const char *c = p->name[host[r]]; *c; c++)
			fputc(*c < ' ' || *c == '*' || *c == '\\' ? '?' : *c, to);
		fputc('\n', to);
	}
	fprintf(to,
		" */\n#include <mpi.h>\n#include <stddef.h>\n\n#define SIZE %u\n#define REQUESTS %u\n\n"
		"int nbar_tuned_barrier(MPI_Comm comm);\n\n"
		"/* Steps of each rank; sends and slots of each step. */\n",
		s->size, most_requests(s));
	write_table(to, "int", "first_step", s->first_step, s->size + 1);
	write_table(to, "int", "first_send", s->first_send, s->nstep + 1);
	write_table(to, "int", "first_slot", s->first_slot, s->nstep + 1);
	write_signals(s, to);
	fputs(function, to);
}
