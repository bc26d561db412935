/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw.c - a client of nbar-nicd without libnbar.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "raw.h"

#define PATIENCE_S 20 /* after this time a reply or a barrier counts as missing */

static unsigned ntest, nfailed;

bool ok(bool pass, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("%sok %u - ", pass ? "" : "not ", ++ntest);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	fflush(stdout);
	nfailed += !pass;
	return pass;
}

int ok_end(void)
{
	printf("1..%u\n", ntest);
	return nfailed > 0 || ntest == 0;
}

int raw_dial(struct raw *r, const char *run_dir, const char *nic)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	r->page = NULL;
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%.80s/%.20s.sock", run_dir, nic);
	r->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (r->fd < 0 ||
	    setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return 0;
	if (connect(r->fd, (const struct sockaddr *)&sun, sizeof(sun)) == 0)
		return 1;
	close(r->fd);
	return 0;
}

void raw_close(struct raw *r)
{
	if (r->page)
		munmap(r->page, sizeof(*r->page));
	close(r->fd);
}

int raw_say(struct raw *r, const void *bytes, size_t n)
{
	return send(r->fd, bytes, n, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int raw_say_events(struct raw *r)
{
	const struct {
		struct nbar_request head;
		struct nbar_req_group_events body;
	} ask = { .head = { .magic = NBAR_ABI_MAGIC,
			    .version = NBAR_ABI_VERSION,
			    .op = NBAR_OP_GROUP_EVENTS,
			    .length = sizeof(ask) } };

	return raw_say(r, &ask, sizeof(ask));
}

/* Maps the page if the reply carries one. */
static void take_page(struct raw *r, struct msghdr *msg)
{
	struct cmsghdr *cm = CMSG_FIRSTHDR(msg);
	int fd;

	if (!cm || cm->cmsg_type != SCM_RIGHTS)
		return;
	memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	r->page = mmap(NULL, sizeof(*r->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r->page == MAP_FAILED)
		r->page = NULL;
	close(fd);
}

int raw_hear(struct raw *r)
{
	struct iovec iov = { .iov_base = &r->reply, .iov_len = sizeof(r->reply) };
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(sizeof(int))];
	} rights;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = rights.byte,
		.msg_controllen = sizeof(rights.byte),
	};
	ssize_t n = recvmsg(r->fd, &msg, MSG_CMSG_CLOEXEC);
	const struct nbar_reply *h = &r->reply.head;

	if (n < (ssize_t)sizeof(*h) || h->magic != NBAR_ABI_MAGIC ||
	    h->version != NBAR_ABI_VERSION || h->length != (size_t)n || h->status > 0 ||
	    !memchr(h->text, '\0', sizeof(h->text)) ||
	    (h->status < 0 && (h->length != sizeof(*h) || !h->text[0])))
		return RAW_NO_REPLY;
	take_page(r, &msg);
	return h->status;
}

int raw_request(struct raw *r, enum nbar_op op, const void *body, size_t n)
{
	uint8_t bytes[NBAR_MESSAGE_MAX];
	const struct nbar_request head = {
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = (uint16_t)op,
		.length = (uint32_t)(sizeof(head) + n),
	};

	memcpy(bytes, &head, sizeof(head));
	if (n > 0)
		memcpy(bytes + sizeof(head), body, n);
	return raw_say(r, bytes, sizeof(head) + n);
}

int raw_ask(struct raw *r, enum nbar_op op, const void *body, size_t n)
{
	return raw_request(r, op, body, n) < 0 ? RAW_NO_REPLY : raw_hear(r);
}

int raw_port_open(struct raw *r, uint32_t port)
{
	const struct nbar_req_port_open req = { .port = port };
	int rc = raw_ask(r, NBAR_OP_PORT_OPEN, &req, sizeof(req));

	if (rc == 0)
		memcpy(&r->port, r->reply.body, sizeof(r->port));
	return rc == 0 && !r->page ? RAW_NO_REPLY : rc;
}

int raw_group_open(struct raw *r, const char *alg, uint32_t rank, uint32_t size, uint32_t tag)
{
	return raw_group_open_values(r, alg, rank, size, tag, 0);
}

int raw_group_open_values(struct raw *r, const char *alg, uint32_t rank, uint32_t size,
			  uint32_t tag, uint32_t value_max)
{
	struct nbar_req_group_open req = {
		.rank = rank, .size = size, .tag = tag, .value_max = value_max
	};

	/* A name of the full length has no zero byte. */
	memcpy(req.alg, alg, strnlen(alg, sizeof(req.alg)));
	return raw_ask(r, NBAR_OP_GROUP_OPEN, &req, sizeof(req));
}

int raw_group_connect(struct raw *r, uint32_t cell, const struct nbar_endpoint *endpoint,
		      uint32_t n)
{
	uint8_t body[NBAR_MESSAGE_MAX];
	const struct nbar_req_group_connect req = { .cell = cell, .nendpoint = n };

	memcpy(body, &req, sizeof(req));
	memcpy(body + sizeof(req), endpoint, n * sizeof(*endpoint));
	return raw_ask(r, NBAR_OP_GROUP_CONNECT, body, sizeof(req) + n * sizeof(*endpoint));
}

int raw_group_close(struct raw *r, uint32_t cell)
{
	const struct nbar_req_group_close req = { .cell = cell };

	return raw_ask(r, NBAR_OP_GROUP_CLOSE, &req, sizeof(req));
}

uint64_t raw_counter(struct raw *r, enum nbar_counter which)
{
	struct nbar_rep_nic_stat stat;

	if (raw_ask(r, NBAR_OP_NIC_STAT, NULL, 0) != 0)
		return UINT64_MAX;
	memcpy(&stat, r->reply.body, sizeof(stat));
	return stat.counter[which];
}

uint64_t raw_await_counter(struct raw *r, enum nbar_counter which, uint64_t least)
{
	time_t end = time(NULL) + PATIENCE_S;
	uint64_t now;

	do
		now = raw_counter(r, which);
	while (now < least && time(NULL) < end && !sched_yield());
	return now;
}

void raw_post(struct raw *r, uint32_t cell, uint32_t epoch)
{
	__atomic_store_n(&r->page->doorbell[cell].posted, epoch, __ATOMIC_RELEASE);
}

uint64_t raw_await(struct raw *r, uint32_t cell, uint32_t epoch)
{
	time_t end = time(NULL) + PATIENCE_S;
	uint64_t word;

	do {
		word = __atomic_load_n(&r->page->completion[cell].word, __ATOMIC_ACQUIRE);
		if (word >> 32 || (int32_t)((uint32_t)word - epoch) >= 0)
			break;
		sched_yield();
	} while (time(NULL) < end);
	return word;
}

pid_t raw_daemon_start(const char *run_dir, uint32_t nnic, const char *const *args)
{
	const char *build = getenv("BUILD"), *argv[32] = { "nbar-nicd", "--run-dir", run_dir };
	char path[256], line[256];
	int pipe_fd[2], argc = 3;
	uint32_t ready = 0;

	snprintf(path, sizeof(path), "%s/nbar-nicd", build ? build : "build");
	while (*args && argc < 31)
		argv[argc++] = *args++;
	if (pipe(pipe_fd) < 0)
		return 0;
	pid_t self = getpid(), pid = fork();

	if (pid == 0) {
		/* If the test is killed, its daemon ends too. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != self)
			_exit(0);
		dup2(pipe_fd[1], STDOUT_FILENO);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		execv(path, (char *const *)argv);
		perror(path);
		_exit(127);
	}
	close(pipe_fd[1]);
	FILE *out = fdopen(pipe_fd[0], "r");

	while (out && ready < nnic && fgets(line, sizeof(line), out))
		ready += strstr(line, " ready: ") != NULL;
	if (out)
		fclose(out); /* the daemon writes nothing more to its stdout */
	if (ready == nnic)
		return pid;
	raw_daemon_end(pid, SIGKILL);
	return 0;
}

int raw_daemon_end(pid_t pid, int sig)
{
	int status = -1;

	if (sig)
		kill(pid, sig);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
