/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strangers.c - two users at one daemon: one user cannot take so much of a resource that the other
 * gets none. And the privileges of a daemon that root has started, after its start.
 *
 * Needs root, to act as two users: the kernel tells a daemon the effective user of the process that
 * connects. Asserts counts and order, no times.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.h"

#define STRANGER 65534u
#define FILES 120 /* limit of the daemon's descriptors */
#define CROWD 200
#define TURN_TRIES 5
#define FEW 4 /* requests */

static char run_dir[] = "/tmp/nbar-strangers-XXXXXX";
static struct raw taken[CROWD];

static void run_dir_remove(const char *dir)
{
	char lock[128];

	snprintf(lock, sizeof(lock), "%s/nicd.lock", dir);
	unlink(lock);
	rmdir(dir);
}

/* Connects as this user. */
static bool dial_as(struct raw *r, uid_t uid, const char *nic)
{
	bool done = seteuid(uid) == 0 && raw_dial(r, run_dir, nic);

	return seteuid(0) == 0 && done;
}

static int ask_stat(struct raw *r)
{
	return raw_ask(r, NBAR_OP_NIC_STAT, NULL, 0);
}

/* Asks for a port. Returns the status; a daemon that refuses the client may have closed the
 * connection before the request. */
static int want_port(struct raw *r)
{
	int rc = raw_port_open(r, NBAR_PORT_ANY);

	return rc == RAW_NO_REPLY ? raw_hear(r) : rc;
}

static void files_of(pid_t pid, rlim_t n)
{
	struct rlimit limit;

	prlimit(pid, RLIMIT_NOFILE, NULL, &limit);
	limit.rlim_cur = n;
	prlimit(pid, RLIMIT_NOFILE, &limit, NULL);
}

static void close_all(int n)
{
	while (n > 0)
		raw_close(&taken[--n]);
}

/* Waits until a NIC has no port. The daemon notices the end of clients with some delay. */
static bool no_ports(const char *nic)
{
	struct nbar_rep_nic_stat stat = { .nport = 1 };
	struct raw r;

	if (!dial_as(&r, 0, nic))
		return false;
	for (int i = 0; i < 2000 && stat.nport > 0 && ask_stat(&r) == 0; i++) {
		memcpy(&stat, r.reply.body, sizeof(stat));
		usleep(stat.nport > 0 ? 10000 : 0);
	}
	raw_close(&r);
	return stat.nport == 0;
}

static void ports_of_one_user(void)
{
	struct raw mine;
	int n = 0, rc = 0;

	while (n < CROWD && rc == 0 && dial_as(&taken[n], STRANGER, "n0")) {
		rc = want_port(&taken[n]);
		n += rc == 0;
	}
	ok(rc == -ENOSPC && strstr(taken[n].reply.head.text, "--user-percent"),
	   "a user with %d ports gets no more: %s", n, taken[n].reply.head.text);
	ok(dial_as(&mine, 0, "n0") && want_port(&mine) == 0, "another user gets one");
	ok(raw_counter(&mine, NBAR_COUNTER_quota_refused) == 1, "the refusal is counted");
	raw_close(&mine);
	raw_close(&taken[n]);
	close_all(n);
}

/* Ports take two descriptors each. */
static void descriptors_of_one_user(pid_t pid)
{
	struct raw mine;
	int n = 0, rc = 0;

	files_of(pid, FILES);
	while (n < CROWD && rc == 0 && dial_as(&taken[n], STRANGER, n % 2 ? "n1" : "n0")) {
		rc = want_port(&taken[n]);
		n += rc == 0;
	}
	ok(rc < 0 && n < FILES / 2, "a user who has %d ports gets no more: %s", n,
	   taken[n].reply.head.text);
	ok(dial_as(&mine, 0, "n0") && want_port(&mine) == 0,
	   "another user gets a port, although descriptors are few");
	raw_close(&mine);
	raw_close(&taken[n]);
	close_all(n);
	ok(no_ports("n0") && no_ports("n1"), "all ports are given back");
}

static void idle_clients_of_one_user(pid_t pid)
{
	struct raw mine, more;
	int n = 0;

	files_of(pid, FILES);
	bool first = dial_as(&mine, 0, "n0") && ask_stat(&mine) == 0;

	while (n < CROWD && dial_as(&taken[n], STRANGER, "n0"))
		n++;
	ok(first && n == CROWD && ask_stat(&taken[n - 1]) == 0, "%d idle connections of one user",
	   n);
	ok(ask_stat(&mine) == 0, "an idle client of another user stays, although it is the oldest");
	ok(dial_as(&more, 0, "n0") && want_port(&more) == 0, "and another one comes");
	ok(raw_hear(&taken[0]) == RAW_NO_REPLY, "the crowd makes room among its own");
	raw_close(&more);
	raw_close(&mine);
	close_all(n);
	ok(no_ports("n0"), "all ports are given back");
}

/* Requests of two users wait while the daemon is stopped. The numbers of the ports that the users
 * get show in which order the daemon served the requests. Returns the number of requests of the
 * crowd that were served before the one of the other user; UINT32_MAX after an error. */
static uint32_t served_before(pid_t pid)
{
	const struct {
		struct nbar_request head;
		struct nbar_req_port_open body;
	} ask = { .head = { .magic = NBAR_ABI_MAGIC,
			    .version = NBAR_ABI_VERSION,
			    .op = NBAR_OP_PORT_OPEN,
			    .length = sizeof(ask) },
		  .body = { .port = NBAR_PORT_ANY } };
	struct raw mine;
	uint32_t port = UINT32_MAX;
	int n = 0;
	bool ready = dial_as(&mine, 0, "n1") && ask_stat(&mine) == 0;

	while (n < CROWD && dial_as(&taken[n], STRANGER, "n1") && ask_stat(&taken[n]) == 0)
		n++;
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	for (int i = 0; i < n; i++)
		ready &= raw_say(&taken[i], &ask, sizeof(ask)) == 0;
	ready &= raw_say(&mine, &ask, sizeof(ask)) == 0;
	kill(pid, SIGCONT);
	ready &= raw_hear(&mine) == 0 && n == CROWD;
	if (ready)
		memcpy(&port, mine.reply.body, sizeof(port));
	raw_close(&mine);
	close_all(n);
	return port;
}

/* The daemon serves each user in turn, as soon as the thread of the user has a processor. Other
 * processes may delay the thread, so the test tries again. */
static void turns_of_users(pid_t pid)
{
	uint32_t before = CROWD;
	bool given_back = true;

	files_of(pid, 4096);
	for (int i = 0; i < TURN_TRIES && before >= FEW && before <= CROWD && given_back; i++) {
		before = served_before(pid);
		given_back = no_ports("n1");
	}
	ok(before < FEW, "%d requests of one user wait; another user is served after %u of them",
	   CROWD, before);
	ok(given_back, "all ports are given back");
}

/* True if the line `key` of this status file has this value. */
static bool status_is(const char *path, const char *key, const char *value)
{
	char line[256], *at;
	FILE *f = fopen(path, "r");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		at = line + strlen(key);
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		at += strspn(at, " \t");
		at[strcspn(at, "\n")] = '\0';
		found = strcmp(at, value) == 0;
		if (!found)
			printf("# %s: %s %s, not %s\n", path, key, at, value);
		break;
	}
	if (f)
		fclose(f);
	return found;
}

/* True if the status of all threads of the daemon has this value of `key`. */
static bool all_threads(pid_t pid, const char *key, const char *value)
{
	char path[300];
	bool all = true;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *d = opendir(path);

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", (int)pid, e->d_name);
		all &= status_is(path, key, value);
		n++;
	}
	if (d)
		closedir(d);
	return all && n >= 2; /* polling and control thread */
}

static void ends_well(pid_t pid)
{
	int status = raw_daemon_end(pid, SIGTERM);

	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the daemon ends well");
}

static void quotas(void)
{
	static const char *const args[] = { "--nics",         "2",      "--mode",
					    "0666",           "--idle", "sleep",
					    "--user-percent", "10",     NULL };
	pid_t pid = raw_daemon_start(run_dir, 2, args);

	if (!ok(pid != 0, "a daemon of which one user may have 10 %%"))
		return;
	ports_of_one_user();
	ends_well(pid);
}

static void shares(void)
{
	static const char *const args[] = {
		"--nics", "2", "--mode", "0666", "--idle", "sleep", NULL
	};
	pid_t pid = raw_daemon_start(run_dir, 2, args);

	if (!ok(pid != 0, "a daemon of which one user may have a half, the default"))
		return;
	descriptors_of_one_user(pid);
	idle_clients_of_one_user(pid);
	turns_of_users(pid);
	ends_well(pid);
}

/* A daemon that stays root works, but cannot gain more privileges. */
static void no_new_privileges(void)
{
	static const char *const args[] = { "--nics", "1", "--idle", "sleep", NULL };
	pid_t pid = raw_daemon_start(run_dir, 1, args);

	ok(pid != 0 && all_threads(pid, "NoNewPrivs:", "1"), "no thread can get new privileges");
	if (pid)
		ends_well(pid);
}

static bool owner_is(const char *dir, const char *name, uid_t uid)
{
	char path[200];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lstat(path, &st) == 0 && st.st_uid == uid;
}

/* A daemon that changes its user, started twice, the second time after a SIGKILL of the first. The
 * run directory and its files belong to this user. */
static void another_user_after_the_start(void)
{
	static const char *const args[] = { "--nics",  "1",      "--user", "65534",  "--group",
					    "0",       "--mode", "0660",   "--idle", "sleep",
					    "--trace", "64",     NULL };
	static const char ids[] = "65534\t65534\t65534\t65534";
	char dir[100];
	struct raw r;

	snprintf(dir, sizeof(dir), "%s/user", run_dir);
	/* The leak checker may not trace a process that has changed its user. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	pid_t pid = raw_daemon_start(dir, 1, args);

	if (!ok(pid != 0, "a daemon with --user starts"))
		return;
	ok(all_threads(pid, "Uid:", ids) && all_threads(pid, "Gid:", ids), "it is that user");
	ok(all_threads(pid, "CapEff:", "0000000000000000") &&
		   all_threads(pid, "CapPrm:", "0000000000000000"),
	   "it has no capabilities");
	ok(owner_is(dir, ".", STRANGER) && owner_is(dir, "nicd.lock", STRANGER) &&
		   owner_is(dir, "n0.sock", STRANGER) && owner_is(dir, "n0.trace", STRANGER),
	   "the run directory is the user's");
	ok(raw_dial(&r, dir, "n0") && want_port(&r) == 0, "it serves");
	raw_close(&r);
	raw_daemon_end(pid, SIGKILL);
	pid = raw_daemon_start(dir, 1, args);
	ok(pid != 0, "it starts again after a SIGKILL");
	if (pid)
		ends_well(pid);
	ok(!owner_is(dir, "n0.sock", STRANGER) && !owner_is(dir, "n0.trace", STRANGER),
	   "its socket and its trace are gone");
	run_dir_remove(dir);
}

/* Files of the wire belong to the user that the daemon has changed to. */
static void files_of_a_wire(void)
{
	char dir[100], nic[160];
	const char *const args[] = { "--nic", nic, "--user", "65534", "--idle", "sleep", NULL };

	snprintf(dir, sizeof(dir), "%s/files", run_dir);
	snprintf(nic, sizeof(nic), "name=n0,wire=shm,dir=%s/meet", dir);
	pid_t pid = raw_daemon_start(dir, 1, args);

	if (!ok(pid != 0, "a daemon with --user on the wire shm starts"))
		return;
	ok(owner_is(dir, "meet", STRANGER), "the folder of the wire is the user's");
	ends_well(pid);
	snprintf(nic, sizeof(nic), "%s/meet", dir);
	ok(rmdir(nic) == 0, "the wire's file is gone");
	run_dir_remove(dir);
}

/* False if a folder above the run directory admits only root, as that of some containers. */
static bool strangers_reach(const char *dir)
{
	struct stat st;
	bool reach = seteuid(STRANGER) == 0 && stat(dir, &st) == 0;

	return seteuid(0) == 0 && reach;
}

int main(void)
{
	if (geteuid() != 0) {
		printf("ok 1 - two users at one daemon # SKIP this needs root\n1..1\n");
		return 0;
	}
	if (!mkdtemp(run_dir) || chmod(run_dir, 0755) < 0) {
		printf("Bail out! cannot make the folder %s: %s\n", run_dir, strerror(errno));
		return 1;
	}
	if (!strangers_reach(run_dir)) {
		printf("ok 1 - two users at one daemon # SKIP only root may enter %s here: "
		       "chmod 755 / and chmod 1777 /tmp\n1..1\n",
		       run_dir);
		rmdir(run_dir);
		return 0;
	}
	quotas();
	shares();
	no_new_privileges();
	files_of_a_wire();
	another_user_after_the_start();
	run_dir_remove(run_dir);
	return ok_end();
}
