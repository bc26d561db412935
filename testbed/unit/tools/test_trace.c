/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_trace.c - traces: the ring that a daemon writes and `nbar trace` reads, broken files, clocks
 * of two machines, repeated frames, and the timeline.
 */
#include "unit/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "token.h"
#include "trace_ring.h"
#include "trace_set.h"

static char dir[] = "/tmp/nbar-trace.XXXXXX";
static char path[64];

static struct trace_ring *ring_new(uint32_t events)
{
	struct trace_ring *t;

	assert_int_equal(trace_ring_open(dir, "n0", events, 0600, (gid_t)-1, &t), 0);
	return t;
}

/* Event number i: all fields follow from i. */
static void note(struct trace_ring *t, uint32_t i)
{
	const struct nbar_trace_event e = {
		.handle = i,
		.rank = ~i,
		.epoch = i + 1,
		.peer = i ^ 0x5555u,
		.cookie = i * 3,
		.slot = (uint16_t)i,
		.what = NBAR_TRACE_OUT,
		.type = NBFW_TOKEN,
	};

	trace_ring_note(t, &e, i);
}

/* Checks that the events are whole and have no gap. Returns the number of the first event. */
static uint32_t check_run(const struct trace_log *log)
{
	uint32_t first = log->n ? log->event[0].handle : 0;

	for (uint32_t k = 0; k < log->n; k++) {
		const struct nbar_trace_event *e = &log->event[k];
		uint32_t i = first + k;

		require(e->time == i && e->handle == i && e->rank == ~i && e->epoch == i + 1 &&
				e->peer == (i ^ 0x5555u) && e->cookie == i * 3 &&
				e->slot == (uint16_t)i,
			"event %u of %u", k, log->n);
	}
	return first;
}

static void ring(void **state)
{
	struct trace_ring *t = ring_new(1000);
	struct trace_log log;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, NBAR_TRACE_HEAD_BYTES + 1024 * 32);
	for (uint32_t n = 0; n < 5000; n++) {
		if (n < 3 || n == 1024 || n == 1025 || n == 4999) {
			assert_int_equal(trace_file_read(path, &log), 0);
			/* The writer may overwrite the oldest event of a full ring next, but the
			 * event still counts. */
			assert_int_equal(log.n, n < 1024 ? n : 1024);
			assert_int_equal(log.lost, n - log.n);
			assert_int_equal(check_run(&log), n - log.n);
			free(log.event);
		}
		note(t, n);
	}
	assert_string_equal(log.nic, "n0");
	trace_ring_close(t);
	assert_int_equal(access(path, F_OK), -1);
}

static void modes(void **state)
{
	struct trace_ring *t;
	struct stat st;

	assert_int_equal(trace_ring_open(dir, "n0", 1, 0660, (gid_t)-1, &t), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	trace_ring_close(t);
	assert_int_equal(trace_ring_open(dir, "n0", 1, 0666, (gid_t)-1, &t), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	trace_ring_close(t);
	assert_true(trace_ring_open("/nowhere", "n0", 1, 0600, (gid_t)-1, &t) < 0);
}

struct writer {
	struct trace_ring *ring;
	uint32_t stop; /* pairs: the test stores, the writer loads */
};

static void *write_on(void *arg)
{
	struct writer *w = arg;

	for (uint32_t i = 0; !__atomic_load_n(&w->stop, __ATOMIC_RELAXED); i++)
		note(w->ring, i);
	return NULL;
}

/* All events that are read from a changing ring are whole. */
static void beside_a_writer(void **state)
{
	struct writer w = { .ring = ring_new(64) };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
	for (uint32_t i = 0; i < 2000; i++) {
		struct trace_log log;

		assert_int_equal(trace_file_read(path, &log), 0);
		assert_true(log.n <= 64);
		check_run(&log);
		free(log.event);
	}
	__atomic_store_n(&w.stop, 1, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	trace_ring_close(w.ring);
}

/* After the reader's look at its size, a file loses all beyond this length. */
static off_t cut_to = -1;

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	int rc = __real_fstat(fd, st);

	if (cut_to >= 0)
		assert_int_equal(truncate(path, cut_to), 0);
	return rc;
}

/* A copy that another process cuts is refused; a mapping of it would kill the reader. */
static void a_file_that_is_cut(void **state)
{
	static const off_t at[] = { 0, 100, NBAR_TRACE_HEAD_BYTES,
				    NBAR_TRACE_HEAD_BYTES + 32 * 1000 };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct trace_ring *t = ring_new(1024);
		struct trace_log log;

		for (uint32_t n = 0; n < 1500; n++)
			note(t, n);
		cut_to = at[i];
		assert_int_equal(trace_file_read(path, &log), 1);
		assert_null(log.event);
		cut_to = -1;
		trace_ring_close(t);
	}
}

static void file_write(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static void broken_files(void **state)
{
	struct nbar_trace_head head = {
		.magic = NBAR_TRACE_MAGIC,
		.version = NBAR_TRACE_VERSION,
		.capacity = 2,
		.written = UINT64_MAX - 5,
		.begun = 3,
	};
	static uint8_t bytes[NBAR_TRACE_HEAD_BYTES + 2 * sizeof(struct nbar_trace_event)];
	struct rng r = { unit_seed() };
	struct trace_log log;

	assert_int_equal(trace_file_read(path, &log), 1);
	assert_int_equal(trace_file_read(dir, &log), 1);
	file_write("", 0);
	assert_int_equal(trace_file_read(path, &log), 1);
	file_write(bytes, sizeof(bytes));
	assert_int_equal(trace_file_read(path, &log), 1);
	memcpy(bytes, &head, sizeof(head));
	file_write(bytes, sizeof(bytes) - 1);
	assert_int_equal(trace_file_read(path, &log), 1);
	/* Behind a good head there may be any bytes. The reader takes only valid events, and names
	 * need no escape. */
	for (uint32_t i = 0; i < 2000; i++) {
		for (size_t k = sizeof(head.magic) * 4; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)rng_next(&r);
		file_write(bytes, sizeof(bytes));
		assert_int_equal(trace_file_read(path, &log), 0);
		assert_true(log.n <= 2);
		for (uint32_t k = 0; k < log.n; k++)
			assert_true(log.event[k].what < NBAR_TRACE_END);
		assert_null(strpbrk(log.nic, "\"\\\n"));
		assert_null(strpbrk(log.host, "\"\\\n"));
		free(log.event);
	}
	for (uint32_t capacity = 0; capacity < 8; capacity++) {
		if (capacity == 2)
			continue;
		head.capacity = capacity;
		memcpy(bytes, &head, sizeof(head));
		file_write(bytes, sizeof(bytes));
		assert_int_equal(trace_file_read(path, &log), 1);
	}
	unlink(path);
}

/* A text that fills its field, and the first and last times and kinds that an event may have. */
static void bounds(void **state)
{
	static const struct nbar_trace_event event[] = {
		{ .time = 0, .what = 1 },
		{ .time = 0, .what = NBAR_TRACE_END - 1 },
		{ .time = 1, .what = 0 },
		{ .time = 1, .what = NBAR_TRACE_END },
		{ .time = INT64_MAX / 2, .what = 1 },
		{ .time = INT64_MAX / 2 - 1, .what = 1 },
		{ .time = (uint64_t)INT64_MAX / 2 + 1, .what = 1 },
		{ .time = INT64_MAX / 2, .what = 1 },
	};
	uint8_t bytes[NBAR_TRACE_HEAD_BYTES + sizeof(event)] = { 0 };
	struct nbar_trace_head head = {
		.magic = NBAR_TRACE_MAGIC,
		.version = NBAR_TRACE_VERSION,
		.capacity = 8,
		.written = 8,
	};
	struct trace_log log;

	memset(head.nic, 'n', sizeof(head.nic));
	memset(head.host, 'h', sizeof(head.host));
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + NBAR_TRACE_HEAD_BYTES, event, sizeof(event));
	file_write(bytes, sizeof(bytes));
	assert_int_equal(trace_file_read(path, &log), 0);
	assert_int_equal(log.n, 4);
	assert_int_equal(log.lost, 4);
	assert_int_equal(log.event[3].time, INT64_MAX / 2);
	assert_int_equal(strlen(log.nic), sizeof(head.nic) - 1);
	assert_int_equal(strspn(log.nic, "n"), sizeof(head.nic) - 1);
	assert_int_equal(strlen(log.host), strspn(log.host, "h"));
	free(log.event);
	unlink(path);
}

/* --- sets ---------------------------------------------------------------------------------------
 */

static struct nbar_trace_event store[4][64];

static struct trace_set *set_new(uint32_t nlog)
{
	struct trace_set *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->nlog = nlog;
	for (uint32_t l = 0; l < nlog; l++) {
		s->log[l] = (struct trace_log){ .clock = TRACE_NO_CLOCK, .event = store[l] };
		snprintf(s->log[l].nic, sizeof(s->log[l].nic), "n%u", l);
		snprintf(s->log[l].host, sizeof(s->log[l].host), "h%u", l);
		snprintf(s->log[l].boot_id, sizeof(s->log[l].boot_id), "boot%u", l);
	}
	return s;
}

static void set_free(struct trace_set *s)
{
	free(s->frame);
	free(s);
}

static void add(struct trace_set *s, uint32_t log, uint64_t time, enum nbar_trace_what what,
		uint32_t epoch, uint32_t cookie)
{
	s->log[log].event[s->log[log].n++] = (struct nbar_trace_event){
		.time = time,
		.handle = 0x10000,
		.rank = log,
		.epoch = epoch,
		.peer = 1 - log,
		.cookie = cookie,
		.what = (uint8_t)what,
		.type = NBFW_TOKEN,
	};
}

#define SKEW 1000000

/* The second machine is ahead by SKEW; frames to it take at least 30, frames from it at least 50.
 */
static void two_machines(void **state)
{
	struct trace_set *s = set_new(2);

	for (uint32_t i = 1; i <= 5; i++) {
		uint64_t t = 10000 * i;

		add(s, 0, t, NBAR_TRACE_OUT, i, 1);
		add(s, 1, SKEW + t + 30 * i, NBAR_TRACE_IN, i, 1);
		add(s, 1, SKEW + t + 500, NBAR_TRACE_OUT, i, 2);
		add(s, 0, t + 500 + 50 * i, NBAR_TRACE_IN, i, 2);
	}
	assert_int_equal(trace_match(s), 0);
	assert_int_equal(s->nclock, 2);
	assert_true(s->clock[1].aligned);
	assert_int_equal(s->clock[1].offset, -SKEW + 10);
	assert_int_equal(s->clock[1].within, 40);
	assert_int_equal(s->clock[1].frames, 10);
	assert_int_equal(s->nframe, 10);
	for (uint32_t i = 0; i < s->nframe; i++)
		assert_true(trace_time(s, s->frame[i].out_log, s->frame[i].out) <=
			    trace_time(s, s->frame[i].in_log, s->frame[i].in));
	set_free(s);
}

/* NICs of one boot have one clock, even if frames contradict. Frames in one direction only do not
 * align clocks. */
static void clocks(void **state)
{
	struct trace_set *s = set_new(3);

	strcpy(s->log[1].boot_id, s->log[0].boot_id);
	add(s, 0, 100, NBAR_TRACE_OUT, 1, 1);
	add(s, 1, 90, NBAR_TRACE_IN, 1, 1);
	add(s, 2, 5000, NBAR_TRACE_OUT, 1, 3);
	add(s, 1, 95, NBAR_TRACE_IN, 1, 3);
	assert_int_equal(trace_match(s), 0);
	assert_int_equal(s->nclock, 2);
	assert_int_equal(s->clock[0].offset, 0);
	assert_false(s->clock[1].aligned);
	assert_int_equal(trace_time(s, 2, 0), 100); /* both begin at the same time */
	set_free(s);
}

/* A frame was lost, and came when it was sent again. */
static void repeated(void **state)
{
	struct trace_set *s = set_new(2);

	strcpy(s->log[1].boot_id, s->log[0].boot_id);
	add(s, 0, 100, NBAR_TRACE_OUT, 1, 1);
	add(s, 0, 1100, NBAR_TRACE_OUT, 1, 1);
	add(s, 1, 1150, NBAR_TRACE_IN, 1, 1);
	add(s, 1, 1160, NBAR_TRACE_IN, 2, 1); /* the event of its sender is overwritten */
	add(s, 1, 1170, NBAR_TRACE_IN, 1, 1); /* the wire has doubled the frame */
	assert_int_equal(trace_match(s), 0);
	assert_int_equal(s->nframe, 1);
	assert_int_equal(s->frame[0].out, 1);
	assert_int_equal(s->frame[0].in, 0);
	set_free(s);
}

/* The third machine has frames only with the second one, which is 1000 behind the first; the third
 * is another 2000 behind. A frame that was sent twice says nothing about clocks. */
static void chain(void **state)
{
	struct trace_set *s = set_new(3);

	for (uint32_t l = 0; l < 2; l++) {
		const uint64_t here = 90000 - 1000u * l, there = here - 1000u * (l + 1);

		add(s, l, here + 500, NBAR_TRACE_OUT, 1, 10 * l + 1);
		add(s, l + 1, there + 500 + 100, NBAR_TRACE_IN, 1, 10 * l + 1);
		add(s, l + 1, there + 900, NBAR_TRACE_OUT, 1, 10 * l + 2);
		add(s, l, here + 900 + 60, NBAR_TRACE_IN, 1, 10 * l + 2);
		add(s, l, here + 2000, NBAR_TRACE_OUT, 2, 10 * l + 1);
		add(s, l, here + 2900, NBAR_TRACE_OUT, 2, 10 * l + 1);
		add(s, l + 1, there + 2950, NBAR_TRACE_IN, 2, 10 * l + 1);
	}
	assert_int_equal(trace_match(s), 0);
	for (uint32_t l = 1; l < 3; l++) {
		assert_true(s->clock[l].aligned);
		assert_int_equal(s->clock[l].offset, (l == 1 ? 1000 : 3000) - 20 * (int)l);
		assert_int_equal(s->clock[l].within, 80 * l);
		assert_int_equal(s->clock[l].frames, 2);
	}
	/* Only with aligned clocks, it was the second of the two that came. */
	assert_int_equal(s->nframe, 6);
	for (uint32_t i = 0; i < s->nframe; i++) {
		const struct trace_frame *f = &s->frame[i];

		if (s->log[f->in_log].event[f->in].epoch == 2)
			assert_int_equal(s->log[f->out_log].event[f->out].time % 1000, 900);
		assert_int_equal(f->in_log > f->out_log ? f->in_log - f->out_log
							: f->out_log - f->in_log,
				 1);
	}
	set_free(s);
}

/* Two groups of a NIC, whose events alternate. */
static void two_groups(void **state)
{
	struct trace_set *s = set_new(1);
	const struct trace_window all = { .all = true };
	struct trace_summary sum;
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	for (uint32_t i = 0; i < 8; i++) {
		add(s, 0, 1000 + 100 * i * i, i % 4 < 2 ? NBAR_TRACE_START : NBAR_TRACE_COMPLETE,
		    i / 4 + 1, 0);
		store[0][i].handle = i % 2 ? 0x20003 : 0x10007;
		store[0][i].rank = i % 2 ? 4 : 6;
	}
	assert_int_equal(trace_match(s), 0);
	trace_summarize(s, &sum);
	assert_int_equal(sum.barriers, 4);
	assert_int_equal(sum.index, 3);
	assert_int_equal(sum.rank, 4);
	assert_int_equal(sum.epoch, 2);
	assert_int_equal(sum.end - sum.begin, 2400);
	assert_int_equal(trace_draw(s, &all, to), 0);
	fclose(to);
	assert_non_null(strstr(text, "\"tid\":65543,\"name\":\"thread_name\",\"args\":{\"name\":"
				     "\"group 7, rank 6\"}"));
	assert_non_null(strstr(text, "\"tid\":131075,\"name\":\"thread_name\",\"args\":{\"name\":"
				     "\"group 3, rank 4\"}"));
	assert_non_null(strstr(text, "\"tid\":131075,\"name\":\"barrier 2: no token after the "
				     "start\",\"ts\":2.500000,\"dur\":2.400000}"));
	free(text);
	set_free(s);
}

static void timeline(void **state)
{
	struct trace_set *s = set_new(2);
	struct trace_window all = { .all = true }, part = { .begin = 1900, .end = 2300 };
	struct trace_summary sum;
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	strcpy(s->log[1].boot_id, s->log[0].boot_id);
	for (uint32_t i = 1; i <= 2; i++) {
		uint64_t t = 1000 * i;

		add(s, 0, t, NBAR_TRACE_DOORBELL, i, 0);
		add(s, 0, t + 10, NBAR_TRACE_START, i, 0);
		add(s, 0, t + 20, NBAR_TRACE_OUT, i, 1);
		add(s, 1, t + 50, NBAR_TRACE_IN, i, 1);
		add(s, 1, t + 90, NBAR_TRACE_START, i, 0);
		add(s, 1, t + 91, NBAR_TRACE_OUT, i, 2);
		add(s, 1, t + 95, NBAR_TRACE_COMPLETE, i, 0);
		add(s, 0, t + 110 + 100 * i, NBAR_TRACE_IN, i, 2);
		add(s, 0, t + 120 + 100 * i, NBAR_TRACE_COMPLETE, i, 0);
	}
	assert_int_equal(trace_match(s), 0);
	trace_summarize(s, &sum);
	assert_int_equal(sum.barriers, 4);
	assert_int_equal(sum.events, 18);
	assert_true(sum.any);
	assert_int_equal(sum.log, 0);
	assert_int_equal(sum.epoch, 2);
	assert_int_equal(sum.end - sum.begin, 310);
	assert_int_equal(trace_draw(s, &all, to), 0);
	fflush(to);
	assert_non_null(strstr(text,
			       "\"name\":\"barrier 2: last token from rank 1\",\"ts\":1.010000,"
			       "\"dur\":0.310000}"));
	assert_non_null(strstr(text,
			       "\"name\":\"barrier 1: no token after the start\",\"ts\":0.090000,"
			       "\"dur\":0.005000}"));
	assert_non_null(strstr(text, "\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":65536,\"name\":"
				     "\"host posts barrier 2\",\"ts\":1.000000}"));
	assert_non_null(strstr(text, "\"name\":\"TOKEN to 1\",\"ts\":0.020000,\"dur\":0.190000}"));
	assert_non_null(strstr(text,
			       "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"frame\",\"id\":1,\"pid\":2,"
			       "\"tid\":65536,\"name\":\"TOKEN\",\"ts\":0.050000}"));
	/* A window has the events that lie in it. */
	rewind(to);
	assert_int_equal(trace_draw(s, &part, to), 0);
	fclose(to);
	text[length] = '\0';
	assert_null(strstr(text, "barrier 1"));
	assert_non_null(
		strstr(text, "\"name\":\"barrier 2: last token from rank 1\",\"ts\":0.110000"));
	free(text);
	set_free(s);
}

static int begin(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/n0.trace", dir);
	return 0;
}

static int end(void **state)
{
	return rmdir(dir);
}

static void drawing_is(const struct trace_set *s, const struct trace_window *w, const char *want)
{
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	assert_non_null(to);
	assert_int_equal(trace_draw(s, w, to), 0);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(text, want);
	free(text);
}

/* All that is drawn of two NICs, whose clocks differ by 50 ns: a barrier, and one that fails. */
static void drawn_times(void **state)
{
	static struct nbar_trace_event first[] = {
		{ .time = 1000, .handle = 5, .epoch = 1, .what = NBAR_TRACE_DOORBELL },
		{ .time = 1010, .handle = 5, .epoch = 1, .what = NBAR_TRACE_START },
		{ .time = 1100, .handle = 5, .epoch = 1, .peer = 1, .what = NBAR_TRACE_OUT,
		  .type = NBFW_TOKEN },
		{ .time = 1300, .handle = 5, .epoch = 1, .peer = 1, .what = NBAR_TRACE_IN,
		  .type = NBFW_TOKEN },
		{ .time = 1350, .handle = 5, .epoch = 1, .what = NBAR_TRACE_COMPLETE },
		{ .time = 2000, .handle = 5, .epoch = 2, .what = NBAR_TRACE_START },
		{ .time = 3000, .handle = 5, .epoch = 2, .peer = 1, .what = NBAR_TRACE_LATE },
		{ .time = 4000, .handle = 5, .epoch = 2, .peer = 1, .what = NBAR_TRACE_SILENT },
		{ .time = 5000, .handle = 5, .epoch = 2, .peer = 1, .what = NBAR_TRACE_FAIL },
	}, second[] = {
		{ .time = 940, .handle = 6, .rank = 1, .epoch = 1, .what = NBAR_TRACE_START },
		{ .time = 1150, .handle = 6, .rank = 1, .epoch = 1, .what = NBAR_TRACE_IN,
		  .type = NBFW_TOKEN },
	};
	static struct trace_frame frame = { 0, 2, 1, 1 };
	static struct trace_set s = { .nlog = 2, .nclock = 2, .frame = &frame, .nframe = 1 };
	const struct trace_window all = { .all = true };
	struct trace_window part = { .begin = 1300, .end = 1400 };

	s.log[0] = (struct trace_log){ .nic = "n0", .host = "a", .event = first, .n = 9 };
	s.log[1] =
		(struct trace_log){ .nic = "n1", .host = "b", .event = second, .n = 2, .clock = 1 };
	s.clock[1].offset = 50;
	drawing_is(
		&s, &all,
		"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\","
		"\"args\":{\"name\":\"nbar trace\"}},\n"
		"{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\","
		"\"args\":{\"name\":\"n0 at a\"}},\n"
		"{\"ph\":\"M\",\"pid\":1,\"tid\":5,\"name\":\"thread_name\","
		"\"args\":{\"name\":\"group 5, rank 0\"}},\n"
		"{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":5,\"name\":\"host posts barrier 1\","
		"\"ts\":0.010000},\n"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":5,\"name\":\"TOKEN to 1\",\"ts\":0.110000,"
		"\"dur\":0.200000},\n"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":5,\"name\":\"TOKEN of 1\",\"ts\":0.310000,"
		"\"dur\":0.050000},\n"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":5,\"name\":\"barrier 1: last token from rank 1\","
		"\"ts\":0.020000,\"dur\":0.340000},\n"
		"{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":5,\"name\":\"rank 1 is late\","
		"\"ts\":2.010000},\n"
		"{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":5,"
		"\"name\":\"the NIC of rank 1 is silent\",\"ts\":3.010000},\n"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":5,\"name\":\"barrier 2: failed\",\"ts\":1.010000,"
		"\"dur\":3.000000},\n"
		"{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":5,\"name\":\"failed: rank 1\","
		"\"ts\":4.010000},\n"
		"{\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\","
		"\"args\":{\"name\":\"n1 at b\"}},\n"
		"{\"ph\":\"M\",\"pid\":2,\"tid\":6,\"name\":\"thread_name\","
		"\"args\":{\"name\":\"group 6, rank 1\"}},\n"
		"{\"ph\":\"X\",\"pid\":2,\"tid\":6,\"name\":\"TOKEN of 0\",\"ts\":0.210000,"
		"\"dur\":0.200000},\n"
		"{\"ph\":\"s\",\"cat\":\"frame\",\"id\":1,\"pid\":1,\"tid\":5,\"name\":\"TOKEN\","
		"\"ts\":0.110000},\n"
		"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"frame\",\"id\":1,\"pid\":2,\"tid\":6,"
		"\"name\":\"TOKEN\",\"ts\":0.210000}\n"
		"]}\n");
	drawing_is(
		&s, &part,
		"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\","
		"\"args\":{\"name\":\"nbar trace\"}},\n"
		"{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\","
		"\"args\":{\"name\":\"n0 at a\"}},\n"
		"{\"ph\":\"M\",\"pid\":1,\"tid\":5,\"name\":\"thread_name\","
		"\"args\":{\"name\":\"group 5, rank 0\"}},\n"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":5,\"name\":\"TOKEN of 1\",\"ts\":0.000000,"
		"\"dur\":0.050000},\n"
		"{\"ph\":\"X\",\"pid\":1,\"tid\":5,\"name\":\"barrier 1: last token from rank 1\","
		"\"ts\":0.000000,\"dur\":0.050000},\n"
		"{\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\","
		"\"args\":{\"name\":\"n1 at b\"}},\n"
		"{\"ph\":\"M\",\"pid\":2,\"tid\":6,\"name\":\"thread_name\","
		"\"args\":{\"name\":\"group 6, rank 1\"}}\n"
		"]}\n");
	part.begin = part.end = 5001;
	drawing_is(&s, &part,
		   "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
		   "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\","
		   "\"args\":{\"name\":\"nbar trace\"}},\n"
		   "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\","
		   "\"args\":{\"name\":\"n0 at a\"}},\n"
		   "{\"ph\":\"M\",\"pid\":1,\"tid\":5,\"name\":\"thread_name\","
		   "\"args\":{\"name\":\"group 5, rank 0\"}},\n"
		   "{\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\","
		   "\"args\":{\"name\":\"n1 at b\"}},\n"
		   "{\"ph\":\"M\",\"pid\":2,\"tid\":6,\"name\":\"thread_name\","
		   "\"args\":{\"name\":\"group 6, rank 1\"}}\n"
		   "]}\n");
}

UNIT_MAIN(begin, end, UNIT(drawn_times), UNIT(ring), UNIT(modes), UNIT(beside_a_writer),
	  UNIT(broken_files), UNIT(a_file_that_is_cut), UNIT(bounds), UNIT(chain), UNIT(two_groups),
	  UNIT(two_machines), UNIT(clocks), UNIT(repeated), UNIT(timeline))
