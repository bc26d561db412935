/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile_write.c - writes profiles, and their digests. See profile.h.
 *
 * Called by tools, and when a program makes a group by a profile. Must never write a cost that
 * profile_read would refuse.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "profile.h"

static void write_matrix(FILE *to, const char *key, const double *m, const double *diagonal,
			 uint32_t n)
{
	fprintf(to, " \"%s\": [", key);
	for (uint32_t i = 0; i < n; i++) {
		fprintf(to, "%s\n  [", i ? "," : "");
		for (uint32_t k = 0; k < n; k++)
			fprintf(to, "%s%.3f", k ? ", " : "",
				(diagonal && i == k ? diagonal[i] : m[(size_t)i * n + k]) * 1e9);
		fputs("]", to);
	}
	fputs("\n ],\n", to);
}

/* Writes a text as a JSON string. */
static void write_text(FILE *to, const char *text)
{
	json_t *value = json_string(text ? text : "");

	if (!value || json_dumpf(value, to, JSON_ENCODE_ANY))
		fputs("\"\"", to);
	json_decref(value);
}

/* Writes the keys that a profile may lack. */
static void write_options(const struct profile *p, FILE *to)
{
	char name[NBAR_NAME_MAX];

	if (p->processor) {
		fputs(" \"processor\": [", to);
		for (uint32_t i = 0; i < p->hosts; i++)
			fprintf(to, "%s%u", i ? ", " : "", p->processor[i]);
		fprintf(to, "],\n \"step_ns\": %.3f,\n", p->step * 1e9);
	}
	if (p->nflat) {
		fputs(" \"flat_ns\": {", to);
		for (uint32_t i = 0; i < p->nflat; i++) {
			nbfw_alg_name(p->flat[i].alg, name);
			fprintf(to, "%s\"%s\": %.3f", i ? ", " : "", name, p->flat[i].time * 1e9);
		}
		fputs("},\n", to);
	}
}

int profile_write(const struct profile *p, FILE *to)
{
	fprintf(to, "{\n \"nbar_profile\": %d,\n \"hosts\": [", PROFILE_VERSION);
	for (uint32_t i = 0; i < p->hosts; i++) {
		fputs(i ? ", " : "", to);
		write_text(to, p->name[i]);
	}
	fputs("],\n", to);
	if (p->class_of) {
		fputs(" \"class\": [", to);
		for (uint32_t i = 0; i < p->hosts; i++)
			fprintf(to, "%s%u", i ? ", " : "", p->class_of[i]);
		fputs("],\n \"self_ns\": [", to);
		for (uint32_t i = 0; i < p->classes; i++)
			fprintf(to, "%s%.3f", i ? ", " : "", p->self[i] * 1e9);
		fputs("],\n", to);
	}
	write_options(p, to);
	write_matrix(to, "O_ns", p->o, p->class_of ? NULL : p->self, p->classes);
	write_matrix(to, "L_ns", p->l, NULL, p->classes);
	fputs(" \"how\": ", to);
	write_text(to, p->how);
	fputs(",\n \"when\": ", to);
	write_text(to, p->when);
	fputs("\n}\n", to);
	return ferror(to) ? -EIO : 0;
}

/* FNV-1a, by bytes. */
static uint64_t profile_mix(uint64_t digest, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < n; i++)
		digest = (digest ^ b[i]) * UINT64_C(0x100000001b3);
	return digest;
}

static uint64_t mix_word(uint64_t digest, uint64_t word)
{
	return (digest ^ word ^ word >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* Rounds costs to picoseconds, as profile_write does: a file that is read and written again keeps
 * its digest. */
static uint64_t mix_costs(uint64_t digest, const double *cost, size_t n)
{
	for (size_t i = 0; i < n; i++)
		digest = mix_word(digest, (uint64_t)llround(cost[i] * 1e12));
	return digest;
}

uint64_t profile_digest(const struct profile *p)
{
	uint64_t digest = mix_word(UINT64_C(0xcbf29ce484222325), p->hosts);
	size_t cells = (size_t)p->classes * p->classes;

	for (uint32_t i = 0; i < p->hosts; i++) {
		digest = profile_mix(digest, p->name[i], strlen(p->name[i]) + 1);
		digest = mix_word(digest, profile_row(p, i));
	}
	digest = mix_costs(digest, p->o, cells);
	digest = mix_costs(digest, p->l, cells);
	for (uint32_t i = 0; p->processor && i < p->hosts; i++)
		digest = mix_word(digest, p->processor[i]);
	if (p->processor)
		digest = mix_costs(digest, &p->step, 1);
	for (uint32_t i = 0; i < p->nflat; i++) {
		digest = mix_word(digest, (uint64_t)p->flat[i].alg.kind << 32 | p->flat[i].alg.n);
		digest = mix_costs(digest, &p->flat[i].time, 1);
	}
	return mix_costs(digest, p->self, p->classes);
}
