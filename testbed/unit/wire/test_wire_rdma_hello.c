/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_rdma_hello.c - how a remote host connects to its NIC: parts of messages, signals, a
 * daemon that is silent, slow or another program, keys, and the text of each error.
 *
 * TCP, the daemon and the clock are the test's own.
 */
#include "unit/unit.h"

#ifdef WIRES_VERBS
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "auth.h"
#include "log.h"
#include "rdma/rdma.h"
#include "unit/descriptors.h"

#define FOREVER UINT32_MAX
#define LIMIT_MS 30000u

static struct {
	uint64_t ms;                /* the clock */
	uint32_t waits;             /* calls of poll */
	uint32_t part;              /* bytes that TCP takes or gives at once */
	uint32_t between_ms;        /* from one part to the next */
	uint32_t signals;           /* so many calls are interrupted */
	int connect, connect_later; /* errors */
	int send, receive;          /* errors */
	uint32_t ends_after;        /* bytes of the daemon, then the end */
	bool ready;                 /* the next part */
	_Alignas(8) uint8_t sent[256];
	uint8_t said[1024];
	uint32_t nsent, nsaid, ntaken;
	/* The daemon. */
	bool silent, early; /* early: it refuses a host before it hears from it */
	const char *garbage;
	uint32_t garbage_size;
	int status[2]; /* of its replies */
	uint16_t version;
	int32_t longer; /* its replies are longer than they should be */
	struct wire_auth key;
	uint32_t replies;
	struct nbar_req_link_open open;
} fake;

static struct wire_auth of_file; /* what the file contains */
static int file_error;

static int sum(unsigned char *out, const unsigned char *in, unsigned long long n,
	       const unsigned char *key)
{
	memset(out, 0, NBAR_PROOF_SIZE);
	for (uint32_t i = 0; i < n; i++)
		out[i % NBAR_PROOF_SIZE] = (uint8_t)(out[i % NBAR_PROOF_SIZE] * 3 + in[i] + *key);
	return 0;
}

int __wrap_wire_auth_load(const char *what, const char *path, struct wire_auth *out)
{
	assert_string_equal(what, "NBAR_KEY_FILE");
	assert_string_equal(path, "/the/key");
	*out = of_file;
	if (file_error)
		log_error("%s: the text of the file", what);
	return file_error;
}

/* --- the daemon ------------------------------------------------------------------------------ */

static void daemon_replies(int status, const void *body, uint32_t size)
{
	struct nbar_reply r = {
		.magic = NBAR_ABI_MAGIC,
		.version = fake.version,
		.length = (uint32_t)((int32_t)(sizeof(r) + size) + fake.longer),
		.status = status,
	};

	if (status < 0) {
		memset(r.text, 'x', sizeof(r.text)); /* without its zero */
		memcpy(r.text, "the text of the daemon ", 23);
		r.length = sizeof(r);
		size = 0;
	}
	memcpy(fake.said + fake.nsaid, &r, sizeof(r));
	if (size > 0)
		memcpy(fake.said + fake.nsaid + sizeof(r), body, size);
	fake.nsaid += (uint32_t)sizeof(r) + size;
	fake.replies++;
}

/* Both sides of a proof. */
static void prove(const char *side, uint8_t proof[NBAR_PROOF_SIZE])
{
	uint8_t nonce[2 * NBAR_NONCE_SIZE] = { 7, 8, 9 };

	memcpy(nonce + NBAR_NONCE_SIZE, fake.open.nonce, NBAR_NONCE_SIZE);
	wire_auth_prove(&fake.key, side, nonce, proof);
}

static void daemon_hears(void)
{
	const struct nbar_request *q = (const void *)fake.sent;
	struct nbar_rep_link_open open = { .nonce = { 7, 8, 9 }, .keyed = fake.key.hash != NULL };
	uint8_t proof[NBAR_PROOF_SIZE];

	if (fake.nsent < sizeof(*q) || fake.nsent < q->length)
		return;
	assert_int_equal(fake.nsent, q->length);
	assert_int_equal(q->magic, NBAR_ABI_MAGIC);
	assert_int_equal(q->version, NBAR_ABI_VERSION);
	fake.nsent = 0;
	if (fake.silent)
		return;
	if (fake.garbage) {
		memcpy(fake.said, fake.garbage, fake.nsaid = fake.garbage_size);
	} else if (fake.replies == 0) {
		assert_int_equal(q->op, NBAR_OP_LINK_OPEN);
		assert_int_equal(q->length, sizeof(*q) + sizeof(fake.open));
		memcpy(&fake.open, q + 1, sizeof(fake.open));
		assert_string_equal(fake.open.nic, "n7");
		if (fake.key.hash)
			prove("nbar nic", open.proof);
		daemon_replies(fake.status[0], &open, sizeof(open));
	} else {
		assert_int_equal(fake.replies, 1);
		assert_int_equal(q->op, NBAR_OP_LINK_PROVE);
		assert_int_equal(q->length, sizeof(*q) + sizeof(proof));
		prove("nbar host", proof);
		assert_memory_equal(proof, q + 1, sizeof(proof));
		daemon_replies(fake.status[1], NULL, 0);
	}
}

/* --- TCP ------------------------------------------------------------------------------------- */

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	assert_int_equal(id, CLOCK_MONOTONIC);
	*out = (struct timespec){ (time_t)(fake.ms / 1000), (long)(fake.ms % 1000 * 1000000) };
	return 0;
}

static bool interrupted(void)
{
	if (fake.signals == 0)
		return false;
	fake.signals -= fake.signals != FOREVER;
	errno = EINTR;
	return true;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	bool in = p->events == POLLIN;

	assert_true(n == 1 && (in || p->events == POLLOUT));
	assert_in_range(ms, 1, LIMIT_MS + 1);
	assert_in_range(++fake.waits, 1, 100000);
	fake.ready = (!in || fake.ntaken < fake.nsaid || fake.nsaid >= fake.ends_after) &&
		     fake.between_ms <= (uint32_t)ms;
	if (interrupted()) {
		fake.ms += (uint32_t)(ms > 10 ? 10 : ms);
		fake.ready = false;
		return -1;
	}
	fake.ms += fake.ready ? fake.between_ms : (uint32_t)ms;
	return fake.ready;
}

int __wrap_connect(int fd, const struct sockaddr *name, socklen_t size)
{
	const struct sockaddr_in *in = (const void *)name;

	assert_int_equal(in->sin_port, htons(7100));
	errno = fake.connect;
	return fake.connect ? -1 : 0;
}

int __real_getsockopt(int fd, int level, int option, void *out, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int option, void *out, socklen_t *size)
{
	assert_int_equal(option, SO_ERROR);
	*(int *)out = fake.connect_later;
	return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *name, socklen_t *size)
{
	*(struct sockaddr_in *)(void *)name =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_port = 99 };
	return 0;
}

/* How many bytes of n go now; -1: none. */
static ssize_t goes(size_t n)
{
	if (interrupted())
		return -1;
	errno = EAGAIN;
	if (fake.between_ms && !fake.ready)
		return -1;
	fake.ready = false;
	return (ssize_t)(n < fake.part ? n : fake.part);
}

ssize_t __wrap_send(int fd, const void *at, size_t n, int flags)
{
	ssize_t now = goes(n);

	assert_int_equal(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (fake.send && now >= 0) {
		errno = fake.send;
		return -1;
	}
	if (now <= 0)
		return -1;
	memcpy(fake.sent + fake.nsent, at, (size_t)now);
	fake.nsent += (uint32_t)now;
	daemon_hears();
	return now;
}

ssize_t __wrap_recv(int fd, void *at, size_t n, int flags)
{
	ssize_t now;

	assert_int_equal(flags, MSG_DONTWAIT);
	if (n > fake.nsaid - fake.ntaken)
		n = fake.nsaid - fake.ntaken;
	if (fake.ntaken + n > fake.ends_after)
		n = fake.ends_after - fake.ntaken;
	now = goes(n);
	if (now > 0) {
		memcpy(at, fake.said + fake.ntaken, (size_t)now);
		fake.ntaken += (uint32_t)now;
		return now;
	}
	if (now == 0 && fake.ntaken >= fake.ends_after) {
		errno = fake.receive;
		return fake.receive ? -1 : 0;
	}
	errno = now < 0 ? errno : EAGAIN;
	return -1;
}

/* --- tests ----------------------------------------------------------------------------------- */

static char text[NBAR_RDMA_TEXT];
static union rdma_name own;

static int begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.ms = 5000;
	fake.part = fake.ends_after = FOREVER;
	fake.version = NBAR_ABI_VERSION;
	file_error = 0;
	of_file = (struct wire_auth){ .hash = sum, .key = { 5 } };
	unsetenv("NBAR_KEY_FILE");
	return 0;
}

static int option(int tcp, int level, int name)
{
	socklen_t size = sizeof(int);
	int value = -1;

	assert_int_equal(__real_getsockopt(tcp, level, name, &value, &size), 0);
	return value;
}

/* A daemon that is silent for 8 s is dead; nothing waits for more bytes. */
static void is_watched(int tcp)
{
	assert_int_equal(option(tcp, SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_int_equal(option(tcp, IPPROTO_TCP, TCP_KEEPIDLE), 1);
	assert_int_equal(option(tcp, IPPROTO_TCP, TCP_KEEPINTVL), 1);
	assert_int_equal(option(tcp, IPPROTO_TCP, TCP_KEEPCNT), 8);
	assert_int_equal(option(tcp, IPPROTO_TCP, TCP_USER_TIMEOUT), 8000);
	assert_int_equal(option(tcp, IPPROTO_TCP, TCP_NODELAY), 1);
}

static int says_hello_to(const char *address)
{
	int before = (int)unit_descriptors(), tcp = 99, rc;

	fake.nsent = fake.nsaid = fake.ntaken = fake.replies = fake.waits = 0;
	fake.ready = false;
	if (fake.early)
		daemon_replies(-EMFILE, NULL, 0);
	text[0] = '\0';
	rc = rdma_hello(address, "n7", &own, &tcp, text);
	if (rc == 0)
		is_watched(tcp);
	if (tcp >= 0)
		close(tcp);
	assert_int_equal((int)unit_descriptors(), before);
	assert_true(rc == 0 || text[0]);
	return rc;
}

static int says_hello(void)
{
	return says_hello_to("192.0.2.1:7100");
}

static void said(const char *want)
{
	require(strstr(text, want), "it says: %s", text);
}

static void keyed(void)
{
	fake.key = of_file;
	setenv("NBAR_KEY_FILE", "/the/key", 1);
}

static void both_know_the_key_or_there_is_none(void **state)
{
	assert_int_equal(says_hello(), 0);
	assert_int_equal(fake.replies, 1);
	assert_int_equal(own.in.sin_port, 99);
	setenv("NBAR_KEY_FILE", "", 1);
	assert_int_equal(says_hello(), 0);
	keyed();
	assert_int_equal(says_hello(), 0);
	assert_int_equal(fake.replies, 2);
	/* The NIC, the host, or one of both has another. */
	fake.key.key[0]++;
	assert_int_equal(says_hello(), -EACCES);
	said("the NIC has another key than NBAR_KEY_FILE");
	assert_int_equal(fake.replies, 1);
	fake.key.hash = NULL;
	assert_int_equal(says_hello(), -EACCES);
	said("the NIC has no key, but");
	keyed();
	unsetenv("NBAR_KEY_FILE");
	assert_int_equal(says_hello(), -EACCES);
	said("the NIC has a key: set NBAR_KEY_FILE");
	keyed();
	file_error = -ENOENT;
	assert_int_equal(says_hello(), -ENOENT);
	said("NBAR_KEY_FILE: the text of the file");
	assert_int_equal(fake.replies, 0);
	file_error = 0;
	fake.status[1] = -EACCES;
	assert_int_equal(says_hello(), -EACCES);
	said("the text of the daemon ");
}

/* In parts of any size, with signals between them. */
static void parts(void **state)
{
	keyed();
	for (fake.part = 1; fake.part < 300; fake.part++) {
		fake.between_ms = fake.part % 3;
		fake.signals = 7;
		require(says_hello() == 0, "parts of %u bytes: %s", fake.part, text);
		assert_int_equal(fake.signals, 0);
	}
}

/* Nothing takes longer than the limit. */
static void limits(void **state)
{
	uint64_t begun = fake.ms;

	keyed();
	fake.silent = true;
	assert_int_equal(says_hello(), -ETIMEDOUT);
	said("not answered within 30 s");
	assert_in_range(fake.ms - begun, LIMIT_MS, LIMIT_MS + 1);
	/* A byte a second, or signals all the time. */
	for (uint32_t i = 0; i < 2; i++) {
		begun = fake.ms;
		fake.silent = i == 1;
		fake.part = i == 0 ? 1 : FOREVER;
		fake.between_ms = i == 0 ? 1000 : 0;
		fake.signals = i == 0 ? 0 : FOREVER;
		assert_int_equal(says_hello(), -ETIMEDOUT);
		assert_in_range(fake.ms - begun, LIMIT_MS - 1000, LIMIT_MS + 1);
	}
	/* TCP does not connect, which takes the same time. */
	fake.silent = false;
	fake.signals = 0;
	fake.between_ms = FOREVER;
	fake.connect = EINPROGRESS;
	begun = fake.ms;
	assert_int_equal(says_hello(), -ETIMEDOUT);
	said("cannot connect to 192.0.2.1:7100: Connection timed out: does a daemon run");
	assert_in_range(fake.ms - begun, LIMIT_MS, LIMIT_MS + 1);
	/* It takes most of the time, and the daemon gets the rest. */
	fake.part = FOREVER;
	fake.between_ms = 12000;
	begun = fake.ms;
	assert_int_equal(says_hello(), -ETIMEDOUT);
	assert_in_range(fake.ms - begun, LIMIT_MS, LIMIT_MS + 1);
	fake.between_ms = 4000;
	assert_int_equal(says_hello(), 0);
}

static void connections_that_fail(void **state)
{
	struct rlimit usual, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = (struct rlimit){ .rlim_max = usual.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(says_hello(), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(says_hello_to("192.0.2.1"), -EINVAL);
	said("not an IP address and a port");
	fake.connect = ECONNREFUSED;
	assert_int_equal(says_hello(), -ECONNREFUSED);
	said("cannot connect to 192.0.2.1:7100: Connection refused: does a daemon run");
	fake.connect = EINPROGRESS;
	fake.connect_later = EHOSTUNREACH;
	assert_int_equal(says_hello(), -EHOSTUNREACH);
	said("No route to host");
	fake.connect_later = 0;
	assert_int_equal(says_hello(), 0);
	/* The daemon ends amid each byte of its replies. */
	keyed();
	for (uint32_t i = 0; i < 2 * sizeof(struct nbar_reply) + sizeof(struct nbar_rep_link_open);
	     i++) {
		fake.ends_after = i;
		fake.receive = i % 2 ? EPIPE : 0;
		assert_int_equal(says_hello(), i % 2 ? -EPIPE : -ECONNRESET);
		said("ended the connection before it answered");
	}
	fake.ends_after++;
	assert_int_equal(says_hello(), 0);
}

/* A daemon may refuse a host, and end, before the host has sent anything. */
static void refusals(void **state)
{
	fake.status[0] = -EMFILE;
	assert_int_equal(says_hello(), -EMFILE);
	said("the text of the daemon ");
	assert_int_equal(strlen(text), 235);
	fake.send = ECONNRESET;
	fake.ends_after = 0;
	assert_int_equal(says_hello(), -ECONNRESET);
	said("Connection reset");
	fake.early = true;
	assert_int_equal(says_hello(), -ECONNRESET);
	fake.ends_after = FOREVER;
	assert_int_equal(says_hello(), -EMFILE);
	said("the text of the daemon ");
}

static void other_programs(void **state)
{
	static const char banner[] = "SSH-2.0-OpenSSH_9.2";

	fake.garbage = banner;
	fake.garbage_size = sizeof(banner); /* then it waits */
	assert_int_equal(says_hello(), -EPROTO);
	said("no NIC of this version of nbar");
	assert_int_equal(fake.waits, 0);
	fake.garbage = NULL;
	fake.version++;
	assert_int_equal(says_hello(), -EPROTO);
	fake.version--;
	for (fake.longer = -8; fake.longer <= 8; fake.longer++) {
		assert_int_equal(says_hello(), fake.longer ? -EPROTO : 0);
		if (fake.longer)
			said("no NIC of this version of nbar");
	}
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

UNIT_MAIN(NULL, NULL, TEST(both_know_the_key_or_there_is_none), TEST(parts), TEST(limits),
	  TEST(connections_that_fail), TEST(refusals), TEST(other_programs))
#else
int main(void)
{
	puts("1..1\nok 1 - the hello of remote hosts # SKIP this build has none: apt-get install libibverbs-dev");
	return 0;
}
#endif
