/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adversary.c - bad clients, bad hosts and bad frames against a running nbar-nicd.
 *
 * In each case the daemon must answer with an error that names the cause, or count a dropped frame.
 * After each case, two good members on other ports of the same NICs must complete a barrier. Needs
 * no privileges. Prints TAP.
 *
 * "adversary" attacks a daemon with two NICs, which it starts, kills and stops itself. "adversary
 * RUN_DIR PORTS GROUPS CLIENTS" attacks the running NICs n0 and n1 of a folder. Each of them has so
 * many ports, groups and connections. Does not stop these NICs.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adversary.h"

char adversary_run_dir[108] = "/tmp/nbar-adversary-XXXXXX";
struct adversary_limits adversary_limits = {
	.ports = NBAR_PORTS_MAX,
	.groups = NBAR_GROUPS_MAX,
	.clients = 2 * NBAR_PORTS_MAX + NBAR_ATTACHED_MAX,
	.noise = 5000,
	.daemon = true,
};
static uint32_t seed = 1;

struct raw adversary_good[2];
struct nbar_endpoint adversary_endpoint[2];
static uint32_t good_epoch;

uint32_t adversary_random(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed ^ seed >> 15;
}

static void note(const struct raw *r)
{
	printf("# status %d: %s\n", r->reply.head.status, r->reply.head.text);
}

bool refused(struct raw *r, int rc, int error, const char *word)
{
	if (rc == error && strstr(r->reply.head.text, word))
		return true;
	printf("# wanted %d with \"%s\", got %d\n", error, word, rc);
	if (rc != RAW_NO_REPLY)
		note(r);
	return false;
}

bool others_work(void)
{
	good_epoch++;
	for (int i = 0; i < 2; i++)
		raw_post(&adversary_good[i], 0, good_epoch);
	for (int i = 0; i < 2; i++) {
		uint64_t word = raw_await(&adversary_good[i], 0, good_epoch);

		if (word != good_epoch) {
			printf("# good member %d: status %u, epoch %u\n", i, (unsigned)(word >> 32),
			       (unsigned)word);
			return false;
		}
	}
	return true;
}

bool dial(struct raw *r, const char *nic)
{
	if (raw_dial(r, adversary_run_dir, nic))
		return true;
	perror("# connect");
	exit(1);
}

bool pair(struct raw *a, struct raw *b, uint32_t tag, struct nbar_endpoint endpoint[2])
{
	struct raw *r[2] = { a, b };

	for (uint32_t i = 0; i < 2; i++) {
		struct nbar_rep_group_open rep;

		if (raw_port_open(r[i], NBAR_PORT_ANY) != 0 ||
		    raw_group_open(r[i], "pairwise", i, 2, tag) != 0)
			return false;
		memcpy(&rep, r[i]->reply.body, sizeof(rep));
		endpoint[i] = rep.endpoint;
	}
	return raw_group_connect(a, 0, &endpoint[1], 1) == 0 &&
	       raw_group_connect(b, 0, &endpoint[0], 1) == 0;
}

static void good_begin(void)
{
	good_epoch = 0;
	for (int i = 0; i < 2; i++)
		dial(&adversary_good[i], i ? "n1" : "n0");
	if (!pair(&adversary_good[0], &adversary_good[1], 1, adversary_endpoint)) {
		printf("# no good members\n");
		exit(1);
	}
}

static pid_t daemon_start(void)
{
	static const char *const args[] = {
		"--nic",       "name=n0,wire=udp,bind=127.0.0.1:0",
		"--nic",       "name=n1,wire=udp,bind=127.0.0.1:0",
		"--budget-ms", "500",
		"--idle",      "yield",
		NULL,
	};
	pid_t pid = raw_daemon_start(adversary_run_dir, 2, args);

	if (pid)
		good_begin();
	return pid;
}

static int sockets(void)
{
	DIR *d = opendir(adversary_run_dir);
	int n = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		n += strstr(e->d_name, ".sock") != NULL;
	if (d)
		closedir(d);
	return n;
}

static void second_daemon(pid_t first)
{
	const char *build = getenv("BUILD");
	char command[512], said[512] = "", owner[32];

	snprintf(command, sizeof(command), "%s/nbar-nicd --run-dir %s --nics 1 2>&1",
		 build ? build : "build", adversary_run_dir);
	snprintf(owner, sizeof(owner), "process %d,", (int)first);
	FILE *f = popen(command, "r");
	bool heard = f && fgets(said, sizeof(said), f);
	int status = f ? pclose(f) : -1;

	if (!ok(heard && strstr(said, owner) && WIFEXITED(status) && WEXITSTATUS(status) == 1,
		"a second daemon on one run directory is refused; the first is named"))
		printf("# status %d: %s\n", status, said);
	ok(sockets() == 2 && others_work(), "all goes on");
}

static pid_t killed_daemon(pid_t pid)
{
	raw_daemon_end(pid, SIGKILL);
	ok(sockets() == 2, "a killed daemon leaves its sockets behind");
	for (int i = 0; i < 2; i++)
		raw_close(&adversary_good[i]);
	pid = daemon_start();
	if (!ok(pid != 0 && others_work(), "another starts in the same place"))
		exit(1);
	return pid;
}

/* The good member of rank 0 waits in a barrier. */
static void stopped_daemon(pid_t pid)
{
	uint64_t word[2];

	raw_post(&adversary_good[0], 0, good_epoch + 1);
	int status = raw_daemon_end(pid, SIGTERM);

	for (int i = 0; i < 2; i++)
		word[i] = raw_await(&adversary_good[i], 0, good_epoch + 1);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "SIGTERM: exit status 0");
	ok(sockets() == 0, "SIGTERM: no socket is left");
	ok(word[0] >> 32 == NBAR_STATUS_NIC_DOWN && word[1] >> 32 == NBAR_STATUS_NIC_DOWN,
	   "SIGTERM: all hosts are told that the NIC is down");
	for (int i = 0; i < 2; i++)
		raw_close(&adversary_good[i]);
}

static void run_dir_remove(void)
{
	char lock[sizeof(adversary_run_dir) + 16];

	snprintf(lock, sizeof(lock), "%s/nicd.lock", adversary_run_dir);
	unlink(lock);
	rmdir(adversary_run_dir);
}

/* Attacks NICs that run already. */
static int attack(char **argv)
{
	snprintf(adversary_run_dir, sizeof(adversary_run_dir), "%s", argv[1]);
	adversary_limits = (struct adversary_limits){
		.ports = (uint32_t)atoi(argv[2]),
		.groups = (uint32_t)atoi(argv[3]),
		.clients = (uint32_t)atoi(argv[4]),
		.noise = 500,
	};
	good_begin();
	ok(others_work(), "two good members go through a barrier");
	adversary_requests();
	adversary_groups();
	adversary_hosts();
	return ok_end();
}

int main(int argc, char **argv)
{
	if (argc == 5)
		return attack(argv);
	struct rlimit files;

	/* The default limit of an ordinary user is too low for the descriptors of all ports. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	pid_t pid = mkdtemp(adversary_run_dir) ? daemon_start() : 0;

	if (!ok(pid != 0, "the daemon starts"))
		return 1;
	ok(others_work(), "two good members go through a barrier");
	adversary_requests();
	adversary_groups();
	adversary_frames();
	adversary_hosts();
	second_daemon(pid);
	pid = killed_daemon(pid);
	stopped_daemon(pid);
	run_dir_remove();
	return ok_end();
}
