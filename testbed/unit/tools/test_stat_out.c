/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stat_out.c - all that `nbar stat` prints of fixed replies of two NICs: as text, as JSON, as
 * OpenMetrics.
 */
#include "unit/unit.h"

#include <malloc.h>
#include <unistd.h>

#include "stat.h"

static struct stat_targets t;
static struct nbar_group_info group[4];
static struct nbar_group_stat last[4];
static char out[1 << 16];

/* Reason `kind`, with an age of n * 2 * 2^20 ns. */
#define WHY(kind, n) ((uint16_t)((kind) << 13 | 1 << 9 | (n)))
#define SECOND 466u /* about one */

static void begin(void)
{
	struct nbar_rep_nic_stat *n = &t.now[0].nic;

	memset(&t, 0, sizeof(t));
	memset(last, 0, sizeof(last));
	t.n = 2;
	*n = (struct nbar_rep_nic_stat){ .nic = "a%d",
					 .wire = "ring%d",
					 .address = "address%d",
					 .pid = 11,
					 .nport = 12,
					 .ngroup = 13,
					 .nlinger = 14 };
	n->counter[0] = 21;
	n->counter[3] = 23;
	n->counter[NBAR_COUNTER_echoes_received] = 29;
	t.now[1].nic = (struct nbar_rep_nic_stat){ .nic = "b\"\\\n", .wire = "udp" };
	group[0] = (struct nbar_group_info){ .alg = "pairwise",
					     .index = 1,
					     .port = 2,
					     .cell = 3,
					     .life = NBAR_LIFE_CONNECTED,
					     .pid = 4,
					     .uid = 5,
					     .rank = 6,
					     .size = 77,
					     .epoch = 8,
					     .posted = 9,
					     .step = 10,
					     .nstep = 12,
					     .running = 1,
					     .failed_rank = NBAR_RANK_NONE,
					     .nmissing = 3,
					     .waits_for = 14,
					     .nstragglers = 2,
					     .straggler = { 15, 16 },
					     .why = { WHY(NBAR_WHY_HOST_LATE, SECOND), 0 },
					     .host_why = WHY(NBAR_WHY_HOST_STOPPED, SECOND) };
	group[1] = (struct nbar_group_info){ .index = 2,
					     .life = NBAR_LIFE_LINGER,
					     .rank = 6,
					     .size = 77,
					     .epoch = 8,
					     .status = NBAR_STATUS_CLOSED,
					     .failed_rank = 6,
					     .waits_for = NBAR_RANK_NONE };
	group[2] = (struct nbar_group_info){ .index = 1, .size = 2, .life = NBAR_LIFE_OPEN };
	group[3] = (struct nbar_group_info){
		.index = 4, .size = 2, .rank = 1, .running = 1, .life = NBAR_LIFE_LINGER + 1
	};
	t.now[0].group = group;
	t.now[0].ngroup = 2;
	t.now[0].last = last;
	t.now[1].group = group + 2;
	t.now[1].ngroup = 2;
	t.now[1].last = last + 2;
	t.now[0].latency.ns = 30000000000;
	t.now[0].latency.bucket[0] = 90;
	t.now[0].latency.bucket[1] = 1;
	t.now[0].latency.bucket[9] = 58;
	t.now[0].latency.bucket[NBAR_LATENCY_BUCKETS - 1] = 1;
	last[0] = (struct nbar_group_stat){ .barriers = 100,
					    .ns = 1000000,
					    .nlast = 2,
					    .nrank = 5,
					    .last = { { 6, 0, 60, 1000, 512 },
						      { 7, 0, 40, 2000000, 90000 } } };
	last[2] = (struct nbar_group_stat){
		.barriers = 1, .nlast = 1, .nrank = 1, .last = { { 1, 0, 1, 3000, 3000 } }
	};
}

enum what { TABLES, ALL_COUNTERS, JSON, OPENMETRICS, WHY_1, WHY_2, WHY_4, WHY_5 };

/* Prints to `out`. */
static bool print(enum what what)
{
	const struct stat_options opt = { .all = what == ALL_COUNTERS, .json = what == JSON };
	static const uint32_t index[] = { [WHY_1] = 1, [WHY_2] = 2, [WHY_4] = 4, [WHY_5] = 5 };
	FILE *to = tmpfile();
	int saved = dup(STDOUT_FILENO);
	bool found = true;

	assert_non_null(to);
	fflush(stdout);
	dup2(fileno(to), STDOUT_FILENO);
	if (what == OPENMETRICS)
		stat_print_openmetrics(&t);
	else if (what < WHY_1)
		stat_print(&t, &opt);
	else
		found = stat_print_why(&t, index[what]);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(to);
	out[fread(out, 1, sizeof(out) - 1, to)] = '\0';
	fclose(to);
	return found;
}

static uint32_t lines(void)
{
	uint32_t n = 0;

	for (const char *at = out; (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

static void has(const char *text)
{
	require(strstr(out, text), "not in: %s", out);
}

static void tables(void **state)
{
	begin();
	print(TABLES);
	assert_string_equal(
		out,
		"NIC a%d: wire ring%d, address address%d, daemon 11; ports 12, groups 13, "
		"lingering 14\n"
		"  barriers_completed             21  barriers completed\n"
		"  tokens_received                23  tokens accepted\n"
		"  echoes_received                29  answers received: the peer's NIC hears "
		"this one\n"
		"  latency of 150 barriers, from start to completion: mean 200000.0 us, 50 % "
		"below 0.5 us, 99 % below 262.1 us, 100 % not below 34.4 s\n"
		"  index port      pid    rank/size algorithm        life           epoch     "
		"posted    step  state\n"
		"      1    2        4         6/77 pairwise         connected          8        "
		"  9   11/12  waits for 14 and 2 more; late: 15, 16\n"
		"      2    0        0         6/77                  linger             8        "
		"  0       -  closed\n"
		"  last tokens of group 1, rank 6 of 77:\n"
		"    own host last: 60 barriers\n"
		"    from rank 7: 40 barriers, mean 50.0 us, at most 90.0 us\n"
		"    from 3 more ranks\n"
		"NIC b\"\\\n"
		": wire udp, address , daemon 0; ports 0, groups 0, lingering 0\n"
		"  index port      pid    rank/size algorithm        life           epoch     "
		"posted    step  state\n"
		"      1    0        0          0/2                  open               0        "
		"  0       -  not connected\n"
		"      4    0        0          1/2                  ?                  0        "
		"  0     1/0  waits for 0\n"
		"  last tokens of group 1, rank 0 of 2:\n"
		"    from rank 1: 1 barriers, mean 3.0 us, at most 3.0 us\n");
}

static void all_counters(void **state)
{
	begin();
	print(TABLES);
	assert_int_equal(lines(), 19);
	print(ALL_COUNTERS);
	assert_int_equal(lines(), 19 - 3 + 2 * NBAR_COUNTER_END);
	has("lingering 14\n"
	    "  barriers_completed             21  barriers completed\n"
	    "  barriers_failed                 0  groups that failed\n");
	has("  echoes_received                29  answers received: the peer's NIC hears this one\n"
	    "  latency of");
}

/* The JSON of a NIC, without its counters. */
static void nic_is(const json_t *root, size_t n, const char *want)
{
	json_t *nic = json_array_get(json_object_get(root, "nics"), n);
	char *text;

	assert_int_equal(json_object_size(json_object_get(nic, "counters")), NBAR_COUNTER_END);
	json_object_del(nic, "counters");
	text = json_dumps(nic, JSON_COMPACT | JSON_REAL_PRECISION(6));
	assert_string_equal(text, want);
	free(text);
}

static json_int_t counter(const json_t *root, const char *name)
{
	json_t *nic = json_array_get(json_object_get(root, "nics"), 0);

	return json_integer_value(json_object_get(json_object_get(nic, "counters"), name));
}

static json_t *json(const char *begins)
{
	json_t *root;

	print(JSON);
	assert_int_equal(strncmp(out, begins, strlen(begins)), 0);
	root = json_loads(out, 0, NULL);
	assert_non_null(root);
	assert_true(json_is_string(json_object_get(root, "version")));
	assert_int_equal(json_array_size(json_object_get(root, "nics")), 2);
	return root;
}

static void as_json(void **state)
{
	json_t *root;

	begin();
	root = json("{\n  \"version\"");
	assert_int_equal(counter(root, "barriers_completed"), 21);
	assert_int_equal(counter(root, "tokens_received"), 23);
	assert_int_equal(counter(root, "tokens_sent"), 0);
	assert_int_equal(counter(root, "echoes_received"), 29);
	nic_is(root, 0,
	       "{\"nic\":\"a%d\",\"wire\":\"ring%d\",\"address\":\"address%d\",\"pid\":11,"
	       "\"ports\":12,\"lingering\":14,\"latency\":{\"barriers\":150,\"seconds\":30.0,"
	       "\"buckets\":[{\"below\":5.12e-7,\"barriers\":90},{\"below\":1.024e-6,"
	       "\"barriers\":1},{\"below\":0.000262144,\"barriers\":58},{\"below\":null,"
	       "\"barriers\":1}]},\"groups\":[{\"index\":1,\"port\":2,\"cell\":3,\"pid\":4,"
	       "\"uid\":5,\"rank\":6,\"size\":77,\"alg\":\"pairwise\",\"life\":\"connected\","
	       "\"epoch\":8,\"posted\":9,\"running\":true,\"step\":10,\"nstep\":12,"
	       "\"status\":\"ok\",\"failed_rank\":null,\"nmissing\":3,\"waits_for\":14,"
	       "\"late\":[15,16],\"why\":[{\"why\":\"late\",\"seconds\":0.977273},null],"
	       "\"host_why\":{\"why\":\"stopped\",\"seconds\":0.977273}},{\"index\":2,"
	       "\"port\":0,\"cell\":0,\"pid\":0,\"uid\":0,\"rank\":6,\"size\":77,\"alg\":\"\","
	       "\"life\":\"linger\",\"epoch\":8,\"posted\":0,\"running\":false,\"step\":0,"
	       "\"nstep\":0,\"status\":\"closed\",\"failed_rank\":6,\"nmissing\":0,"
	       "\"waits_for\":null,\"late\":[],\"why\":[],\"host_why\":null}]}");
	nic_is(root, 1,
	       "{\"nic\":\"b\\\"\\\\\\n\",\"wire\":\"udp\",\"address\":\"\",\"pid\":0,"
	       "\"ports\":0,\"lingering\":0,\"latency\":{\"barriers\":0,\"seconds\":0.0,"
	       "\"buckets\":[]},\"groups\":[{\"index\":1,\"port\":0,\"cell\":0,\"pid\":0,"
	       "\"uid\":0,\"rank\":0,\"size\":2,\"alg\":\"\",\"life\":\"open\",\"epoch\":0,"
	       "\"posted\":0,\"running\":false,\"step\":0,\"nstep\":0,\"status\":\"ok\","
	       "\"failed_rank\":0,\"nmissing\":0,\"waits_for\":0,\"late\":[],\"why\":[],"
	       "\"host_why\":null},{\"index\":4,\"port\":0,\"cell\":0,\"pid\":0,\"uid\":0,"
	       "\"rank\":1,\"size\":2,\"alg\":\"\",\"life\":\"?\",\"epoch\":0,\"posted\":0,"
	       "\"running\":true,\"step\":0,\"nstep\":0,\"status\":\"ok\",\"failed_rank\":0,"
	       "\"nmissing\":0,\"waits_for\":0,\"late\":[],\"why\":[],\"host_why\":null}]}");
	json_decref(root);
	/* With the last tokens of groups; on a line of its own. */
	t.last = true;
	root = json("{\n  \"version\"");
	has("\"last\": {\n            \"barriers\": 100,");
	has("\"last\": {\n            \"barriers\": 0,");
	json_decref(root);
}

#define HEAD                                   \
	"# TYPE nbar_daemon info\n"            \
	"# HELP nbar_daemon version of nbar\n" \
	"nbar_daemon_info{version=\""
#define HEAD_2                                                                       \
	"\"} 1\n"                                                                    \
	"# TYPE nbar_nic info\n"                                                     \
	"# HELP nbar_nic wire and address of a NIC\n"                                \
	"nbar_nic_info{nic=\"a%d\",wire=\"ring%d\",address=\"address%d\"} 1\n"       \
	"nbar_nic_info{nic=\"b\\\"\\\\\\n\",wire=\"udp\",address=\"\"} 1\n"          \
	"# TYPE nbar_ports gauge\n"                                                  \
	"# HELP nbar_ports open ports\n"                                             \
	"nbar_ports{nic=\"a%d\"} 12\n"                                               \
	"nbar_ports{nic=\"b\\\"\\\\\\n\"} 0\n"                                       \
	"# TYPE nbar_groups gauge\n"                                                 \
	"# HELP nbar_groups open groups\n"                                           \
	"nbar_groups{nic=\"a%d\"} 13\n"                                              \
	"nbar_groups{nic=\"b\\\"\\\\\\n\"} 0\n"                                      \
	"# TYPE nbar_groups_lingering gauge\n"                                       \
	"# HELP nbar_groups_lingering closed groups that still answer their peers\n" \
	"nbar_groups_lingering{nic=\"a%d\"} 14\n"                                    \
	"nbar_groups_lingering{nic=\"b\\\"\\\\\\n\"} 0\n"                            \
	"# TYPE nbar_barriers_completed counter\n"                                   \
	"# HELP nbar_barriers_completed barriers completed\n"                        \
	"nbar_barriers_completed_total{nic=\"a%d\"} 21\n"                            \
	"nbar_barriers_completed_total{nic=\"b\\\"\\\\\\n\"} 0\n"
#define HISTOGRAM                                                               \
	"# TYPE nbar_barrier_seconds histogram\n"                               \
	"# HELP nbar_barrier_seconds time of barriers at a NIC, from start to " \
	"completion\n"                                                          \
	"nbar_barrier_seconds_bucket{nic=\"a%d\",le=\"5.12e-07\"} 90\n"         \
	"nbar_barrier_seconds_bucket{nic=\"a%d\",le=\"1.024e-06\"} 91\n"        \
	"nbar_barrier_seconds_bucket{nic=\"a%d\",le=\"2.048e-06\"} 91\n"
#define HISTOGRAM_END                                                      \
	"nbar_barrier_seconds_bucket{nic=\"a%d\",le=\"34.3597384\"} 149\n" \
	"nbar_barrier_seconds_bucket{nic=\"a%d\",le=\"+Inf\"} 150\n"       \
	"nbar_barrier_seconds_count{nic=\"a%d\"} 150\n"                    \
	"nbar_barrier_seconds_sum{nic=\"a%d\"} 30.000000000\n"             \
	"nbar_barrier_seconds_bucket{nic=\"b\\\"\\\\\\n\",le=\"5.12e-07\"} 0\n"
#define END                                                                 \
	"nbar_barrier_seconds_bucket{nic=\"b\\\"\\\\\\n\",le=\"+Inf\"} 0\n" \
	"nbar_barrier_seconds_count{nic=\"b\\\"\\\\\\n\"} 0\n"              \
	"nbar_barrier_seconds_sum{nic=\"b\\\"\\\\\\n\"} 0.000000000\n"      \
	"# EOF\n"

static void as_openmetrics(void **state)
{
	size_t length;

	begin();
	print(OPENMETRICS);
	assert_int_equal(lines(), 82 + 4 * NBAR_COUNTER_END);
	assert_int_equal(strncmp(out, HEAD, strlen(HEAD)), 0);
	has(HEAD_2);
	has("# TYPE nbar_echoes_received counter\n");
	has("\nnbar_echoes_received_total{nic=\"a%d\"} 29\n");
	has(HISTOGRAM);
	has(HISTOGRAM_END);
	length = strlen(out);
	assert_true(length > strlen(END));
	assert_string_equal(out + length - strlen(END), END);
}

static void why(void **state)
{
	begin();
	assert_true(print(WHY_1));
	assert_string_equal(
		out, "NIC a%d, group 1: rank 6 of 77, process 4, barrier 8: waits for rank 14\n"
		     "  rank 6: process stopped, late for 1.0 s (the host of this NIC: others wait "
		     "for it)\n"
		     "  rank 15: late for 1.0 s\n"
		     "  rank 16: reason not known\n"
		     "NIC b\"\\\n"
		     ", group 1: rank 0 of 2, process 0, barrier 1: not connected\n");
	assert_true(print(WHY_2));
	assert_string_equal(out, "NIC a%d, group 2: rank 6 of 77, process 0, barrier 9: closed\n");
	assert_true(print(WHY_4));
	assert_string_equal(out, "NIC b\"\\\n"
				 ", group 4: rank 1 of 2, process 0, barrier 0: waits for rank 0\n"
				 "  no rank is known to be late: the NIC has begun to ask\n");
	assert_false(print(WHY_5));
	assert_string_equal(out, "");
}

static void states(void **state)
{
	begin();
	group[0].status = NBAR_STATUS_SILENT;
	group[0].failed_rank = 3;
	group[1].failed_rank = 7;
	group[2].status = NBAR_STATUS_CLOSED;
	group[3].status = NBAR_STATUS_END + 1;
	print(TABLES);
	has("11/12  failed: rank 3: silent\n");
	has("  failed: rank 7: closed\n");
	has("  failed: rank 0: closed\n");
	has("1/0  failed: rank 0: ?\n");
	print(WHY_1);
	has("barrier 8: failed: rank 3: silent\n");
	assert_null(strstr(out, "no rank"));
	group[1] = (struct nbar_group_info){ .life = NBAR_LIFE_CONNECTED, .nmissing = 1 };
	group[3].status = NBAR_STATUS_END;
	print(TABLES);
	has("  idle\n");
	has("1/0  failed: rank 0: ?\n");
	group[1].running = 1;
	group[1].host_why = (uint16_t)(NBAR_WHY_END << 13); /* of a later version */
	print(TABLES);
	has("  waits for 0\n");
	print(JSON);
	has("\"host_why\": null");
	assert_null(strstr(out, "(null)"));
}

static void leaves_no_memory(void **state)
{
	size_t used = 0;

	begin();
	t.last = true;
	for (uint32_t n = 0; n < 80; n++) {
		if (n == 16)
			used = mallinfo2().uordblks;
		print(TABLES);
		print(JSON);
	}
	/* The allocator keeps some blocks back. */
	if (!unit_sanitized() || unit_counted())
		assert_true(mallinfo2().uordblks < used + 4096);
}

UNIT_MAIN(NULL, NULL, UNIT(tables), UNIT(all_counters), UNIT(as_json), UNIT(as_openmetrics),
	  UNIT(why), UNIT(states), UNIT(leaves_no_memory))
