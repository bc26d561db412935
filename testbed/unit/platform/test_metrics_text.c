/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_metrics_text.c - addresses of the metrics server, and the text of its metrics.
 */
#include "unit/unit.h"

#include <errno.h>

#include "metrics.h"
#include "metrics_text.h"

static void addresses(void **state)
{
	static const char *const good[] = { "127.0.0.1:0", "127.0.0.1:65535", "[::1]:9480",
					    "unix:/a", "unix:relative" };
	static const char *const bad[] = { "",
					   ":",
					   "9480",
					   "127.0.0.1",
					   "127.0.0.1:",
					   "127.0.0.1:x",
					   "::1:9480",
					   "[::1]",
					   "[]:1",
					   ":9480",
					   "127.0.0.1:65536",
					   "127.0.0.1:-1",
					   "host.name:80",
					   "unix:",
					   "127.0.0.1:1 " };
	struct metrics_address a;
	char path[256] = "unix:/";

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		require(metrics_address_parse(good[i], &a) == 0 && a.length, "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		require(metrics_address_parse(bad[i], &a) == -EINVAL && !a.length, "%s", bad[i]);
	memset(path + 6, 'x', 200);
	assert_int_equal(metrics_address_parse(path, &a), -EINVAL);
	path[5 + 107] = '\0';
	assert_int_equal(metrics_address_parse(path, &a), 0);
	assert_int_equal(strlen(metrics_address_path(&a)), 107);
}

static char *text_of(const struct metrics_nic *nic, uint32_t n, bool open_metrics)
{
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	assert_non_null(to);
	metrics_text_print(nic, n, open_metrics, 7, to);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void texts(void **state)
{
	struct metrics_nic nic[2] = {
		{ .stat = { .nic = "n0", .wire = "udp", .address = "a\\\"\nb" } },
		{ .stat = { .nic = "n1", .nport = 3 } },
	};
	char *text;

	(void)state;
	nic[1].stat.counter[NBAR_COUNTER_barriers_completed] = UINT64_MAX;
	text = text_of(nic, 2, true);
	assert_non_null(strstr(text, "nbar_nic_info{nic=\"n0\",wire=\"udp\","
				     "address=\"a\\\\\\\"\\nb\"} 1\n"));
	assert_non_null(strstr(text, "\n# TYPE nbar_barriers_completed counter\n"));
	assert_non_null(strstr(text, "\nnbar_barriers_completed_total{nic=\"n1\"} "
				     "18446744073709551615\n"));
	assert_non_null(strstr(text, "\nnbar_ports{nic=\"n1\"} 3\n"));
	assert_string_equal(text + strlen(text) - 35, "nbar_scrapes_dropped_total 7\n# EOF\n");
	free(text);
	text = text_of(nic, 2, false);
	assert_non_null(strstr(text, "\n# TYPE nbar_barriers_completed_total counter\n"));
	assert_non_null(strstr(text, "# TYPE nbar_nic_info gauge\n"));
	assert_null(strstr(text, "EOF"));
	free(text);
}

static void latencies(void **state)
{
	struct metrics_nic nic = { .stat = { .nic = "n0" }, .latency = { .ns = 1234567890123 } };
	char *text;

	(void)state;
	nic.latency.bucket[0] = 3;
	nic.latency.bucket[1] = 2;
	nic.latency.bucket[NBAR_LATENCY_BUCKETS - 2] = 1;
	nic.latency.bucket[NBAR_LATENCY_BUCKETS - 1] = 4;
	for (int open = 0; open < 2; open++) {
		text = text_of(&nic, 1, open);
		assert_non_null(strstr(text, "\n# TYPE nbar_barrier_seconds histogram\n"));
		assert_non_null(strstr(text, "_seconds_bucket{nic=\"n0\",le=\"5.12e-07\"} 3\n"));
		assert_non_null(strstr(text, "_seconds_bucket{nic=\"n0\",le=\"1.024e-06\"} 5\n"));
		assert_non_null(strstr(text,
				       ",le=\"34.3597384\"} 6\n"
				       "nbar_barrier_seconds_bucket{nic=\"n0\",le=\"+Inf\"} 10\n"
				       "nbar_barrier_seconds_count{nic=\"n0\"} 10\n"
				       "nbar_barrier_seconds_sum{nic=\"n0\"} 1234.567890123\n"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(texts),
		cmocka_unit_test(latencies),
	};

	return cmocka_run_group_tests_name("metrics_text", tests, NULL, NULL);
}
