/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.c - how a remote host connects to a daemon by TCP, names the NIC, and proves that it knows
 * the key.
 *
 * Called by nbar_open: all of it takes at most ANSWER_S, whatever listens there, and signals of the
 * program do not disturb it.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "auth.h"
#include "log.h"
#include "rdma.h"

#define KEY_FILE "NBAR_KEY_FILE"
#define ANSWER_S 30 /* seconds from the begin of connect to the last reply */

/* Of a reply: what all versions have. */
#define VERSION_END offsetof(struct nbar_reply, op)

struct hello {
	int tcp;
	uint64_t until; /* ns */
};

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Waits for TCP until the hello ends. 0 or a negative errno. */
static int hello_wait(const struct hello *h, short events)
{
	struct pollfd p = { .fd = h->tcp, .events = events };
	int n = 0;

	for (uint64_t now; n == 0 && (now = clock_ns()) < h->until;) {
		n = poll(&p, 1, (int)((h->until - now) / 1000000) + 1);
		if (n < 0 && errno == EINTR)
			n = 0;
	}
	return n > 0 ? 0 : n == 0 ? -ETIMEDOUT : -errno;
}

/* Sends (POLLOUT) or receives (POLLIN) all of these bytes, in as many parts as TCP makes. 0 or a
 * negative errno. */
static int hello_carry(const struct hello *h, short which, void *at, size_t size)
{
	uint8_t *byte = at;
	int rc = 0;

	for (size_t done = 0; rc == 0 && done < size;) {
		ssize_t n = which == POLLIN ? recv(h->tcp, byte + done, size - done, MSG_DONTWAIT)
					    : send(h->tcp, byte + done, size - done,
						   MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && !(errno == EAGAIN || errno == EINTR))
			rc = -errno;
		else
			rc = n == 0 ? -ECONNRESET : hello_wait(h, which);
	}
	return rc;
}

/* Connects, and sets *own to our own address. */
static int tcp_connect(struct hello *h, const char *address, union rdma_name *own,
		       char text[NBAR_RDMA_TEXT])
{
	const int one = 1, many = NBAR_RDMA_SILENCE_S, ms = 1000 * NBAR_RDMA_SILENCE_S;
	union rdma_name to;
	socklen_t size = sizeof(*own), error_size = sizeof(int);
	int rc = rdma_name_read(address, &to, text), *fd = &h->tcp, error = 0;

	if (rc < 0)
		return rc;
	*fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = *fd < 0 ? -errno : 0;
	setsockopt(*fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(*fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one));
	setsockopt(*fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
	setsockopt(*fd, IPPROTO_TCP, TCP_KEEPCNT, &many, sizeof(many));
	setsockopt(*fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	if (rc == 0 && connect(*fd, &to.any, rdma_name_size(&to)) < 0)
		rc = errno == EINPROGRESS || errno == EINTR ? hello_wait(h, POLLOUT) : -errno;
	if (rc == 0 && (getsockopt(*fd, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0 ||
			getsockname(*fd, &own->any, &size) < 0))
		rc = -errno;
	if (rc == 0 && error)
		rc = -error;
	if (rc < 0) {
		snprintf(text, NBAR_RDMA_TEXT,
			 "cannot connect to %s: %s: does a daemon run there with --attach?",
			 address, strerror(-rc));
	}
	return rc;
}

/* Says why there is no reply. Returns rc. */
static int hello_failed(int rc, char text[NBAR_RDMA_TEXT])
{
	if (rc == -EPROTO)
		snprintf(text, NBAR_RDMA_TEXT,
			 "what listens there is no NIC of this version of nbar: install the same "
			 "nbar for both");
	else if (rc == -ETIMEDOUT)
		snprintf(text, NBAR_RDMA_TEXT,
			 "what listens there has not answered within %d s: is its daemon stopped?",
			 ANSWER_S);
	else
		snprintf(text, NBAR_RDMA_TEXT,
			 "what listens there ended the connection before it answered (%s): is it "
			 "the daemon, and has that ended?",
			 strerror(-rc));
	return rc;
}

/* Sends a request before libnbar does, and takes the reply. */
static int hello_ask(const struct hello *h, enum nbar_op op, const void *body, uint32_t size,
		     void *out, uint32_t out_size, char text[NBAR_RDMA_TEXT])
{
	struct {
		struct nbar_request head;
		uint8_t body[sizeof(struct nbar_req_link_open)];
	} q = {
		.head = {
			.magic = NBAR_ABI_MAGIC,
			.version = NBAR_ABI_VERSION,
			.op = (uint16_t)op,
			.length = (uint32_t)sizeof(q.head) + size,
		},
	};
	struct nbar_reply reply;
	int sent, rc;

	memcpy(q.body, body, size);
	/* A daemon may refuse this host before it reads the request. */
	sent = hello_carry(h, POLLOUT, &q, q.head.length);
	/* Another program may say less than this, and wait. */
	rc = hello_carry(h, POLLIN, &reply, VERSION_END);
	if (rc == 0 && (reply.magic != NBAR_ABI_MAGIC || reply.version != NBAR_ABI_VERSION))
		return hello_failed(-EPROTO, text);
	if (rc == 0)
		rc = hello_carry(h, POLLIN, (uint8_t *)&reply + VERSION_END,
				 sizeof(reply) - VERSION_END);
	if (rc < 0)
		return hello_failed(sent < 0 ? sent : rc, text);
	if (reply.status < 0) {
		reply.text[sizeof(reply.text) - 1] = 0;
		snprintf(text, NBAR_RDMA_TEXT, "%s", reply.text);
		return reply.status; /* the numbers are those of Linux */
	}
	if (reply.length != sizeof(reply) + out_size)
		return hello_failed(-EPROTO, text);
	rc = hello_carry(h, POLLIN, out, out_size);
	return rc < 0 ? hello_failed(rc, text) : 0;
}
_Static_assert(sizeof(struct nbar_req_link_prove) <= sizeof(struct nbar_req_link_open), "has room");

/* Where log_error of this thread writes. */
static _Thread_local char *log_text;

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (log_text)
		vsnprintf(log_text, NBAR_RDMA_TEXT, format, args);
	va_end(args);
}

/* Checks the proof of the NIC, and proves that this host knows the key. */
static int hello_prove(const struct hello *h, const struct wire_auth *auth,
		       const struct nbar_req_link_open *req, const struct nbar_rep_link_open *rep,
		       char text[NBAR_RDMA_TEXT])
{
	uint8_t nonce[2 * NBAR_NONCE_SIZE], proof[NBAR_PROOF_SIZE];
	struct nbar_req_link_prove mine;

	memcpy(nonce, rep->nonce, NBAR_NONCE_SIZE);
	memcpy(nonce + NBAR_NONCE_SIZE, req->nonce, NBAR_NONCE_SIZE);
	wire_auth_prove(auth, "nbar nic", nonce, proof);
	if (memcmp(proof, rep->proof, sizeof(proof)) != 0) {
		snprintf(text, NBAR_RDMA_TEXT, "the NIC has another key than " KEY_FILE);
		return -EACCES;
	}
	wire_auth_prove(auth, "nbar host", nonce, mine.proof);
	return hello_ask(h, NBAR_OP_LINK_PROVE, &mine, sizeof(mine), NULL, 0, text);
}

/* Names the NIC. Each side proves that it knows the key, if it has one. */
static int say_hello(const struct hello *h, const char *nic, char text[NBAR_RDMA_TEXT])
{
	const char *file = secure_getenv(KEY_FILE);
	struct nbar_req_link_open hello = { .nic = "" };
	struct nbar_rep_link_open reply;
	struct wire_auth auth = { .hash = NULL };
	int rc = 0;

	if (file && *file) {
		log_text = text;
		rc = wire_auth_load(KEY_FILE, file, &auth);
		log_text = NULL;
	}
	if (rc == 0 && getrandom(hello.nonce, sizeof(hello.nonce), 0) != sizeof(hello.nonce)) {
		snprintf(text, NBAR_RDMA_TEXT, "this machine gives no random numbers");
		rc = -EIO;
	}
	snprintf(hello.nic, sizeof(hello.nic), "%s", nic);
	if (rc == 0)
		rc = hello_ask(h, NBAR_OP_LINK_OPEN, &hello, sizeof(hello), &reply, sizeof(reply),
			       text);
	if (rc == 0 && (reply.keyed != 0) != (auth.hash != NULL)) {
		snprintf(text, NBAR_RDMA_TEXT,
			 reply.keyed ? "the NIC has a key: set " KEY_FILE " to a file with it"
				     : "the NIC has no key, but " KEY_FILE " names one");
		rc = -EACCES;
	} else if (rc == 0 && auth.hash) {
		rc = hello_prove(h, &auth, &hello, &reply, text);
	}
	explicit_bzero(&auth, sizeof(auth));
	return rc;
}

int rdma_hello(const char *address, const char *nic, union rdma_name *own, int *tcp,
	       char text[NBAR_RDMA_TEXT])
{
	struct hello h = { .tcp = -1, .until = clock_ns() + UINT64_C(1000000000) * ANSWER_S };
	int rc = tcp_connect(&h, address, own, text);

	*tcp = h.tcp;
	return rc == 0 ? say_hello(&h, nic, text) : rc;
}
