/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spec.c - the description of a NIC: keys and values, checked.
 *
 * Called when a NIC is opened, before its wire is opened.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "settings.h"
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
			log_error("%s %s: not a list of KEY=VALUE, such as name=n0,wire=WIRE", what,
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

static bool knows(const struct wire *wire, unsigned where, const char *key)
{
	return settings_find(where, key) || wires_has_key(wire, key);
}

bool spec_fits(const struct spec *s, const struct wire *wire, unsigned where)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (!knows(wire, where, s->text + s->pair[i].key))
			return false;
	return true;
}

static void add_word(char *out, size_t size, const char *word)
{
	size_t used = strlen(out);

	snprintf(out + used, size - used, "%s%s", used ? ", " : "", word);
}

int spec_check(const char *what, const struct spec *s, const struct wire *wire, unsigned where)
{
	char known[160] = "";

	for (const struct setting *other = settings_table; other->name; other++)
		if (other->where & where)
			add_word(known, sizeof(known), other->name);
	for (uint32_t i = 0; i < WIRE_KEYS_MAX && wire->key[i].name; i++)
		add_word(known, sizeof(known), wire->key[i].name);
	for (uint32_t i = 0; i < s->n; i++) {
		const char *key = s->text + s->pair[i].key, *value = s->text + s->pair[i].value;

		if (!knows(wire, where, key)) {
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
