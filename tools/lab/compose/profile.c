/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile.c - reads profiles. See profile.h.
 *
 * Called by tools, and by programs that open a group with a profile. Must never return a profile
 * with an unchecked value.
 */
#include "profile.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "nbar_file.h"

struct reader {
	const char *path;
	char *why;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reader *r, const char *format,
							...)
{
	int used = snprintf(r->why, r->size, "%s: ", r->path);
	va_list args;

	va_start(args, format);
	if (used >= 0 && (size_t)used < r->size)
		vsnprintf(r->why + used, r->size - (size_t)used, format, args);
	va_end(args);
	return -EINVAL;
}

struct profile *profile_new(uint32_t hosts, uint32_t classes)
{
	size_t cells = (size_t)classes * classes;
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->hosts = hosts;
	p->classes = classes;
	p->name = calloc(hosts + 1, sizeof(*p->name));
	p->class_of = classes != hosts ? calloc(hosts + 1, sizeof(*p->class_of)) : NULL;
	p->o = calloc(cells + 1, sizeof(*p->o));
	p->l = calloc(cells + 1, sizeof(*p->l));
	p->self = calloc(classes + 1, sizeof(*p->self));
	if (p->name && (p->class_of || classes == hosts) && p->o && p->l && p->self)
		return p;
	profile_free(p);
	return NULL;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; p->name && i < p->hosts; i++)
		free(p->name[i]);
	free(p->name);
	free(p->class_of);
	free(p->o);
	free(p->l);
	free(p->self);
	free(p->processor);
	free(p->flat);
	free(p->level);
	free(p->how);
	free(p->when);
	free(p);
}

/* Reads a cost in nanoseconds, as seconds. False: it is not a valid cost. */
static bool read_cost(const json_t *value, double *out)
{
	double ns = json_number_value(value);

	if (!json_is_number(value) || !isfinite(ns) || ns < 0 || ns > PROFILE_COST_MAX_NS)
		return false;
	/* Rounds to the picosecond, as the digest does. So profiles with the same digest make the
	 * same barrier. */
	*out = round(ns * 1e3) / 1e12;
	return true;
}

static int refuse_cost(const struct reader *r, const char *key, size_t row, size_t column)
{
	return refuse(
		r,
		"\"%s\" has no cost in row %zu, column %zu: each must be a number of ns from 0 "
		"to %.0f; measure again with nbar-lab profile",
		key, row, column, PROFILE_COST_MAX_NS);
}

static int read_matrix(const struct reader *r, const json_t *root, const char *key, uint32_t n,
		       double *out)
{
	const json_t *rows = json_object_get(root, key), *row, *value;
	size_t i, k;

	if (json_array_size(rows) != n)
		return refuse(r, "\"%s\" must have %u rows and has %zu", key, n,
			      json_array_size(rows));
	json_array_foreach(rows, i, row)
	{
		if (json_array_size(row) != n)
			return refuse(r, "row %zu of \"%s\" must have %u costs and has %zu", i, key,
				      n, json_array_size(row));
		json_array_foreach(row, k, value)
		{
			if (!read_cost(value, &out[i * n + k]))
				return refuse_cost(r, key, i, k);
		}
	}
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* If two hosts had the same name, plans would depend on the process that reads the file. */
static int profile_check_names(const struct reader *r, const struct profile *p)
{
	char **sorted = calloc(p->hosts, sizeof(*sorted));
	int rc = 0;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, p->name, p->hosts * sizeof(*sorted));
	qsort(sorted, p->hosts, sizeof(*sorted), compare_names);
	for (uint32_t i = 1; i < p->hosts && !rc; i++)
		if (!strcmp(sorted[i - 1], sorted[i]))
			rc = refuse(r, "two hosts have the name '%s'", sorted[i]);
	free(sorted);
	return rc;
}

static int read_hosts(const struct reader *r, const json_t *hosts, struct profile *p)
{
	const json_t *value;
	size_t i;

	json_array_foreach(hosts, i, value)
	{
		const char *name = json_string_value(value);

		if (!name || !*name || strlen(name) >= PROFILE_NAME_MAX)
			return refuse(r, "host %zu has no name of 1 to %u bytes", i,
				      PROFILE_NAME_MAX - 1);
		p->name[i] = strdup(name);
		if (!p->name[i])
			return -ENOMEM;
	}
	return profile_check_names(r, p);
}

static int read_classes(const struct reader *r, const json_t *root, struct profile *p)
{
	const json_t *list = json_object_get(root, "class"), *self, *value;
	size_t i;

	if (!list) {
		for (uint32_t h = 0; h < p->hosts; h++)
			p->self[h] = p->o[(size_t)h * p->classes + h];
		return 0;
	}
	if (json_array_size(list) != p->hosts)
		return refuse(r, "\"class\" must have %u numbers, one a host, and has %zu",
			      p->hosts, json_array_size(list));
	json_array_foreach(list, i, value)
	{
		json_int_t c = json_integer_value(value);

		if (!json_is_integer(value) || c < 0 || c >= (json_int_t)p->classes)
			return refuse(r, "the class of host %zu is not a number below %u", i,
				      p->classes);
		if (p->class_of)
			p->class_of[i] = (uint32_t)c;
		else if (c != (json_int_t)i)
			return refuse(r, "as many classes as hosts: then host %zu has class %zu", i,
				      i);
	}
	self = json_object_get(root, "self_ns");
	if (json_array_size(self) != p->classes)
		return refuse(r, "\"self_ns\" must have %u costs, one a class, and has %zu",
			      p->classes, json_array_size(self));
	json_array_foreach(self, i, value)
	{
		if (!read_cost(value, &p->self[i]))
			return refuse_cost(r, "self_ns", 0, i);
	}
	return 0;
}

/* Reads which hosts share a processor, and the work of a processor for a step. */
static int read_processors(const struct reader *r, const json_t *root, struct profile *p)
{
	const json_t *list = json_object_get(root, "processor"), *value;
	size_t i;

	if (!list)
		return 0;
	if (json_array_size(list) != p->hosts)
		return refuse(r, "\"processor\" must have %u numbers, one a host, and has %zu",
			      p->hosts, json_array_size(list));
	p->processor = calloc(p->hosts, sizeof(*p->processor));
	if (!p->processor)
		return -ENOMEM;
	value = json_object_get(root, "step_ns");
	if (value && !read_cost(value, &p->step))
		return refuse(r, "\"step_ns\" is not a number of ns");
	json_array_foreach(list, i, value)
	{
		json_int_t number = json_integer_value(value);

		if (!json_is_integer(value) || number < 0 || number >= (json_int_t)p->hosts)
			return refuse(r, "the processor of host %zu is not a number below %u", i,
				      p->hosts);
		p->processor[i] = (uint32_t)number;
	}
	return 0;
}

/* Reads the measured barriers. Skips a barrier of an algorithm that this nbar does not know. */
static int read_flat(const struct reader *r, json_t *root, struct profile *p)
{
	json_t *list = json_object_get(root, "flat_ns"), *value;
	const char *name;

	if (list && !json_is_object(list))
		return refuse(r, "\"flat_ns\" is not a list of algorithms and times");
	if (json_object_size(list) > PROFILE_FLAT_MAX)
		return refuse(r, "\"flat_ns\" has more than %u algorithms", PROFILE_FLAT_MAX);
	p->flat = calloc(PROFILE_FLAT_MAX, sizeof(*p->flat));
	if (!p->flat)
		return -ENOMEM;
	json_object_foreach(list, name, value)
	{
		struct profile_flat *flat = &p->flat[p->nflat];

		if (!read_cost(value, &flat->time) || flat->time <= 0)
			return refuse(r, "\"flat_ns\" has no time above 0 for '%.32s'", name);
		p->nflat += nbfw_alg_parse(name, &flat->alg) == 0 && nbfw_alg_plans(flat->alg);
	}
	return 0;
}

static int read_texts(const struct reader *r, const json_t *root, struct profile *p)
{
	const char *key[] = { "how", "when" };
	char **out[] = { &p->how, &p->when };

	for (size_t i = 0; i < 2; i++) {
		const json_t *value = json_object_get(root, key[i]);

		if (value && !json_is_string(value))
			return refuse(r, "\"%s\" is not a text", key[i]);
		*out[i] = strdup(value ? json_string_value(value) : "");
		if (!*out[i])
			return -ENOMEM;
	}
	return 0;
}

static int read_all(const struct reader *r, json_t *root, struct profile **out)
{
	const json_t *version = json_object_get(root, "nbar_profile");
	const json_t *hosts = json_object_get(root, "hosts");
	size_t n = json_array_size(hosts);
	size_t classes =
		json_object_get(root, "class") ? json_array_size(json_object_get(root, "O_ns")) : n;
	struct profile *p;
	int rc;

	if (!json_is_integer(version))
		return refuse(r, "not a profile: it has no \"nbar_profile\"");
	if (json_integer_value(version) != PROFILE_VERSION)
		return refuse(r,
			      "this is a profile of version %" JSON_INTEGER_FORMAT
			      "; this nbar reads version %d",
			      json_integer_value(version), PROFILE_VERSION);
	if (n == 0 || n > PROFILE_HOSTS_MAX)
		return refuse(r, "\"hosts\" has %zu names; a profile has 1 to %u hosts", n,
			      PROFILE_HOSTS_MAX);
	if (classes == 0 || classes > PROFILE_CLASSES_MAX || classes > n)
		return refuse(
			r,
			"a matrix of %zu rows for %zu hosts: a profile has 1 to %u, and larger "
			"clusters go by \"class\"",
			classes, n, PROFILE_CLASSES_MAX);
	p = profile_new((uint32_t)n, (uint32_t)classes);
	if (!p)
		return -ENOMEM;
	rc = read_hosts(r, hosts, p);
	if (!rc)
		rc = read_matrix(r, root, "O_ns", p->classes, p->o);
	if (!rc)
		rc = read_matrix(r, root, "L_ns", p->classes, p->l);
	if (!rc)
		rc = read_classes(r, root, p);
	if (!rc)
		rc = read_processors(r, root, p);
	if (!rc)
		rc = read_flat(r, root, p);
	if (!rc)
		rc = read_texts(r, root, p);
	if (rc)
		profile_free(p);
	else
		*out = p;
	return rc;
}

static int profile_take(const struct reader *r, json_t *root, const json_error_t *error,
			struct profile **out)
{
	int rc;

	if (root)
		rc = read_all(r, root, out);
	else
		rc = refuse(r, "this is no JSON: line %d: %s", error->line, error->text);
	if (rc == -ENOMEM)
		snprintf(r->why, r->size, "%s: no memory for this profile", r->path);
	json_decref(root);
	return rc;
}

int profile_parse(const char *text, size_t length, const char *path, struct profile **out,
		  char *why, size_t size)
{
	const struct reader r = { path, why, size };
	json_error_t error;

	return profile_take(&r, json_loadb(text, length, JSON_REJECT_DUPLICATES, &error), &error,
			    out);
}

int profile_read(const char *path, struct profile **out, char *why, size_t size)
{
	char *text, reason[128];
	size_t length;
	int rc = nbar_file_read(path, PROFILE_FILE_MAX, &text, &length);

	if (rc < 0) {
		snprintf(why, size, "cannot read the profile %s: %s; nbar-lab profile makes one",
			 path, nbar_file_reason(rc, PROFILE_FILE_MAX, reason, sizeof(reason)));
		return rc;
	}
	rc = profile_parse(text, length, path, out, why, size);
	free(text);
	return rc;
}

int64_t profile_find(const struct profile *p, const char *name)
{
	for (uint32_t i = 0; i < p->hosts; i++)
		if (!strcmp(p->name[i], name))
			return i;
	return -1; /* no such host */
}
