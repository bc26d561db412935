/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spec.c - what describes a NIC: keys and values, checked.
 *
 * Called when a NIC is opened, before its wire is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "spec.h"

int spec_parse(const char *what, const char *text, struct spec *out)
{
	char *at = out->text;

	*out = (struct spec){ .n = 0 };
	if (strlen(text) >= sizeof(out->text)) {
		log_error("%s %.40s...: it has more than %zu characters", what, text,
			  sizeof(out->text) - 1);
		return -EINVAL;
	}
	strcpy(out->text, text);
	while (*at) {
		char *end = at + strcspn(at, ",");
		char *value = memchr(at, '=', (size_t)(end - at));
		bool more = *end == ',';

		if (!value || value == at || out->n == SPEC_KEYS_MAX || (more && !end[1])) {
			log_error("%s %s: not a list of KEY=VALUE, as name=n0,wire=udp", what,
				  text);
			return -EINVAL;
		}
		*value++ = '\0';
		*end = '\0';
		out->pair[out->n].key = (uint16_t)(at - out->text);
		out->pair[out->n++].value = (uint16_t)(value - out->text);
		at = end + more;
	}
	return 0;
}

const char *spec_value(void *args, const char *key)
{
	const struct spec *s = args;

	for (uint32_t i = 0; i < s->n; i++)
		if (strcmp(s->text + s->pair[i].key, key) == 0)
			return s->text + s->pair[i].value;
	return NULL;
}

static bool in_list(const char *key, const char *const *list)
{
	while (*list && strcmp(*list, key) != 0)
		list++;
	return *list;
}

static bool knows(const struct wire_ops *wire, const char *const *others, const char *key)
{
	return in_list(key, others) || in_list(key, wire->options);
}

bool spec_fits(const struct spec *s, const struct wire_ops *wire, const char *const *others)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (!knows(wire, others, s->text + s->pair[i].key))
			return false;
	return true;
}

static size_t add_list(char *out, size_t size, size_t used, const char *const *list)
{
	for (; *list && used < size; list++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", *list);
	return used;
}

int spec_check(const char *what, const struct spec *s, const struct wire_ops *wire,
	       const char *const *others)
{
	char known[160];

	add_list(known, sizeof(known), add_list(known, sizeof(known), 0, others), wire->options);
	for (uint32_t i = 0; i < s->n; i++) {
		const char *key = s->text + s->pair[i].key, *value = s->text + s->pair[i].value;

		if (!knows(wire, others, key)) {
			log_error("%s: unknown key \"%s\"; a NIC on wire %s has: %s", what, key,
				  wire->name, known);
			return -EINVAL;
		}
		if (!*value || spec_value((void *)(uintptr_t)s, key) != value) {
			log_error("%s: key \"%s\" needs one value: %s=VALUE", what, key, key);
			return -EINVAL;
		}
	}
	return 0;
}

int spec_wire(const char *what, const char *name, const struct wire_ops *const *wires, size_t n,
	      const struct wire_ops **out)
{
	char names[80] = "";
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		const char *one[] = { wires[i]->name, NULL };

		if (strcmp(name, wires[i]->name) == 0) {
			*out = wires[i];
			return 0;
		}
		used = add_list(names, sizeof(names), used, one);
	}
	log_error("%s wire=%s: there is no such wire here, but: %s%s", what, name, names,
		  strcmp(name, "verbs") == 0 ? "; nbar was built without libibverbs" : "");
	return -EINVAL;
}

int spec_name(const char *what, const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";
	size_t n = strlen(name);

	if (n > 0 && n < NBAR_NAME_MAX && strspn(name, allowed) == n && name[0] != '.')
		return 0;
	log_error("%s name=%s: a name has 1 to %u letters, digits, '_', '.' or '-', and does not "
		  "begin with '.'",
		  what, name, NBAR_NAME_MAX - 1);
	return -EINVAL;
}

int spec_number(const char *what, const struct spec *s, const char *key, uint64_t low,
		uint64_t high, uint64_t *out)
{
	const char *text = spec_value((void *)(uintptr_t)s, key);
	unsigned long long n;
	char *end;

	if (!text)
		return 0;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < low || n > high) {
		log_error("%s: %s=%s: not a number from %llu to %llu", what, key, text,
			  (unsigned long long)low, (unsigned long long)high);
		return -EINVAL;
	}
	*out = n;
	return 0;
}
