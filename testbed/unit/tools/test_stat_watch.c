/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stat_watch.c - `nbar stat --watch`: rates, groups that wait, and a screen that is too small.
 */
#include "unit/unit.h"

#include <unistd.h>

#include "stat_watch.h"

#define SECOND UINT64_C(1000000000)

static struct stat_targets t;
static struct nbar_group_info group[NBAR_NICS_MAX][64];

/* NICs n0, n1, ... without groups, at time 0. */
static struct stat_watch *world(uint32_t n)
{
	struct stat_watch *w = stat_watch_new();

	assert_non_null(w);
	memset(&t, 0, sizeof(t));
	memset(group, 0, sizeof(group));
	t.n = n;
	for (uint32_t i = 0; i < n; i++) {
		snprintf(t.now[i].nic.nic, sizeof(t.now[i].nic.nic), "n%u", i);
		t.now[i].nic.pid = 7;
		t.now[i].group = group[i];
	}
	return w;
}

static struct nbar_group_info *add(uint32_t nic, uint32_t index, uint32_t epoch, uint32_t waits_for)
{
	struct nbar_group_info *g = &group[nic][t.now[nic].ngroup++];

	*g = (struct nbar_group_info){ .index = index,
				       .rank = 1,
				       .size = 4,
				       .epoch = epoch,
				       .running = 1,
				       .life = NBAR_LIFE_CONNECTED,
				       .nmissing = 1,
				       .waits_for = waits_for };
	t.now[nic].nic.ngroup++;
	return g;
}

static void look(struct stat_watch *w)
{
	assert_int_equal(stat_watch_look(w, &t), 0);
}

/* Time passes, and the present replies become the earlier replies. */
static void pass(uint64_t ns)
{
	for (uint32_t i = 0; i < t.n; i++) {
		t.before[i].nic = t.now[i].nic;
		t.before[i].at = t.now[i].at;
		t.now[i].at += ns;
	}
}

static char *text_of(struct stat_watch *w, uint32_t rows, uint32_t columns)
{
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	assert_non_null(to);
	if (rows)
		stat_watch_screen(w, &t, "T", rows, columns, to);
	else
		stat_watch_lines(w, &t, "T", to);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void line_is(struct stat_watch *w, const char *want)
{
	char *text = text_of(w, 0, 0);

	assert_string_equal(text, want);
	free(text);
}

static void rates(void **state)
{
	struct stat_watch *w = world(1);

	look(w);
	line_is(w,
		"T n0: - barriers/s, - tokens/s, - pulls/s, - drops/s, groups 0, waiting 0, failed 0\n");
	pass(2 * SECOND);
	t.now[0].nic.counter[NBAR_COUNTER_barriers_completed] = 3;
	t.now[0].nic.counter[NBAR_COUNTER_tokens_received] = 1000000;
	t.now[0].nic.counter[NBAR_COUNTER_wire_drops] = 1;
	t.now[0].nic.counter[NBAR_COUNTER_replies_dropped] = 4;
	look(w);
	line_is(w,
		"T n0: 1.5 barriers/s, 500000.0 tokens/s, 0.0 pulls/s, 2.5 drops/s, groups 0, waiting 0, "
		"failed 0\n");
	/* A new daemon counts from 0. */
	pass(SECOND);
	t.now[0].nic.pid = 8;
	t.now[0].nic.counter[NBAR_COUNTER_barriers_completed] = 0;
	look(w);
	line_is(w,
		"T n0: - barriers/s, - tokens/s, - pulls/s, - drops/s, groups 0, waiting 0, failed 0\n");
	stat_watch_free(w);
}

#define NO_RATES "- barriers/s, - tokens/s, - pulls/s, - drops/s"
#define RATES "0.0 barriers/s, 0.0 tokens/s, 0.0 pulls/s, 0.0 drops/s"

/* A barrier that runs at one look is not reported. A barrier that runs at two looks counts as
 * waiting. */
static void waits(void **state)
{
	struct stat_watch *w = world(1);
	struct nbar_group_info *g = add(0, 3, 7, 2);

	look(w);
	pass(SECOND);
	g->epoch = 8;
	look(w);
	line_is(w, "T n0: " RATES ", groups 1, waiting 0, failed 0\n");
	pass(12 * SECOND);
	g->nmissing = 2;
	g->nstragglers = 2;
	g->straggler[0] = 2;
	g->straggler[1] = 3;
	look(w);
	line_is(w, "T n0: " RATES
		   ", groups 1, waiting 1, failed 0; n0 group 3, rank 1/4, epoch 8: 12 s, "
		   "waits for 2 and 1 more; late: 2, 3\n");
	pass(SECOND);
	g->running = 0;
	look(w);
	line_is(w, "T n0: " RATES ", groups 1, waiting 0, failed 0\n");
	/* The same epoch again, in a group that has got the index of the last group. */
	pass(SECOND);
	t.now[0].ngroup = 0;
	look(w);
	pass(SECOND);
	add(0, 3, 8, 2);
	look(w);
	line_is(w, "T n0: " RATES ", groups 2, waiting 0, failed 0\n");
	stat_watch_free(w);
}

/* A group of the same epoch at the index of one that has gone does not wait. */
static void groups_that_come_again(void **state)
{
	static const uint32_t index[] = { 0, 2, 5 };

	for (uint32_t gone = 0; gone < 3; gone++) {
		struct stat_watch *w = world(1);
		char *text;

		for (uint32_t round = 0; round < 3; round++) {
			t.now[0].ngroup = t.now[0].nic.ngroup = 0;
			for (uint32_t i = 0; i < 3; i++)
				if (i != gone || round != 1)
					add(0, index[i], 8, 2);
			look(w);
			pass(SECOND);
		}
		text = text_of(w, 0, 0);
		assert_non_null(strstr(text, ", groups 3, waiting 2, failed 0; "));
		free(text);
		stat_watch_free(w);
	}
}

/* At the first look no barrier is known, whatever its epoch. */
static void first_look(void **state)
{
	struct stat_watch *w = world(1);

	add(0, 1, UINT32_C(0x01010101), 2);
	look(w);
	line_is(w, "T n0: " NO_RATES ", groups 1, waiting 0, failed 0\n");
	stat_watch_free(w);
}

/* Groups that wait equally long stand in the order of their NICs, then of their indices. */
static void order_of_groups(void **state)
{
	struct stat_watch *w = world(2);
	char *text, *at;

	add(0, 5, 1, 2);
	add(0, 7, 1, 2);
	add(1, 3, 1, 2);
	look(w);
	pass(SECOND);
	look(w);
	text = text_of(w, 24, 80);
	at = strstr(text, "first:\033[K\r\nn0 group 5, ");
	assert_non_null(at);
	at = strstr(at, "\r\nn0 group 7, ");
	assert_non_null(at);
	assert_non_null(strstr(at, "\r\nn1 group 3, "));
	free(text);
	stat_watch_free(w);
}

static void failures(void **state)
{
	struct stat_watch *w = world(1);

	add(0, 0, 1, 2)->status = NBAR_STATUS_HOST_DIED;
	add(0, 5, 1, 2)->status = NBAR_STATUS_CLOSED;
	group[0][1].life = NBAR_LIFE_LINGER;
	add(0, 6, 1, 2)->status = NBAR_STATUS_HOST_DIED;
	look(w);
	pass(SECOND);
	look(w);
	line_is(w, "T n0: " RATES ", groups 3, waiting 0, failed 2\n");
	stat_watch_free(w);
}

/* Checks the size of a screen, and returns its text. */
static char *screen(struct stat_watch *w, uint32_t rows, uint32_t columns)
{
	char *text = text_of(w, rows, columns), *line = text;
	uint32_t n = 0;

	assert_int_equal(strncmp(text, "\033[H", 3), 0);
	line += 3;
	for (char *end; (end = strstr(line, "\r\n")); line = end + 2) {
		assert_true((size_t)(end - line) <= columns + 3); /* and "\033[K" */
		n++;
	}
	assert_true(n < rows);
	assert_string_equal(line, "\033[J");
	return text;
}

static void screens(void **state)
{
	struct stat_watch *w = world(40);
	char *text;

	for (uint32_t i = 0; i < 40; i++)
		for (uint32_t k = 0; k < 3; k++)
			add(i, 2 * k, 1, 2);
	look(w);
	pass(SECOND);
	/* The group of n7 has waited longest. */
	for (uint32_t i = 0; i < 40; i++)
		for (uint32_t k = 0; k < 3; k++)
			group[i][k].epoch += i != 7 || k != 1;
	look(w);
	pass(SECOND);
	look(w);
	text = screen(w, 24, 80);
	assert_non_null(strstr(text, "\r\n... and 32 more NICs\033[K\r\n"));
	assert_non_null(
		strstr(text, "first:\033[K\r\nn7 group 2, rank 1/4, epoch 1: 2 s, waits for 2"));
	assert_non_null(strstr(text, "n0 group 0, rank 1/4, epoch 2: 1 s, waits for 2"));
	assert_non_null(strstr(text, "\r\n... and 111 more groups\033[K\r\n"));
	free(text);
	for (uint32_t rows = 6; rows < 200; rows++)
		free(screen(w, rows, rows));
	t.n = 2;
	t.now[0].ngroup = t.now[1].ngroup = 0;
	look(w);
	text = screen(w, 24, 80);
	assert_non_null(strstr(text, "No group waits."));
	assert_null(strstr(text, "more"));
	free(text);
	stat_watch_free(w);
}

static void screen_is(struct stat_watch *w, uint32_t rows, const char *want)
{
	char *text = text_of(w, rows, 200);

	assert_string_equal(text, want);
	free(text);
}

#define ROW "\033[K\r\n"
#define SCREEN_HEAD                                                    \
	"\033[Hnbar stat  T  2 NICs, 1 groups wait  (Ctrl-C ends)" ROW \
	"NIC           barriers/s    tokens/s     pulls/s     drops/s groups waiting failed" ROW
#define SCREEN_GROUPS ROW "Groups that wait, the longest first:" ROW
#define SCREEN_N0 \
	"n0                   1.5         0.0         0.0         0.0      3       1      1" ROW
#define SCREEN_N1 \
	"n1                   0.0         0.0         0.0         0.0      0       0      0" ROW
#define SCREEN_GROUP "n0 group 4, rank 1/4, epoch 1: 2 s, waits for 2" ROW
#define SCREEN_END "\033[J"

/* Each row of a screen, for screens of few rows. */
static void rows(void **state)
{
	struct stat_watch *w = world(2);

	add(0, 4, 1, 2);
	add(0, 5, 1, 2)->running = 0;
	add(0, 6, 1, 2)->status = NBAR_STATUS_HOST_DIED;
	look(w);
	pass(2 * SECOND);
	t.now[0].nic.counter[NBAR_COUNTER_barriers_completed] = 3;
	look(w);
	for (uint32_t n = 1; n < 6; n++)
		screen_is(w, n, SCREEN_HEAD SCREEN_GROUPS SCREEN_END);
	screen_is(w, 6, SCREEN_HEAD SCREEN_GROUPS SCREEN_GROUP SCREEN_END);
	screen_is(w, 7,
		  SCREEN_HEAD "... and 2 more NICs" ROW SCREEN_GROUPS SCREEN_GROUP SCREEN_END);
	screen_is(w, 9, SCREEN_HEAD SCREEN_N0 SCREEN_N1 SCREEN_GROUPS SCREEN_GROUP SCREEN_END);
	screen_is(w, 24, SCREEN_HEAD SCREEN_N0 SCREEN_N1 SCREEN_GROUPS SCREEN_GROUP SCREEN_END);
	stat_watch_free(w);
}

/* NICs take at most half of the rows, and leave the rows that they do not need. */
static void rows_for_nics(void **state)
{
	static const struct {
		uint32_t n;
		const char *groups, *nics;
	} of[] = { { 8, "... and 6 more groups", NULL },
		   { 9, "... and 9 more groups", NULL },
		   { 12, "... and 15 more groups", "... and 4 more NICs" } };

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct stat_watch *w = world(of[i].n);
		char *text;

		for (uint32_t k = 0; k < 2 * of[i].n; k++)
			add(k / 2, k % 2, 1, 2);
		look(w);
		pass(SECOND);
		look(w);
		text = text_of(w, 24, 80);
		assert_non_null(strstr(text, of[i].groups));
		if (of[i].nics)
			assert_non_null(strstr(text, of[i].nics));
		else
			assert_null(strstr(text, "more NICs"));
		free(text);
		stat_watch_free(w);
	}
}

/* A rate with more digits than its column is cut. */
static void rate_that_is_too_long(void **state)
{
	struct stat_watch *w = world(1);

	look(w);
	pass(1);
	t.now[0].nic.counter[NBAR_COUNTER_barriers_completed] = UINT64_MAX;
	look(w);
	line_is(w,
		"T n0: 18446744073709551616000 barriers/s, 0.0 tokens/s, 0.0 pulls/s, 0.0 drops/s, "
		"groups 0, waiting 0, failed 0\n");
	stat_watch_free(w);
}

/* Bounds of percentiles, also for few barriers, and beyond the last bound. */
static void latency_bounds(void **state)
{
	struct nbar_rep_nic_latency l = { 0 };

	l.bucket[0] = 1;
	assert_true(stat_latency_below(&l, 50) == 512);
	assert_true(stat_latency_below(&l, 100) == 512);
	l.bucket[3] = 1;
	assert_true(stat_latency_below(&l, 50) == 512);
	assert_true(stat_latency_below(&l, 51) == 4096);
	assert_true(stat_latency_below(&l, 99) == 4096);
	l.bucket[0] = 989;
	l.bucket[3] = 10;
	l.bucket[NBAR_LATENCY_BUCKETS - 1] = 1;
	assert_true(stat_latency_below(&l, 98) == 512);
	assert_true(stat_latency_below(&l, 99) == 4096);
	assert_true(stat_latency_below(&l, 100) == UINT64_MAX);
	l.bucket[0] = UINT64_MAX - 11;
	assert_true(stat_latency_below(&l, 99) == 512);
}

static void latency_as_json(void **state)
{
	struct nbar_rep_nic_latency l = { .ns = 2500000000 };
	const struct nbar_group_stat last = { .barriers = 9,
					      .ns = 1000,
					      .nlast = 1,
					      .nrank = 1,
					      .last = { { 3, 0, 9, 1000, 512 } } };
	json_t *o;
	char *text;

	l.bucket[1] = 4;
	l.bucket[NBAR_LATENCY_BUCKETS - 1] = 2;
	o = stat_latency_json(&l);
	text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6));
	assert_string_equal(text, "{\"barriers\":6,\"seconds\":2.5,\"buckets\":["
				  "{\"below\":1.024e-6,\"barriers\":4},"
				  "{\"below\":null,\"barriers\":2}]}");
	free(text);
	json_decref(o);
	o = stat_last_json(&last);
	text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(6));
	assert_string_equal(text,
			    "{\"barriers\":9,\"seconds\":1e-6,\"nrank\":1,\"ranks\":["
			    "{\"rank\":3,\"barriers\":9,\"seconds\":1e-6,\"most\":5.12e-7}]}");
	free(text);
	json_decref(o);
}

/* What stat_print() writes to stdout. */
static void prints(const struct stat_options *opt, const char *want)
{
	char text[4096];
	FILE *to = tmpfile();
	int out = dup(STDOUT_FILENO);
	size_t n;

	assert_non_null(to);
	fflush(stdout);
	dup2(fileno(to), STDOUT_FILENO);
	stat_print(&t, opt);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	rewind(to);
	n = fread(text, 1, sizeof(text) - 1, to);
	text[n] = '\0';
	fclose(to);
	require(strstr(text, want), "not in: %s", text);
}

/* Each value in its column: a running group in its second step, and one that another has closed. */
static void columns(void **state)
{
	const struct stat_options opt = { 0 };
	struct stat_watch *w = world(1);
	struct nbar_group_info *g = add(0, 3, 8, 2);

	g->port = 5;
	g->pid = 99;
	g->posted = 9;
	g->step = 1;
	g->nstep = 4;
	g->nmissing = 3;
	g->nstragglers = 2;
	g->straggler[0] = 2;
	g->straggler[1] = 0;
	snprintf(g->alg, sizeof(g->alg), "pairwise");
	prints(&opt, "      3    5       99          1/4 pairwise         connected          8"
		     "          9     2/4  waits for 2 and 2 more; late: 2, 0\n");
	g->running = 0;
	g->status = NBAR_STATUS_CLOSED;
	g->failed_rank = 3;
	prints(&opt, "          8          9       -  failed: rank 3: closed\n");
	stat_watch_free(w);
}

UNIT_MAIN(NULL, NULL, UNIT(rates), UNIT(waits), UNIT(failures), UNIT(screens),
	  UNIT(groups_that_come_again), UNIT(first_look), UNIT(order_of_groups), UNIT(rows),
	  UNIT(rows_for_nics), UNIT(rate_that_is_too_long), UNIT(latency_bounds),
	  UNIT(latency_as_json), UNIT(columns))
