/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_run.c - runs the experiments of a report, each as a process of this program. So you can
 * interrupt, resume and repeat each experiment by hand.
 */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "progress.h"
#include "signals.h"
#include "tool.h"

#define ARGS_MAX 64u

static const char *arguments(const struct report_options *opt, const struct report_experiment *e)
{
	return e->command[report_length_of(e, opt->length)];
}

static double seconds(const struct report_options *opt, const struct report_experiment *e)
{
	return e->seconds[report_length_of(e, opt->length)];
}

/* True if `machine` has no such key, or has this text there. */
static bool machine_says(const json_t *machine, const char *key, const char *text)
{
	const char *was = json_string_value(json_object_get(machine, key));

	return !was || !strcmp(was, text);
}

/* Checks that an existing result is of this machine and of the same command. */
static int check_old(const struct report_options *opt, const struct report_experiment *e,
		     const struct report_result *r, const char *path)
{
	const json_t *machine = json_object_get(r->root, "machine");
	const char *command = json_string_value(json_object_get(r->root, "command"));
	const char *host = json_string_value(json_object_get(machine, "host"));
	const struct tool_machine here = tool_machine();
	size_t n = strlen(arguments(opt, e));

	/* Rank 0 of an MPI program may run on another machine. */
	if ((!e->mpi && !machine_says(machine, "host", here.host)) ||
	    !machine_says(machine, "cpu", here.cpu)) {
		tool_error("%s was measured on another machine (%s), and this is %s: a report "
			   "cannot have results of two machines; name another folder",
			   path, host ? host : "?", here.host);
		return TOOL_FAILED;
	}
	if (command && !strncmp(command, "nbar ", 5) &&
	    (strncmp(command + 5, arguments(opt, e), n) ||
	     (command[5 + n] && command[5 + n] != ' '))) {
		tool_error("%s was measured by another command (%s): resume with the --quick or "
			   "--thorough of that report, or without both if it had none; or name "
			   "another folder",
			   path, command);
		return TOOL_FAILED;
	}
	return 0;
}

/* Checks whether an experiment already has its result. 0 or an exit code. */
static int look(const struct report_options *opt, const struct report_experiment *e, bool *there)
{
	char path[REPORT_PATH_MAX], why[REPORT_PATH_MAX + 300];
	struct report_result r;
	int rc = 0;

	report_path(opt, e->name, "json", path, sizeof(path));
	*there = true;
	switch (report_read(path, &r, why, sizeof(why))) {
	case REPORT_NONE:
		*there = false;
		return 0;
	case REPORT_BROKEN:
		tool_error("%s; nbar did not change it: move it away, or name another folder", why);
		return TOOL_FAILED;
	case REPORT_READ:
		break;
	}
	if (!opt->resume) {
		tool_error("%s exists: --resume measures only missing results, "
			   "--render-only draws the page again; or name another folder",
			   path);
		rc = TOOL_FAILED;
	} else {
		rc = check_old(opt, e, &r, path);
	}
	report_result_free(&r);
	return rc;
}

/* In the child: becomes the experiment, which writes its files, and its table to NAME.txt. */
static void become(const struct report_options *opt, const struct report_experiment *e)
{
	static char name[] = "nbar", json_option[] = "--json", csv_option[] = "--csv",
		    resume[] = "--resume";
	static char json[REPORT_PATH_MAX], csv[REPORT_PATH_MAX], text[REPORT_PATH_MAX],
		journal[REPORT_PATH_MAX], file[REPORT_PATH_MAX], file_option[32];
	char *line = strdup(arguments(opt, e)), *argv[ARGS_MAX + 10], *save = NULL;
	int argc = 0, fd;

	report_path(opt, e->name, "json", json, sizeof(json));
	report_path(opt, e->name, "json.journal", journal, sizeof(journal));
	report_path(opt, e->name, "csv", csv, sizeof(csv));
	report_path(opt, e->name, "txt", text, sizeof(text));
	if (e->mpi)
		argc = report_mpi_begin(opt, argv, ARGS_MAX / 2);
	else
		argv[argc++] = name;
	for (char *w = line ? strtok_r(line, " ", &save) : NULL; w && argc < (int)ARGS_MAX;
	     w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	if (e->file) {
		snprintf(file, sizeof(file), "%s/%s", opt->dir, e->file);
		snprintf(file_option, sizeof(file_option), "%s", e->file_option);
		if (*file_option)
			argv[argc++] = file_option;
		argv[argc++] = file;
	}
	argv[argc++] = json_option;
	argv[argc++] = json;
	argv[argc++] = csv_option;
	argv[argc++] = csv;
	if (opt->resume && !access(journal, F_OK))
		argv[argc++] = resume;
	argv[argc] = NULL;
	fd = open(text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (!line || fd < 0 || dup2(fd, STDOUT_FILENO) < 0) {
		tool_error("cannot write %s: %s", text, strerror(errno));
		_exit(TOOL_FAILED);
	}
	signals_unblock();
	if (e->mpi)
		execvp(argv[0], argv);
	else
		execv("/proc/self/exe", argv);
	tool_error("cannot run %s: %s", argv[0], strerror(errno));
	_exit(TOOL_FAILED);
}

/* Waits for an experiment; passes on signals that would end this process. */
static int watch(pid_t pid, bool *interrupted)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		signals_wait();
		if (signals_interrupted())
			kill(pid, SIGTERM);
	}
	/* A terminal sends the signal to the experiment, too, which may end before this process. */
	*interrupted = signals_interrupted();
	return status;
}

static int run_one(const struct report_options *opt, const struct report_experiment *e,
		   bool *interrupted)
{
	pid_t parent = getpid(), pid = fork();
	int status;

	if (pid == 0) {
		signals_die_with(parent, SIGTERM);
		become(opt, e);
	}
	if (pid < 0) {
		tool_error("cannot start an experiment: %s", strerror(errno));
		return TOOL_FAILED;
	}
	status = watch(pid, interrupted);
	if (*interrupted || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return 0;
	if (WIFSIGNALED(status))
		tool_error("%s was killed by signal %d (%s); the other experiments run", e->name,
			   WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		tool_error("%s failed (see above); the other experiments run", e->name);
	return TOOL_FAILED;
}

/* The remaining time: corrects the estimates by the measured times of completed experiments. */
struct plan {
	bool todo[32];
	uint32_t n, at;
	double left_s, done_s, took_s;
};

static int make_plan(const struct report_options *opt, struct plan *p)
{
	*p = (struct plan){ .n = 0 };
	for (uint32_t i = 0; i < report_nexperiment; i++) {
		bool there;
		int rc = opt->wanted[i] ? look(opt, &report_experiments[i], &there) : 0;

		const char *missing = rc || !opt->wanted[i] || there || !report_experiments[i].mpi
					      ? NULL
					      : report_mpi_missing(opt);

		if (rc)
			return rc;
		if (missing)
			tool_error("%s is left out: %s; --mpirun says how to start it",
				   report_experiments[i].name, missing);
		p->todo[i] = opt->wanted[i] && !there && !missing;
		p->n += p->todo[i];
		p->left_s += p->todo[i] ? seconds(opt, &report_experiments[i]) : 0;
	}
	return 0;
}

static void say_next(const struct plan *p, const struct report_experiment *e)
{
	double pace = p->done_s > 0 ? p->took_s / p->done_s : 1;
	char left[32];

	progress_time(p->left_s * pace, left, sizeof(left));
	fprintf(stderr, "%u of %u: %s (about %s left in all)\n", p->at + 1, p->n, e->name, left);
}

int report_run(const struct report_options *opt, bool *begun, bool *interrupted)
{
	struct plan p;
	int r = make_plan(opt, &p);

	*begun = !r;
	*interrupted = false;
	if (r)
		return r;
	signals_begin();
	for (uint32_t i = 0; i < report_nexperiment && !*interrupted; i++) {
		const struct report_experiment *e = &report_experiments[i];
		uint64_t begun = tool_now_ns();

		if (!p.todo[i])
			continue;
		say_next(&p, e);
		r |= run_one(opt, e, interrupted);
		p.took_s += (double)(tool_now_ns() - begun) / 1e9;
		p.done_s += seconds(opt, e);
		p.left_s -= seconds(opt, e);
		p.at++;
	}
	return r;
}
