/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.c - the server of metrics.h: a listening socket, and up to METRICS_CONNECTIONS_MAX
 * connections in an epoll set of their own.
 *
 * The server reads a request, sends the answer, then waits until the client closes the connection.
 * If the server closed first, with unread bytes, the kernel could discard the answer.
 */
#include "metrics.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "log.h"
#include "metrics_request.h"
#include "nbar_host.h"

#define ACCEPT_AGAIN_MS 1000u /* after the process ran out of descriptors */
#define NS_PER_MS UINT64_C(1000000)

enum phase { PHASE_FREE, PHASE_READ, PHASE_WRITE, PHASE_CLOSE };

struct connection {
	enum phase phase;
	int fd;
	uint64_t ends_at;
	char request[METRICS_REQUEST_BYTES];
	size_t nread;
	char *answer;
	size_t length, sent;
};

/* An epoll event names a connection by its index, or one of these. */
enum { FROM_LISTENER = METRICS_CONNECTIONS_MAX, FROM_TIMER };

/* The last text in one format. */
struct body {
	char *text; /* NULL: none */
	size_t length;
	uint64_t made_at;
};

struct metrics {
	struct metrics_config config;
	struct body body[2]; /* [false]: the older format; [true]: OpenMetrics */
	int epoll, listener, timer;
	uint64_t accept_at; /* 0: the listener is in the epoll set; else the time of its return */
	bool bound;         /* the socket file is ours */
	uint64_t dropped;
	struct connection connection[METRICS_CONNECTIONS_MAX];
};

static int watch(struct metrics *m, int op, int fd, uint32_t events, uint32_t from)
{
	struct epoll_event ev = { .events = events, .data.u32 = from };

	return epoll_ctl(m->epoll, op, fd, &ev) < 0 ? -errno : 0;
}

/* The timer fires at the next deadline. */
static void timer_set(struct metrics *m)
{
	uint64_t at = m->accept_at;
	struct itimerspec spec = { 0 };

	for (uint32_t i = 0; i < METRICS_CONNECTIONS_MAX; i++) {
		const struct connection *c = &m->connection[i];

		if (c->phase != PHASE_FREE && (!at || c->ends_at < at))
			at = c->ends_at;
	}
	spec.it_value.tv_sec = (time_t)(at / UINT64_C(1000000000));
	spec.it_value.tv_nsec = (long)(at % UINT64_C(1000000000));
	timerfd_settime(m->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void connection_end(struct metrics *m, struct connection *c)
{
	close(c->fd);
	free(c->answer);
	c->answer = NULL;
	c->phase = PHASE_FREE;
	timer_set(m);
}

/* The server gives up a connection. */
static void connection_drop(struct metrics *m, struct connection *c)
{
	if (c->phase != PHASE_CLOSE)
		m->dropped++;
	connection_end(m, c);
}

/* Returns a free connection; if there is none, ends the oldest and returns it. */
static struct connection *connection_find(struct metrics *m)
{
	struct connection *oldest = &m->connection[0];

	for (uint32_t i = 0; i < METRICS_CONNECTIONS_MAX; i++) {
		struct connection *c = &m->connection[i];

		if (c->phase == PHASE_FREE)
			return c;
		if (c->ends_at < oldest->ends_at)
			oldest = c;
	}
	connection_drop(m, oldest);
	return oldest;
}

static void on_arrival(struct metrics *m)
{
	int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connection *c;

	if (fd < 0) {
		/* The connection stays in the queue of the socket: do not spin on it. */
		if ((errno == EMFILE || errno == ENFILE || errno == ENOMEM) &&
		    watch(m, EPOLL_CTL_DEL, m->listener, 0, FROM_LISTENER) == 0) {
			m->accept_at = nbar_now_ns() + ACCEPT_AGAIN_MS * NS_PER_MS;
			timer_set(m);
		}
		return;
	}
	c = connection_find(m);
	if (watch(m, EPOLL_CTL_ADD, fd, EPOLLIN, (uint32_t)(c - m->connection)) < 0) {
		close(fd);
		return;
	}
	c->phase = PHASE_READ;
	c->fd = fd;
	c->ends_at = nbar_now_ns() + m->config.timeout_ms * NS_PER_MS;
	c->nread = c->length = c->sent = 0;
	timer_set(m);
}

static void on_timer(struct metrics *m)
{
	uint64_t n, now = nbar_now_ns();

	(void)!read(m->timer, &n, sizeof(n));
	for (uint32_t i = 0; i < METRICS_CONNECTIONS_MAX; i++)
		if (m->connection[i].phase != PHASE_FREE && m->connection[i].ends_at <= now)
			connection_drop(m, &m->connection[i]);
	if (m->accept_at && m->accept_at <= now &&
	    watch(m, EPOLL_CTL_ADD, m->listener, EPOLLIN, FROM_LISTENER) == 0)
		m->accept_at = 0;
	timer_set(m);
}

static void body_drop(struct body *b)
{
	free(b->text);
	b->text = NULL;
}

/* Returns the metrics in this format; without memory, the text is NULL. */
static const struct body *body_get(struct metrics *m, bool open_metrics)
{
	struct body *b = &m->body[open_metrics];
	uint64_t now = nbar_now_ns();
	bool failed;
	FILE *to;

	if (b->text && now - b->made_at < m->config.fresh_ms * NS_PER_MS)
		return b;
	body_drop(b);
	to = open_memstream(&b->text, &b->length);
	if (!to)
		return b;
	m->config.write(m->config.arg, open_metrics, m->dropped, to);
	failed = ferror(to);
	failed |= fclose(to) != 0 || b->length == 0;
	if (failed)
		body_drop(b);
	b->made_at = now;
	return b;
}

/* Writes the answer to `to`: head and body. */
static void answer_write(FILE *to, int status, bool open_metrics, const char *body, size_t length)
{
	const char *type = status != 200  ? "text/plain; charset=utf-8"
			   : open_metrics ? "application/openmetrics-text; version=1.0.0; "
					    "charset=utf-8"
					  : "text/plain; version=0.0.4; charset=utf-8";

	fprintf(to,
		"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
		"Connection: close\r\n\r\n",
		status, metrics_request_reason(status), type, length,
		status == 405 ? "Allow: GET\r\n" : "");
	fwrite(body, 1, length, to);
}

static void connection_write(struct metrics *m, struct connection *c)
{
	ssize_t n = send(c->fd, c->answer + c->sent, c->length - c->sent, MSG_NOSIGNAL);
	uint32_t index = (uint32_t)(c - m->connection);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (watch(m, EPOLL_CTL_MOD, c->fd, EPOLLOUT, index) < 0)
			connection_end(m, c);
		return;
	}
	if (n < 0) {
		connection_end(m, c);
		return;
	}
	c->sent += (size_t)n;
	if (c->sent < c->length) {
		if (watch(m, EPOLL_CTL_MOD, c->fd, EPOLLOUT, index) < 0)
			connection_end(m, c);
		return;
	}
	free(c->answer);
	c->answer = NULL;
	c->phase = PHASE_CLOSE;
	if (shutdown(c->fd, SHUT_WR) < 0 || watch(m, EPOLL_CTL_MOD, c->fd, EPOLLIN, index) < 0)
		connection_end(m, c);
}

static void connection_answer(struct metrics *m, struct connection *c, int status,
			      bool open_metrics)
{
	static const char hint[] = "The metrics are at /metrics.\n";
	const struct body *body = status == 200 ? body_get(m, open_metrics) : NULL;
	FILE *to = open_memstream(&c->answer, &c->length);

	if (to) {
		if (body && body->text)
			answer_write(to, status, open_metrics, body->text, body->length);
		else
			answer_write(to, body ? 500 : status, false, hint, sizeof(hint) - 1);
		if (fclose(to) != 0)
			c->length = 0;
	}
	c->phase = PHASE_WRITE;
	if (!to || c->length == 0)
		connection_end(m, c);
	else
		connection_write(m, c);
}

static void connection_read(struct metrics *m, struct connection *c)
{
	ssize_t n = recv(c->fd, c->request + c->nread, sizeof(c->request) - c->nread, 0);
	bool open_metrics;
	int status;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		connection_end(m, c);
		return;
	}
	c->nread += (size_t)n;
	status = metrics_request_read(c->request, c->nread, &open_metrics);
	if (status == 0 && c->nread == sizeof(c->request))
		status = 431;
	if (status)
		connection_answer(m, c, status, open_metrics);
}

static void on_connection(struct metrics *m, struct connection *c)
{
	char discarded[METRICS_REQUEST_BYTES];
	ssize_t n;

	switch (c->phase) {
	case PHASE_FREE:
		break;
	case PHASE_READ:
		connection_read(m, c);
		break;
	case PHASE_WRITE:
		connection_write(m, c);
		break;
	case PHASE_CLOSE:
		n = recv(c->fd, discarded, sizeof(discarded), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			connection_end(m, c);
		break;
	}
}

void metrics_serve(void *arg)
{
	struct metrics *m = arg;
	struct epoll_event ev;

	/* Take one event at a time: an event may end the connection that the next event names. */
	if (epoll_wait(m->epoll, &ev, 1, 0) != 1)
		return;
	if (ev.data.u32 == FROM_LISTENER)
		on_arrival(m);
	else if (ev.data.u32 == FROM_TIMER)
		on_timer(m);
	else
		on_connection(m, &m->connection[ev.data.u32]);
}

/* True if no process listens on the socket file: a killed daemon left it. */
static bool is_stale(const struct metrics_address *a)
{
	struct stat st;
	int fd = lstat(metrics_address_path(a), &st) == 0 && S_ISSOCK(st.st_mode)
			 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
			 : -1;
	bool stale = fd >= 0 && connect(fd, &a->name.any, a->length) < 0 && errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return stale;
}

static int listener_open(struct metrics *m)
{
	const struct metrics_config *config = &m->config;
	const struct metrics_address *a = config->address;
	const char *path = metrics_address_path(a);
	int one = 1;

	m->listener = socket(a->name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->listener < 0)
		return -errno;
	/* The port is free at once after the end of an earlier daemon. */
	if (!path)
		(void)setsockopt(m->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	else if (is_stale(a))
		unlink(path);
	if (bind(m->listener, &a->name.any, a->length) < 0)
		return -errno;
	m->bound = path;
	/* Nobody can connect before listen(), so the permissions are right from the start. */
	if (path && ((config->group != (gid_t)-1 && chown(path, (uid_t)-1, config->group) < 0) ||
		     chmod(path, config->mode) < 0))
		return -errno;
	if (listen(m->listener, (int)METRICS_CONNECTIONS_MAX) < 0)
		return -errno;
	return watch(m, EPOLL_CTL_ADD, m->listener, EPOLLIN, FROM_LISTENER);
}

int metrics_open(const struct metrics_config *config, struct metrics **out)
{
	struct metrics *m = calloc(1, sizeof(*m));
	int rc;

	if (!m) {
		log_error("--metrics: no memory");
		return -ENOMEM;
	}
	m->config = *config;
	m->listener = -1;
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	m->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	rc = m->epoll < 0 || m->timer < 0 ? -errno
					  : watch(m, EPOLL_CTL_ADD, m->timer, EPOLLIN, FROM_TIMER);
	if (rc == 0)
		rc = listener_open(m);
	if (rc < 0) {
		const char *path = metrics_address_path(config->address);

		log_error("--metrics%s%s: cannot listen: %s; give a free %s", path ? " unix:" : "",
			  path ? path : "", strerror(-rc), path ? "path" : "address and port");
		metrics_close(m);
		return rc;
	}
	*out = m;
	return 0;
}

int metrics_fd(const struct metrics *m)
{
	return m->epoll;
}

uint16_t metrics_port(const struct metrics *m)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage room;
	} name;
	socklen_t length = sizeof(name);

	if (getsockname(m->listener, &name.any, &length) < 0)
		return 0;
	if (name.any.sa_family == AF_INET)
		return ntohs(name.in.sin_port);
	return name.any.sa_family == AF_INET6 ? ntohs(name.in6.sin6_port) : 0;
}

void metrics_close(struct metrics *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < METRICS_CONNECTIONS_MAX; i++)
		if (m->connection[i].phase != PHASE_FREE)
			connection_end(m, &m->connection[i]);
	body_drop(&m->body[false]);
	body_drop(&m->body[true]);
	if (m->bound)
		unlink(metrics_address_path(m->config.address));
	if (m->listener >= 0)
		close(m->listener);
	if (m->timer >= 0)
		close(m->timer);
	if (m->epoll >= 0)
		close(m->epoll);
	free(m);
}
