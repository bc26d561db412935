/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_metrics.c - the metrics server: requests, slow and rude clients, sockets.
 *
 * The test serves and is the client, in one thread. It waits for events, never for a time.
 */
#include "unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics.h"
#include "metrics_request.h"

#define LONG_MS 3600000u      /* no test runs so long */
#define EVENTS_MAX 1000000u   /* limit of all waits here */
#define BIG_BYTES (32u << 20) /* more than sockets take */

static char dir[] = "/tmp/nbar-metrics.XXXXXX";
static char where[64];
static struct metrics_address address;
static uint32_t nwritten;
static size_t body_bytes;

static void write_body(void *arg, bool open_metrics, uint64_t dropped, FILE *to)
{
	static char block[4096];

	(void)arg;
	nwritten++;
	memset(block, 'x', sizeof(block));
	fprintf(to, "%s %u\n", open_metrics ? "open" : "plain", (unsigned)dropped);
	for (size_t n = 0; n < body_bytes; n += sizeof(block))
		fwrite(block, 1, sizeof(block), to);
}

static struct metrics *server(uint32_t timeout_ms, uint32_t fresh_ms)
{
	const struct metrics_config config = {
		.address = &address,
		.mode = 0600,
		.group = (gid_t)-1,
		.timeout_ms = timeout_ms,
		.fresh_ms = fresh_ms,
		.write = write_body,
	};
	struct metrics *m;

	assert_int_equal(metrics_address_parse(where, &address), 0);
	assert_int_equal(metrics_open(&config, &m), 0);
	nwritten = 0;
	body_bytes = 0;
	return m;
}

static int dial(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, &address.name.any, address.length), 0);
	return fd;
}

/* Serves events while there are any. */
static void settle(struct metrics *m)
{
	struct pollfd p = { .fd = metrics_fd(m), .events = POLLIN };

	for (uint32_t i = 0; poll(&p, 1, 0) == 1; i++) {
		assert_true(i < EVENTS_MAX);
		metrics_serve(m);
	}
}

static void say(int fd, const char *text, size_t n)
{
	assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

/* Serves and reads until the server closes; the number of bytes, the first of them in out. */
static size_t hear(struct metrics *m, int fd, char *out, size_t size)
{
	static char block[65536];
	size_t all = 0;

	for (uint32_t i = 0; i < EVENTS_MAX; i++) {
		struct pollfd p[2] = { { .fd = metrics_fd(m), .events = POLLIN },
				       { .fd = fd, .events = POLLIN } };
		ssize_t n;

		assert_true(poll(p, 2, -1) > 0);
		if (p[0].revents)
			metrics_serve(m);
		if (!p[1].revents)
			continue;
		n = recv(fd, block, sizeof(block), 0);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			break;
		if (all < size - 1) {
			size_t room = size - 1 - all, take = (size_t)n < room ? (size_t)n : room;

			memcpy(out + all, block, take);
			out[all + take] = '\0';
		}
		all += (size_t)n;
	}
	return all;
}

static void ask(struct metrics *m, const char *request, size_t n, char *out, size_t size)
{
	int fd = dial();

	*out = '\0';
	say(fd, request, n);
	hear(m, fd, out, size);
	close(fd);
	settle(m);
}

#define GET "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
#define GET_OPEN "GET /metrics HTTP/1.0\r\naccept: text/html, Application/OpenMetrics-Text;q=1\n\n"

static void starts(const char *text, const char *with)
{
	if (strncmp(text, with, strlen(with)) != 0)
		fail_msg("\"%.60s\" does not begin with \"%s\"", text, with);
}

static void requests(void **state)
{
	static const struct {
		const char *text;
		int status;
		bool open;
	} row[] = {
		{ GET, 200, false },
		{ GET_OPEN, 200, true },
		{ "GET /metrics?x=1 HTTP/1.1\n\n", 200, false },
		{ "GET /metrics HTTP/1.1\r\nX-Accept: application/openmetrics-text\r\n\r\n", 200,
		  false },
		{ "GET / HTTP/1.1\r\n\r\n", 404, false },
		{ "GET /metricsx HTTP/1.1\r\n\r\n", 404, false },
		{ "POST /metrics HTTP/1.1\r\n\r\n", 405, false },
		{ "GETX /metrics HTTP/1.1\r\n\r\n", 405, false },
		{ "GET /metrics HTTP/2.0\r\n\r\n", 400, false },
		{ "GET /metrics\r\n\r\n", 400, false },
		{ "GET\r\n\r\n", 400, false },
		{ " \r\n\r\n", 400, false },
		{ "\r\n\r\n", 400, false },
		{ "\x16\x03\x01\r\n\r\n", 400, false },
		{ "GET /metrics HTTP/1.1\r\nHost: x\r\n", 0, false },
		{ "GET /metrics HTTP/1.1\r\n\r", 0, false },
		{ "GET /metr", 0, false },
		{ "", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		/* Allocates the exact length, so a sanitizer sees a read of one byte more. */
		size_t n = strlen(row[i].text);
		char *copy = malloc(n ? n : 1);
		bool open = !row[i].open;

		assert_non_null(copy);
		memcpy(copy, row[i].text, n);
		require(metrics_request_read(copy, n, &open) == row[i].status, "%s", row[i].text);
		require(!row[i].status || open == row[i].open, "%s", row[i].text);
		free(copy);
	}
}

static void random_requests(void **state)
{
	static const char part[][12] = { "GET ", "/metrics", " HTTP/1.1", "\r\n", "\n", "Accept:",
					 " ",    "?",        "x",         "\r",   "" };
	struct rng r = { unit_seed() };

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		char text[256];
		size_t n = 0;
		bool open;

		for (uint32_t k = rng_below(&r, 12); k > 0; k--) {
			const char *p = part[rng_below(&r, 11)];

			/* An empty part stands for a zero byte. */
			memcpy(text + n, p, strlen(p) + 1);
			n += *p ? strlen(p) : 1;
		}
		char *copy = malloc(n ? n : 1);

		assert_non_null(copy);
		memcpy(copy, text, n);
		metrics_request_read(copy, n, &open);
		free(copy);
	}
}

static void answers(void **state)
{
	struct metrics *m = server(LONG_MS, 0);
	char out[512];

	(void)state;
	ask(m, GET, strlen(GET), out, sizeof(out));
	starts(out, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4");
	assert_non_null(strstr(out, "\r\nContent-Length: 8\r\nConnection: close\r\n\r\nplain 0\n"));
	ask(m, GET_OPEN, strlen(GET_OPEN), out, sizeof(out));
	assert_non_null(strstr(out, "application/openmetrics-text; version=1.0.0"));
	assert_non_null(strstr(out, "\r\n\r\nopen 0\n"));
	assert_int_equal(nwritten, 2);
	ask(m, "PUT / HTTP/1.1\n\n", 16, out, sizeof(out));
	starts(out, "HTTP/1.1 405 ");
	assert_non_null(strstr(out, "\r\nAllow: GET\r\n"));
	assert_int_equal(nwritten, 2);
	metrics_close(m);
	assert_int_equal(access(address.name.un.sun_path, F_OK), -1);
}

/* Answers to requests within a short time have the same text. */
static void fresh(void **state)
{
	struct metrics *m = server(LONG_MS, LONG_MS);
	char out[512];

	(void)state;
	for (int i = 0; i < 3; i++) {
		ask(m, GET, strlen(GET), out, sizeof(out));
		assert_non_null(strstr(out, "\r\n\r\nplain 0\n"));
	}
	assert_int_equal(nwritten, 1);
	ask(m, GET_OPEN, strlen(GET_OPEN), out, sizeof(out));
	assert_non_null(strstr(out, "\r\n\r\nopen 0\n"));
	assert_int_equal(nwritten, 2);
	metrics_close(m);
}

static void no_body(void *arg, bool open_metrics, uint64_t dropped, FILE *to)
{
	(void)arg;
	(void)open_metrics;
	(void)dropped;
	(void)to;
}

static void nothing_to_say(void **state)
{
	const struct metrics_config config = { .address = &address,
					       .mode = 0600,
					       .group = (gid_t)-1,
					       .timeout_ms = LONG_MS,
					       .write = no_body };
	struct metrics *m;
	char out[512];

	(void)state;
	assert_int_equal(metrics_address_parse(where, &address), 0);
	assert_int_equal(metrics_open(&config, &m), 0);
	ask(m, GET, strlen(GET), out, sizeof(out));
	starts(out, "HTTP/1.1 500 ");
	metrics_close(m);
}

static void byte_by_byte(void **state)
{
	struct metrics *m = server(LONG_MS, 0);
	char out[512];
	int fd = dial();

	(void)state;
	for (const char *p = GET; *p; p++) {
		say(fd, p, 1);
		settle(m);
	}
	hear(m, fd, out, sizeof(out));
	starts(out, "HTTP/1.1 200 ");
	close(fd);
	metrics_close(m);
}

/* The answer arrives although more bytes of the request are still unread. */
static void too_long(void **state)
{
	struct metrics *m = server(LONG_MS, 0);
	char *text = malloc(4 * METRICS_REQUEST_BYTES), out[512];

	(void)state;
	assert_non_null(text);
	memset(text, 'x', 4 * METRICS_REQUEST_BYTES);
	memcpy(text, "GET /metrics HTTP/1.1\r\nX:", 25);
	ask(m, text, 4 * METRICS_REQUEST_BYTES, out, sizeof(out));
	starts(out, "HTTP/1.1 431 ");
	assert_int_equal(nwritten, 0);
	free(text);
	metrics_close(m);
}

/* A client that reads slowly gets all of a long answer; meanwhile others are served. */
static void slow_reader(void **state)
{
	struct metrics *m = server(LONG_MS, 0);
	char out[512], other[512];
	int fd = dial();

	(void)state;
	body_bytes = BIG_BYTES;
	say(fd, GET, strlen(GET));
	settle(m);
	body_bytes = 0;
	ask(m, GET_OPEN, strlen(GET_OPEN), other, sizeof(other));
	assert_non_null(strstr(other, "\r\n\r\nopen 0\n"));
	assert_true(hear(m, fd, out, sizeof(out)) > BIG_BYTES);
	close(fd);
	metrics_close(m);
}

/* Clients that stay silent, or do not read, are dropped at their deadline. */
static void timeouts(void **state)
{
	struct metrics *m = server(1, 0);
	int silent = dial(), deaf = dial();
	char out[512];

	(void)state;
	body_bytes = BIG_BYTES;
	say(deaf, GET, strlen(GET));
	hear(m, silent, out, sizeof(out));
	while (hear(m, deaf, out, sizeof(out)))
		continue;
	close(silent);
	close(deaf);
	metrics_close(m);
}

/* Clients that leave early do no harm. */
static void leavers(void **state)
{
	struct metrics *m = server(LONG_MS, 0);
	char out[512];
	int fd;

	(void)state;
	body_bytes = BIG_BYTES;
	close(dial());
	settle(m);
	fd = dial();
	say(fd, GET, strlen(GET));
	settle(m);
	close(fd);
	settle(m);
	body_bytes = 0;
	ask(m, GET, strlen(GET), out, sizeof(out));
	assert_non_null(strstr(out, "\r\n\r\nplain 0\n"));
	metrics_close(m);
}

/* Idle clients cannot keep others out: the oldest client makes room. */
static void crowd(void **state)
{
	struct metrics *m = server(LONG_MS, 0);
	int idle[3 * METRICS_CONNECTIONS_MAX];
	char out[512], byte;
	uint32_t open = 0;

	(void)state;
	for (uint32_t i = 0; i < 3 * METRICS_CONNECTIONS_MAX; i++) {
		idle[i] = dial();
		settle(m);
	}
	ask(m, GET, strlen(GET), out, sizeof(out));
	assert_non_null(strstr(out, "\r\n\r\nplain 17\n"));
	for (uint32_t i = 0; i < 3 * METRICS_CONNECTIONS_MAX; i++) {
		open += recv(idle[i], &byte, 1, 0) < 0 && errno == EAGAIN;
		close(idle[i]);
	}
	assert_int_equal(open, METRICS_CONNECTIONS_MAX - 1);
	metrics_close(m);
}

static void socket_files(void **state)
{
	struct metrics *m = server(LONG_MS, 0), *second;
	struct metrics_config config = { .address = &address, .mode = 0640, .group = (gid_t)-1 };
	struct stat st;
	int fd;

	(void)state;
	/* A socket in use is refused, and its file stays. */
	assert_true(metrics_open(&config, &second) < 0);
	close(dial());
	metrics_close(m);
	/* A socket of a killed process is replaced. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, &address.name.any, address.length), 0);
	close(fd);
	assert_int_equal(metrics_open(&config, &m), 0);
	assert_int_equal(stat(address.name.un.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	metrics_close(m);
	/* Another kind of file is not removed. */
	fclose(fopen(address.name.un.sun_path, "w"));
	assert_true(metrics_open(&config, &m) < 0);
	assert_int_equal(unlink(address.name.un.sun_path), 0);
}

static void tcp(void **state)
{
	struct metrics_config config = { .address = &address,
					 .timeout_ms = LONG_MS,
					 .write = write_body };
	struct metrics *m;
	char out[512];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to;

	(void)state;
	assert_int_equal(metrics_address_parse("127.0.0.1:0", &address), 0);
	assert_null(metrics_address_path(&address));
	assert_int_equal(metrics_open(&config, &m), 0);
	assert_int_not_equal(metrics_port(m), 0);
	memcpy(&to, &address.name.any, sizeof(to));
	to.sin_port = htons(metrics_port(m));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	say(fd, GET, strlen(GET));
	hear(m, fd, out, sizeof(out));
	starts(out, "HTTP/1.1 200 OK\r\n");
	close(fd);
	metrics_close(m);
}

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(where, sizeof(where), "unix:%s/metrics", dir);
	return 0;
}

static int end(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(random_requests),
		cmocka_unit_test(answers),
		cmocka_unit_test(fresh),
		cmocka_unit_test(nothing_to_say),
		cmocka_unit_test(byte_by_byte),
		cmocka_unit_test(too_long),
		cmocka_unit_test(slow_reader),
		cmocka_unit_test(timeouts),
		cmocka_unit_test(leavers),
		cmocka_unit_test(crowd),
		cmocka_unit_test(socket_files),
		cmocka_unit_test(tcp),
	};

	return cmocka_run_group_tests_name("metrics", tests, begin, end);
}
