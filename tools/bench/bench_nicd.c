/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_nicd.c - the daemon that a bench starts for itself, in a folder of its own.
 *
 * The caller has blocked the signals of signals_begin. In every case, bench_nicd_stop leaves
 * neither process nor folder.
 */
#include "bench.h"
#include "signals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FOLDER_PREFIX "nbar-bench-"
#define START_SECONDS 20u /* hugepages of a busy machine take their time */
#define STOP_SECONDS 5u
#define POLL_NS 5000000l

/* The program: given by --nicd, or beside this one, or found in $PATH. */
static void find_program(const struct bench_options *opt, char *out, size_t size)
{
	char self[BENCH_PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	snprintf(out, size, "%s", opt->nicd ? opt->nicd : "nbar-nicd");
	if (opt->nicd || n <= 0)
		return;
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	char beside[BENCH_PATH_MAX + 16];

	if (!slash)
		return;
	snprintf(beside, sizeof(beside), "%.*s/nbar-nicd", (int)(slash - self), self);
	if (!access(beside, X_OK))
		snprintf(out, size, "%s", beside);
}

/* The command line of the daemon, as execvp wants it. The last string is NULL. */
struct command {
	char *argv[2 * NBAR_NICS_MAX + 16];
	char nic[NBAR_NICS_MAX][80];
	char program[BENCH_PATH_MAX + 16], cpu[16], idle[16], dir[BENCH_PATH_MAX];
};

static void make_command(struct command *c, const struct bench_nics *nics,
			 const struct bench_options *opt, const struct bench_machine *machine)
{
	static char run_dir[] = "--run-dir", cpu[] = "--cpu", idle[] = "--idle", nic[] = "--nic";
	const char *mark = strchr(opt->wire, '%'); /* the number of the NIC takes its place */
	const int before = mark ? (int)(mark - opt->wire) : (int)sizeof(opt->wire);
	char number[12] = "";
	uint32_t n = 0;

	find_program(opt, c->program, sizeof(c->program));
	snprintf(c->dir, sizeof(c->dir), "%s", nics->dir);
	snprintf(c->cpu, sizeof(c->cpu), "%d", machine->daemon_cpu);
	snprintf(c->idle, sizeof(c->idle), "%s", machine->idle);
	c->argv[n++] = c->program;
	c->argv[n++] = run_dir;
	c->argv[n++] = c->dir;
	c->argv[n++] = idle;
	c->argv[n++] = c->idle;
	c->argv[n++] = cpu;
	c->argv[n++] = c->cpu;
	for (uint32_t i = 0; i < nics->n; i++) {
		if (mark)
			snprintf(number, sizeof(number), "%u", i);
		snprintf(c->nic[i], sizeof(c->nic[i]), "name=n%u,wire=%.*s%s%s", i, before,
			 opt->wire, number, mark ? mark + 1 : "");
		c->argv[n++] = nic;
		c->argv[n++] = c->nic[i];
	}
	c->argv[n] = NULL;
}

/* The signal that the daemon gets if this process dies. After SIGTERM the daemon removes its
 * sockets. But a daemon that is paused, while in-process NICs are measured, handles no SIGTERM. */
static int end_signal(const struct bench_options *opt)
{
	for (uint32_t i = 0; i < opt->nwhere; i++)
		if (bench_in_process(opt->where[i]))
			return SIGKILL;
	return SIGTERM;
}

/* In the child: becomes the daemon. */
static void become_daemon(const struct command *c, const char *log, pid_t parent, int sig)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	signals_die_with(parent, sig);
	signals_unblock();
	if (in >= 0)
		dup2(in, STDIN_FILENO);
	if (out >= 0) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
	}
	execvp(c->program, c->argv);
	fprintf(stderr, "cannot run %s: %s; name the daemon by --nicd\n", c->program,
		strerror(errno));
	fflush(stderr);
	_exit(127);
}

static void log_path(const struct bench_nics *nics, char *out, size_t size)
{
	snprintf(out, size, "%s/nicd.log", nics->dir);
}

/* The last lines that the daemon wrote. */
static void show_log(const struct bench_nics *nics)
{
	char path[BENCH_PATH_MAX + 16], text[1024];
	FILE *f;
	size_t n;

	log_path(nics, path, sizeof(path));
	f = fopen(path, "r");
	if (!f)
		return;
	if (fseek(f, -(long)(sizeof(text) - 1), SEEK_END))
		rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	while (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	if (n)
		fprintf(stderr, "%s\n", text);
}

void bench_nicd_died(struct bench_nics *nics, int status)
{
	nics->pid = 0;
	/* Ctrl-C goes to all processes of a terminal. */
	if (signals_interrupted())
		return;
	if (WIFSIGNALED(status))
		tool_error("nbar-nicd was killed by signal %d (%s); it last said:",
			   WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		tool_error("nbar-nicd ended with status %d; it last said:", WEXITSTATUS(status));
	show_log(nics);
}

static void nicd_nap(void)
{
	const struct timespec t = { .tv_nsec = POLL_NS };

	nanosleep(&t, NULL);
}

/* Waits until every NIC answers. */
static int wait_ready(struct bench_nics *nics)
{
	uint64_t end = tool_now_ns() + START_SECONDS * UINT64_C(1000000000);
	struct nbar_rep_nic_stat stat;
	uint32_t ready = 0;
	int status;

	while (ready < nics->n) {
		if (waitpid(nics->pid, &status, WNOHANG) == nics->pid) {
			bench_nicd_died(nics, status);
			return TOOL_FAILED;
		}
		if (signals_interrupted())
			return TOOL_FAILED;
		if (!nbar_nic_stat(nics->name[ready], &stat)) {
			ready++;
			continue;
		}
		if (tool_now_ns() > end) {
			tool_error("NIC %s does not answer after %u s: %s\nnbar-nicd last said:",
				   nics->name[ready], START_SECONDS, nbar_error());
			show_log(nics);
			return TOOL_FAILED;
		}
		nicd_nap();
	}
	return 0;
}

static void remove_folder(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	if (rmdir(dir))
		tool_error("cannot remove %s: %s", dir, strerror(errno));
}

/* True if the folder is of a killed process of this user: a living one holds its lock. A folder
 * that is younger than a minute may not have its lock yet. */
static bool is_left(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	bool left = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
		    time(NULL) - st.st_mtime > 60 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	if (fd >= 0)
		close(fd);
	return left;
}

/* Removes the folders that killed processes of this user have left: SIGKILL lets them clean up
 * nothing. */
static void remove_left(const char *tmp)
{
	static const char prefix[] = FOLDER_PREFIX;
	DIR *d = opendir(tmp);
	char path[BENCH_PATH_MAX];
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, prefix, sizeof(prefix) - 1))
			continue;
		snprintf(path, sizeof(path), "%.200s/%.40s", tmp, e->d_name);
		if (is_left(path))
			remove_folder(path);
	}
	if (d)
		closedir(d);
}

/* Makes the folder, and holds its lock while this process lives. */
static int make_folder(struct bench_nics *nics)
{
	const char *tmp = getenv("TMPDIR");

	tmp = tmp && *tmp ? tmp : "/tmp";
	remove_left(tmp);
	snprintf(nics->dir, sizeof(nics->dir), "%.200s/" FOLDER_PREFIX "XXXXXX", tmp);
	if (!mkdtemp(nics->dir)) {
		tool_error("cannot make a folder %s: %s; set TMPDIR to a folder that you can write",
			   nics->dir, strerror(errno));
		nics->dir[0] = '\0';
		return TOOL_FAILED;
	}
	nics->dir_fd = open(nics->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (nics->dir_fd >= 0)
		(void)flock(nics->dir_fd, LOCK_SH | LOCK_NB);
	return 0;
}

int bench_nicd_start(struct bench_nics *nics, const struct bench_options *opt,
		     const struct bench_machine *machine, uint32_t n)
{
	char log[BENCH_PATH_MAX + 16];
	struct command *c = calloc(1, sizeof(*c));
	pid_t parent = getpid();
	int r = TOOL_FAILED;

	if (!c)
		tool_error("no memory for the command of nbar-nicd: free some, and try again");
	if (!c || make_folder(nics)) {
		free(c);
		return TOOL_FAILED;
	}
	nics->n = n;
	for (uint32_t i = 0; i < n; i++) {
		snprintf(nics->text[i], sizeof(nics->text[i]), "%s/n%u.sock", nics->dir, i);
		nics->name[i] = nics->text[i];
	}
	log_path(nics, log, sizeof(log));
	make_command(c, nics, opt, machine);
	nics->pid = fork();
	if (nics->pid == 0)
		become_daemon(c, log, parent, end_signal(opt));
	if (nics->pid > 0)
		r = wait_ready(nics);
	else
		tool_error("cannot start the daemon: %s", strerror(errno));
	free(c);
	return r;
}

void bench_nicd_pause(const struct bench_nics *nics, bool pause)
{
	if (nics->pid > 0)
		kill(nics->pid, pause ? SIGSTOP : SIGCONT);
}

void bench_nicd_stop(struct bench_nics *nics)
{
	uint64_t end = tool_now_ns() + STOP_SECONDS * UINT64_C(1000000000);

	if (nics->pid > 0) {
		kill(nics->pid, SIGTERM);
		while (waitpid(nics->pid, NULL, WNOHANG) == 0) {
			if (tool_now_ns() > end)
				kill(nics->pid, SIGKILL);
			nicd_nap();
		}
	}
	if (nics->dir[0]) {
		remove_folder(nics->dir);
		close(nics->dir_fd);
	}
	nics->pid = 0;
	nics->dir[0] = '\0';
}
