/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chart.c - see chart.h.
 */
#include <string.h>

#include "chart.h"

#define WIDTH 24u /* of a column */
#define LINE 256u

void chart_begin(struct chart *c, uint32_t size)
{
	c->size = size;
	c->nevent = c->nframe = 0;
}

static uint32_t sender_of(const struct chart *c, uint64_t key)
{
	for (uint32_t i = c->nframe; i > 0; i--)
		if (c->frame[i - 1].key == key)
			return c->frame[i - 1].event;
	return CHART_NOBODY;
}

void chart_event(struct chart *c, uint32_t rank, uint32_t from, uint64_t key, bool implied,
		 const char *text)
{
	struct chart_event *ev = &c->event[c->nevent];

	if (c->nevent + 1 == CHART_EVENTS)
		return;
	*ev = (struct chart_event){ .rank = rank, .from = from, .implied = implied };
	ev->cause = from == CHART_NOBODY ? CHART_NOBODY : sender_of(c, key);
	snprintf(ev->text, sizeof(ev->text), "%s", text);
	c->nevent++;
}

void chart_then(struct chart *c, const char *text)
{
	char *then = c->nevent ? c->event[c->nevent - 1].then : NULL;

	if (then)
		snprintf(then + strlen(then), CHART_TEXT - strlen(then), "%s%s", *then ? ", " : "",
			 text);
}

void chart_sent(struct chart *c, uint64_t key)
{
	if (c->nframe == CHART_FRAMES || c->nevent == 0)
		return;
	c->frame[c->nframe].key = key;
	c->frame[c->nframe++].event = c->nevent - 1;
}

/* Chooses the events to print: events that are not implied, and events that sent their frames. */
static void choose(struct chart *c)
{
	for (uint32_t i = c->nevent; i > 0; i--) {
		struct chart_event *ev = &c->event[i - 1];

		ev->shown |= !ev->implied;
		if (ev->shown && ev->cause != CHART_NOBODY)
			c->event[ev->cause].shown = true;
	}
}

static void put(char line[LINE], uint32_t at, const char *text)
{
	for (; *text && at + 1 < LINE; text++)
		line[at++] = *text;
}

/* A line with the life line of each rank. */
static void blank(const struct chart *c, char line[LINE])
{
	memset(line, ' ', LINE - 1);
	line[LINE - 1] = 0;
	for (uint32_t r = 0; r < c->size; r++)
		line[2 + r * WIDTH] = '|';
}

static void end_line(char line[LINE], uint32_t number, FILE *out)
{
	uint32_t n = LINE - 1;

	while (n > 0 && line[n - 1] == ' ')
		n--;
	line[n] = 0;
	if (number)
		fprintf(out, "# %3u %s\n", number, line);
	else
		fprintf(out, "#     %s\n", line);
}

static void arrow(char line[LINE], uint32_t from, uint32_t to, const char *text)
{
	uint32_t left = 2 + WIDTH * (from < to ? from : to);
	uint32_t right = 2 + WIDTH * (from < to ? to : from);

	for (uint32_t i = left + 1; i < right; i++)
		line[i] = '-';
	line[from < to ? right - 1 : left + 1] = from < to ? '>' : '<';
	put(line,
	    left + (right - left > strlen(text) ? (right - left - (uint32_t)strlen(text)) / 2 : 2),
	    text);
}

void chart_print(struct chart *c, const char *why, FILE *out)
{
	char line[LINE], name[32];
	uint32_t n = 0;

	choose(c);
	memset(line, ' ', LINE - 1);
	line[LINE - 1] = 0;
	for (uint32_t r = 0; r < c->size; r++) {
		snprintf(name, sizeof(name), "rank %u", r);
		put(line, r * WIDTH, name);
	}
	end_line(line, 0, out);
	for (uint32_t i = 0; i < c->nevent; i++) {
		const struct chart_event *ev = &c->event[i];

		if (!ev->shown)
			continue;
		blank(c, line);
		if (ev->from == CHART_NOBODY || ev->from == ev->rank)
			put(line, 4 + ev->rank * WIDTH, ev->text);
		else
			arrow(line, ev->from, ev->rank, ev->text);
		end_line(line, ++n, out);
		if (!ev->then[0])
			continue;
		blank(c, line);
		put(line, 4 + ev->rank * WIDTH, ev->then);
		end_line(line, 0, out);
	}
	fprintf(out, "#     => %s\n", why);
}
