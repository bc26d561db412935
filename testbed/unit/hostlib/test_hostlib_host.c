/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_host.c - how libnbar finds a NIC in this or another process, checks the owner of the
 * NIC, and looks at the NIC. This file replaces the library of in-process NICs.
 *
 * Linked with --wrap for the calls that it replaces.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/unit.h"
#include "nbar_hostnic.h"
#include "nbar_extra.h"
#include "internal.h"
#include "order.h"

#define CELL 2u
#define MS UINT64_C(1000000)
#define OTHERS 7u     /* a uid */
#define OURS 1234567u /* the uid here */

static struct nbar_page page;
static struct nbar_port port;
static struct nbar_group group;

/* What the replaced calls return. 0: success. */
static struct {
	int connect, getsockopt; /* an error */
	uid_t owner;             /* uid of the listening process */
	pid_t pid;               /* its pid */
	bool wraps;              /* false: the real functions are called */
	const char *loaded;      /* the file that dlopen got */
	int open, thread;        /* errors of the library */
	uint32_t socket_id;
	uint32_t opened, closed; /* calls of the library */
	void (*look)(void);      /* called during a look */
} fake;

static int fake_open(const char *spec, int make, struct nbar_hostnic **out,
		     char text[NBAR_HOSTNIC_TEXT])
{
	assert_true(strcmp(spec, "x") == 0 || strcmp(spec, "5%") == 0);
	snprintf(text, NBAR_HOSTNIC_TEXT, "the text of the library");
	if (fake.open)
		return -fake.open;
	fake.opened++;
	*out = (struct nbar_hostnic *)&fake;
	return 0;
}

static void fake_close(struct nbar_hostnic *nic)
{
	assert_ptr_equal(nic, &fake);
	fake.closed++;
}

static int fake_connect(struct nbar_hostnic *nic)
{
	return -fake.thread;
}

static uint32_t fake_socket_id(const struct nbar_hostnic *nic)
{
	return fake.socket_id;
}

static void fake_poll(struct nbar_hostnic *nic)
{
	if (fake.look)
		fake.look();
}

static struct nbar_hostnic_ops ops = {
	.version = NBAR_HOSTNIC_VERSION,
	.open = fake_open,
	.close = fake_close,
	.connect = fake_connect,
	.socket_id = fake_socket_id,
	.poll = fake_poll,
};

void *__real_dlopen(const char *file, int flags);
void *__wrap_dlopen(const char *file, int flags)
{
	if (!fake.wraps)
		return __real_dlopen(file, flags);
	fake.loaded = file;
	return &ops;
}

void *__real_dlsym(void *library, const char *symbol);
void *__wrap_dlsym(void *library, const char *symbol)
{
	if (library != &ops)
		return __real_dlsym(library, symbol);
	assert_string_equal(symbol, NBAR_HOSTNIC_SYMBOL);
	return library;
}

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *size);

/* A process that listens may never accept, and never read: each call on the socket has a limit. */
static void expect_limits(int fd)
{
	static const int options[] = { SO_SNDTIMEO, SO_RCVTIMEO };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct timeval limit = { 0 };
		socklen_t size = sizeof(limit);

		assert_int_equal(__real_getsockopt(fd, SOL_SOCKET, options[i], &limit, &size), 0);
		assert_int_equal(limit.tv_sec, 30);
	}
}

int __real_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	if (!fake.wraps)
		return __real_connect(fd, to, size);
	expect_limits(fd);
	errno = fake.connect;
	return fake.connect ? -1 : 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	const struct ucred who = { .pid = fake.pid, .uid = fake.owner };

	if (!fake.wraps)
		return __real_getsockopt(fd, level, name, value, size);
	assert_int_equal(name, SO_PEERCRED);
	memcpy(value, &who, sizeof(who));
	errno = fake.getsockopt;
	return fake.getsockopt ? -1 : 0;
}

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void)
{
	return fake.wraps ? OURS : __real_geteuid();
}

int __real_poll(struct pollfd *p, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout)
{
	if (!fake.wraps)
		return __real_poll(p, n, timeout);
	if (fake.look)
		fake.look();
	return 1;
}

#define expect(call, error, part)                                                                \
	do {                                                                                     \
		int expect_rc = (call);                                                          \
		require(expect_rc == -(error), "returned %d: %s", expect_rc, nbar_error());      \
		require(strstr(nbar_error(), part), "\"%s\" is not in: %s", part, nbar_error()); \
	} while (0)

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.wraps = true;
	ops.version = NBAR_HOSTNIC_VERSION;
	unsetenv("NBAR_HOSTNIC");
	memset(&page, 0, sizeof(page));
	port = (struct nbar_port){
		.link = { .sock = -1, .nic = "n0", .in_process = true, .ops = &ops },
		.page = &page,
	};
	port.link.host = (struct nbar_hostnic *)&fake;
	group = (struct nbar_group){
		.port = &port,
		.doorbell = &page.doorbell[CELL],
		.completion = &page.completion[CELL],
		.connected = true,
		.runs = true,
		.cell = CELL,
		.size = 2,
	};
	port.group[CELL] = &group;
	return 0;
}

static int teardown(void **state)
{
	fake.wraps = false;
	return 0;
}

/* --- in-process NICs ------------------------------------------------------------------------- */

static void the_library_must_fit(void **state)
{
	struct nbar_port *p = NULL;

	ops.version++;
	expect(nbar_open("host:x", &p), ELIBBAD, "this program knows version 3");
	assert_string_equal(fake.loaded, "libnbar-hostnic.so.0");
	setenv("NBAR_HOSTNIC", "", 1);
	expect(nbar_open("host:x", &p), ELIBBAD, "libnbar-hostnic.so.0 is of version 4");
	setenv("NBAR_HOSTNIC", "/some/file", 1);
	expect(nbar_open("host:x", &p), ELIBBAD, "/some/file");
	assert_int_equal(fake.opened, 0);
	assert_null(p);
}

static void what_the_library_refuses_is_told(void **state)
{
	struct nbar_port *p = NULL;
	struct nblib_link link;
	uint32_t number;

	fake.open = EINVAL;
	expect(nbar_open("host:x", &p), EINVAL, "NIC host:x: the text of the library");
	fake.open = 0;
	fake.thread = ECONNREFUSED;
	expect(nbar_open("host:x", &p), ECONNREFUSED, "no way to its thread");
	fake.thread = EPERM; /* -1 is no socket, either */
	expect(nbar_open("host:x", &p), EPERM, "no way to its thread");
	assert_int_equal(nblib_link_open(&link, "host:5%", NBLIB_SOCKET_ID_MAKE, &number), -EPERM);
	assert_string_equal(link.nic, "host:5%");
	assert_string_equal(link.path, "host:5%");
	assert_int_equal(fake.opened, 3);
	assert_int_equal(fake.closed, 3);
	assert_null(p);
}

static int attach(uint32_t socket_id)
{
	const struct nbar_share share = { .socket_id = socket_id };
	struct nbar_port *p = NULL;
	int rc = nbar_attach("host:x", &share, &p);

	assert_null(p);
	return rc;
}

/* The process that shares its NIC must be reachable, and must belong to the same user. */
static void a_share_is_of_the_same_user(void **state)
{
	static const struct {
		int connect, error;
		const char *text;
	} cases[] = {
		{ EACCES, EACCES, "not of uid 1234567" },
		{ EPERM, EACCES, "not of uid 1234567" },
		{ EAGAIN, ETIME, "does not answer" },
		{ ECONNREFUSED, ECONNREFUSED, "has ended" },
		{ ENOENT, ECONNREFUSED, "has ended" },
		{ ENOBUFS, ENOBUFS, "cannot connect to the process that shares it" },
	};

	struct nbar_rep_nic_stat stat;

	fake.open = ENOENT; /* the NIC is not in this process */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake.connect = cases[i].connect;
		expect(attach(5), cases[i].error, cases[i].text);
	}
	fake.connect = 0;
	fake.owner = OTHERS;
	expect(attach(5), EACCES, "not of uid 1234567");
	fake.owner = 0; /* root is another user, too */
	expect(attach(5), EACCES, "not of uid 1234567");
	fake.owner = OURS;
	fake.getsockopt = ENOBUFS;
	expect(attach(5), EACCES, "not of uid 1234567");
	assert_int_equal(fake.closed, 0);
	/* The NIC of this name in this process is another NIC. */
	fake.open = 0;
	fake.socket_id = 6;
	fake.connect = ENOENT;
	expect(attach(5), ECONNREFUSED, "has ended");
	assert_int_equal(fake.closed, 1);
	/* The NIC is the right one, or the share accepts any NIC. */
	fake.thread = EMFILE;
	expect(attach(6), EMFILE, "no way to its thread");
	expect(attach(0), EMFILE, "no way to its thread");
	assert_int_equal(fake.opened, 3);
	assert_int_equal(fake.closed, 3);
	/* Other errors do not mean that the NIC is in another process. */
	fake.open = EBUSY;
	expect(attach(5), EBUSY, "the text of the library");
	fake.open = ENOENT;
	expect(attach(0), ENOENT, "no NIC host:x in this process");
	/* A share has a bad number. */
	fake.connect = ENOENT;
	expect(attach(NBAR_HOSTNIC_SOCKET_IDS), ECONNREFUSED, "has ended");
	expect(attach(NBAR_HOSTNIC_SOCKET_IDS + 1), EINVAL, "socket id 2147483648");
	expect(nbar_nic_stat("host:x", &stat), ENOENT, "no NIC host:x in this process");
	expect(nbar_nic_groups("host:x", NULL, NULL), ENOENT, "no NIC host:x in this process");
}

/* A program may have closed its standard input. */
static void a_socket_may_have_any_number(void **state)
{
	struct nblib_link link = { .sock = -1 };
	struct timeval limit = { 0 };
	socklen_t size = sizeof(limit);
	int kept = dup(STDIN_FILENO), end[2], rc;
	bool closed;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, end), 0);
	assert_int_equal(dup2(end[0], STDIN_FILENO), STDIN_FILENO);
	rc = nblib_host_connect(&link, "host:x", NBLIB_SOCKET_ID_MAKE);
	__real_getsockopt(STDIN_FILENO, SOL_SOCKET, SO_RCVTIMEO, &limit, &size);
	nblib_link_close(&link);
	closed = fcntl(STDIN_FILENO, F_GETFD) < 0;
	if (kept >= 0)
		dup2(kept, STDIN_FILENO);
	close(kept);
	close(end[0]);
	close(end[1]);
	assert_int_equal(rc, 0);
	assert_int_equal(limit.tv_sec, 30); /* how long a request waits for its reply */
	assert_true(closed);
	assert_int_equal(link.sock, -1);
}

static void complete_one(void)
{
	page.completion[CELL].word = 1;
	fake.look = NULL;
}

static void deliver_one(void)
{
	struct nbar_signal *e = &page.recv[0];

	e->cell = CELL;
	e->peer = 1;
	e->word[0] = 77;
	e->seq = 1;
	fake.look = NULL;
}

/* A thread that tests runs a pass of the NIC. A completion in that pass counts at once. */
static void a_pass_brings_news(void **state)
{
	struct nbar_signal_in in;

	assert_int_equal(nbar_post(&group, NULL), 0);
	assert_int_equal(nbar_test(&group, 1), 0);
	fake.look = complete_one;
	assert_int_equal(nbar_test(&group, 1), 1);
	group.is_signal = true;
	assert_int_equal(nbar_signal_recv(&port, &in), 0);
	fake.look = deliver_one;
	assert_int_equal(nbar_signal_recv(&port, &in), 1);
	assert_ptr_equal(in.group, &group);
	assert_int_equal(in.src, 1);
	assert_int_equal(in.word[0], 77);
	assert_int_equal(nbar_signal_recv(&port, &in), 0);
	assert_int_equal(page.recvs_taken, 1);
}

/* The process that arrives last runs a pass of the NIC. A wrong number of a process is told first,
 * whatever the group would say. */
static void the_last_process_runs_a_pass(void **state)
{
	struct nbar_process_team procs;
	uint32_t ticket;

	assert_int_equal(nbar_process_team_init(&procs, 1), 0);
	fake.look = complete_one;
	assert_int_equal(nbar_process_team_post(&procs, &group, 0, &ticket), 0);
	assert_null(fake.look);
	assert_int_equal(nbar_process_team_test(&procs, &group, ticket), 1);
	expect(nbar_process_team_post(&procs, &group, 1, &ticket), ERANGE, "process 1: ");
}

static void take_one(void)
{
	page.sends_taken = 1;
	fake.look = NULL;
}

/* While the ring is full, a sender gives the NIC the chance to take messages. */
static void a_full_ring_runs_a_pass(void **state)
{
	const uint32_t word[NBAR_SIGNAL_WORDS] = { 1 };

	group.is_signal = true;
	group.npeer = 1;
	/* As long as there is room, nobody reads how many messages the NIC has taken. */
	page.sends_taken = 1000;
	assert_int_equal(nbar_signal_send(&group, 0, word), 0);
	assert_int_equal(port.sends_taken, 0);
	page.sends_taken = 0;
	port.sends_put = NBAR_SIGNALS_MAX;
	fake.look = take_one;
	expect(nbar_signal_send(&group, 0, word), EAGAIN, "try again");
	assert_null(fake.look);
	assert_int_equal(nbar_signal_send(&group, 0, word), 0);
}

static void must_not_run(void)
{
	fail_msg("a NIC that is gone has run a pass");
}

static void a_nic_that_has_ended_runs_no_pass(void **state)
{
	assert_int_equal(nbar_post(&group, NULL), 0);
	fake.look = must_not_run;
	order_down_write(&port.link.down, NBLIB_GONE);
	expect(nbar_post(&group, NULL), ENETDOWN, "in this process does not answer");
	expect(nbar_test(&group, 1), ENETDOWN, "in this process does not answer");
}

/* --- NICs of daemons ------------------------------------------------------------------------- */

/* A barrier that the daemon completed just before its end is complete. */
static void the_last_barrier_counts(void **state)
{
	int rc = 0;

	port.link.host = NULL;
	port.link.in_process = false;
	assert_int_equal(nbar_post(&group, NULL), 0);
	page.life = 5;
	fake.look = complete_one; /* called when the library looks at the socket, now and then */
	for (uint32_t i = 0; i < 100000 && rc == 0; i++)
		rc = nbar_test(&group, 1);
	assert_int_equal(rc, 1);
	assert_null(fake.look);
	assert_int_equal(group.life, 5);
	expect(nbar_post(&group, NULL), ENETDOWN, "its daemon at");
}

static void a_connection_that_fails_is_explained(void **state)
{
	static const struct {
		int connect, error;
		const char *text;
	} cases[] = {
		{ ENOENT, ENOENT, "no NIC n3 at /some/n3.sock: start one with" },
		{ ENOTDIR, ENOENT, "with `nbar-nicd --nic name=n3`, or set NBAR_RUN_DIR" },
		{ ECONNREFUSED, ECONNREFUSED, "NIC n3: nobody listens at /some/n3.sock, its" },
		{ ECONNREFUSED, ECONNREFUSED, "again with `nbar-nicd --nic name=n3`" },
		{ EACCES, EACCES, "NIC n3: no permission for /some/n3.sock: " },
		{ EPERM, EACCES, "NIC n3: no permission for /some/n3.sock: " },
		{ EPROTOTYPE, EPROTO, "NIC n3: what listens is no NIC of nbar at /some/n3.sock" },
		{ EAGAIN, ECONNREFUSED, "NIC n3: its daemon does not accept anybody at /some/n3" },
		{ ENOBUFS, ENOBUFS, "NIC n3: cannot connect to /some/n3.sock: " },
	};
	struct nbar_rep_nic_stat stat;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake.connect = cases[i].connect;
		expect(nbar_nic_stat("/some/n3.sock", &stat), cases[i].error, cases[i].text);
	}
	/* An empty name counts as no name. */
	setenv("NBAR_NIC", "", 1);
	setenv("NBAR_RUN_DIR", "/some/dir", 1);
	fake.connect = ENOENT;
	expect(nbar_nic_stat(NULL, &stat), ENOENT, "no NIC n0 at /some/dir/n0.sock");
	unsetenv("NBAR_NIC");
	unsetenv("NBAR_RUN_DIR");
}

/* In the default directory of a user, only the user and root may listen. */
static void a_listener_must_be_trusted(void **state)
{
	static const char path[] = "/tmp/nbar-1234567/n0.sock";
	struct nbar_rep_nic_stat stat;

	fake.owner = OTHERS;
	expect(nbar_nic_stat(path, &stat), EACCES,
	       "NIC n0: /tmp/nbar-1234567/n0.sock belongs to uid 7, not to uid 1234567");
	fake.getsockopt = ENOBUFS;
	expect(nbar_nic_stat(path, &stat), ENOBUFS,
	       "cannot tell who listens at /tmp/nbar-1234567/");
	fake.getsockopt = 0;
	/* These requests go to a socket that is not connected. */
	fake.owner = 0;
	expect(nbar_nic_stat(path, &stat), ENETDOWN, "its daemon at /tmp/nbar-1234567/");
	fake.owner = OURS;
	expect(nbar_nic_stat(path, &stat), ENETDOWN, "its daemon at /tmp/nbar-1234567/");
	fake.owner = OTHERS;
	expect(nbar_nic_stat("/tmp/nbar-12/n0.sock", &stat), ENETDOWN,
	       "its daemon at /tmp/nbar-12/");
}

/* A process that SIGSTOP has stopped. */
static pid_t stopped_process(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	return child;
}

static void why_a_nic_does_not_run(void **state)
{
	const pid_t child = stopped_process();
	char text[256];

	group.life_mute = 2000 * MS;
	assert_int_equal(nbar_nic_why(&group, text, sizeof(text)), 0); /* it has no daemon */
	port.link.host = NULL;
	port.link.in_process = false;
	fake.pid = child;
	assert_true(nbar_nic_why(&group, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "is stopped: let it go on (kill -CONT"));
	fake.getsockopt = EBADF;
	assert_true(nbar_nic_why(&group, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "its daemon at  get a processor?"));
	/* A busy machine may cause a silence of less than 1 s; of a stopped process, less than 50
	 * ms. */
	group.life_mute = 1000 * MS;
	assert_true(nbar_nic_why(&group, text, sizeof(text)) > 0);
	group.life_mute--;
	assert_int_equal(nbar_nic_why(&group, text, sizeof(text)), 0);
	fake.getsockopt = 0;
	group.life_mute = 50 * MS;
	assert_true(nbar_nic_why(&group, text, sizeof(text)) > 0);
	group.life_mute--;
	assert_int_equal(nbar_nic_why(&group, text, sizeof(text)), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* A caller may ask for the number alone. */
	page.completion[CELL].word = (uint64_t)NBAR_STATUS_CLOSED << 32;
	assert_int_equal(nbar_missing_why(&group, NULL, NULL, 0), 1);
}

#define HOST(test) UNIT_IN(test, setup, teardown)
UNIT_MAIN(NULL, NULL, HOST(the_library_must_fit), HOST(what_the_library_refuses_is_told),
	  HOST(a_share_is_of_the_same_user), HOST(a_socket_may_have_any_number),
	  HOST(a_full_ring_runs_a_pass), HOST(a_pass_brings_news),
	  HOST(the_last_process_runs_a_pass), HOST(a_nic_that_has_ended_runs_no_pass),
	  HOST(the_last_barrier_counts), HOST(a_connection_that_fails_is_explained),
	  HOST(a_listener_must_be_trusted), HOST(why_a_nic_does_not_run))
