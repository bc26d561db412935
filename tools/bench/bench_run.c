/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_run.c - one run: starts the hosts, watches them, collects their measurements.
 *
 * In every case, bench_run ends and reaps all hosts before it returns.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_host.h"
#include "signals.h"
#include "stats.h"

/* The host processes of a run. */
struct procs {
	pid_t *pid; /* 0: reaped */
	uint32_t n, alive;
	bool failed, killed;   /* a process has failed; procs_kill was called */
	uint32_t first_failed; /* if failed: the process that run_explain() names ... */
	int status;            /* ... and its wait status */
};

/* Ends the hosts, also stopped hosts, by SIGTERM. So a host that died of another signal was killed
 * by somebody else, even if it is reaped after this call. */
#define END_SIGNAL SIGTERM

static void procs_kill(struct procs *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->pid[i]) {
			kill(c->pid[i], END_SIGNAL);
			kill(c->pid[i], SIGCONT);
		}
	}
	c->killed = true;
}

static void procs_ended(struct procs *c, uint32_t i, int status)
{
	c->pid[i] = 0;
	c->alive--;
	bool signaled = WIFSIGNALED(status);

	if (!status || (c->killed && !(signaled && WTERMSIG(status) != END_SIGNAL)))
		return;
	/* A host that a signal killed replaces a host that reported an error: its death may be
	 * the cause of that error. */
	if (c->failed && (!signaled || WIFSIGNALED(c->status)))
		return;
	c->failed = true;
	c->first_failed = i;
	c->status = status;
}

/* Reaps all ended processes. False if the daemon has ended: *status is then its status. */
static bool run_reap(struct procs *c, pid_t daemon, int *status)
{
	pid_t pid;

	while ((pid = waitpid(-1, status, WNOHANG)) > 0) {
		if (pid == daemon)
			return false;
		for (uint32_t i = 0; i < c->n; i++)
			if (c->pid[i] == pid)
				procs_ended(c, i, *status);
	}
	return true;
}

/* Waits until all hosts have ended. Ends the hosts if something is wrong. */
static int run_watch(struct procs *c, struct bench_nics *nics)
{
	int r = 0, status;

	while (c->alive) {
		if (!run_reap(c, nics->pid, &status)) {
			procs_kill(c);
			bench_nicd_died(nics, status);
			r = TOOL_FAILED;
		}
		if (c->failed && !c->killed)
			procs_kill(c);
		if (!c->alive)
			break;
		signals_wait();
		if (signals_interrupted())
			procs_kill(c);
	}
	return signals_interrupted() || c->failed ? TOOL_FAILED : r;
}

/* Prints what went wrong: names a killed host, or else the first host that reported an error. */
static void run_explain(const struct procs *c, const struct bench_shared *s, uint32_t per_process,
			const struct bench_config *config)
{
	const struct bench_node *first = NULL;

	if (!c->failed)
		return;
	if (WIFSIGNALED(c->status)) {
		tool_error("the host process of rank %u was killed by signal %d (%s)",
			   config->rank[c->first_failed * per_process], WTERMSIG(c->status),
			   strsignal(WTERMSIG(c->status)));
		return;
	}
	for (uint32_t i = 0; i < s->nodes; i++)
		if (s->node[i].failed_at && (!first || s->node[i].failed_at < first->failed_at))
			first = &s->node[i];
	if (first)
		tool_error("rank %u of %u (%s, %s): %s", (unsigned)(first - s->node), s->nodes,
			   bench_where_name[config->where], config->alg, first->error);
	else
		tool_error("the host process of rank %u ended with status %d",
			   config->rank[c->first_failed * per_process], WEXITSTATUS(c->status));
}

/* The median of the skew: last exit - first exit of a barrier. skew: room for nskew values. */
static double skew_us(const struct bench_shared *s, double *skew)
{
	for (uint32_t i = 0; i < s->nskew; i++) {
		uint64_t first = s->exit[i], last = s->exit[i];

		for (uint32_t n = 1; n < s->nodes; n++) {
			uint64_t t = s->exit[(size_t)n * s->nskew + i];

			first = t < first ? t : first;
			last = t > last ? t : last;
		}
		skew[i] = (double)(last - first) / 1e3;
	}
	return stats_median(skew, s->nskew);
}

/* Writes each rank's times from exit to exit. The first measured barrier has no exit before it. */
static void write_raw(const struct bench_shared *s, const struct bench_raw *raw)
{
	for (uint32_t n = 0; n < s->nodes && raw->to; n++) {
		const uint64_t *exit = s->exit + (size_t)n * s->nskew;

		for (uint32_t i = 1; i < s->nskew; i++)
			fprintf(raw->to, "%s,%u,%u,%" PRIu64 "\n", raw->point, n, i,
				exit[i] - exit[i - 1]);
	}
}

static int run_gather(const struct bench_shared *s, uint32_t iters, struct bench_figures *out)
{
	struct hist *all = calloc(1, sizeof(*all));
	double *skew = calloc(s->nskew, sizeof(*skew));

	if (!all || !skew) {
		tool_error("no memory for the figures: free some, and try again");
		free(all);
		free(skew);
		return TOOL_FAILED;
	}
	*out = (struct bench_figures){ 0 };
	double average = 0, least = INFINITY, greatest = 0;

	for (uint32_t n = 0; n < s->nodes; n++) {
		double mean = (double)s->node[n].total_ns / iters / 1e3;

		hist_merge(all, &s->node[n].hist);
		greatest = fmax(greatest, mean);
		least = fmin(least, mean);
		average += mean / s->nodes;
		out->late_us += (double)s->node[n].late_ns / iters / 1e3 / s->nodes;
	}
	memcpy(out->extra, s->node[0].extra, sizeof(out->extra));
	metric_set_means(out->metric, average, least, greatest);
	metric_set_all(out->metric, all, skew_us(s, skew));
	free(all);
	free(skew);
	return 0;
}

/* Cores that hosts of a run may have. */
static uint32_t host_cpus(const struct bench_machine *m, enum bench_where where)
{
	return bench_in_process(where) ? m->nin_process_cpu : m->nhost_cpu;
}

static int start_hosts(struct procs *c, struct bench_host *h, const struct bench_machine *m)
{
	uint32_t ncpu = host_cpus(m, h->config->where);
	pid_t parent = getpid();

	for (uint32_t i = 0; i < c->n; i++) {
		h->first = i * h->count;
		h->cpu = ncpu ? m->host_cpu[i % ncpu] : -1;
		pid_t pid = fork();

		if (pid == 0) {
			signals_die_with(parent, SIGKILL);
			signals_unblock();
			_exit(bench_host_run(h));
		}
		if (pid < 0) {
			tool_error("cannot start host process %u of %u: %s", i + 1, c->n,
				   strerror(errno));
			return TOOL_FAILED;
		}
		c->pid[i] = pid;
		c->alive++;
	}
	return 0;
}

int bench_run(const struct bench_options *opt, const struct bench_config *config,
	      const struct bench_machine *machine, struct bench_nics *nics,
	      const struct bench_raw *raw, struct bench_figures *out)
{
	uint32_t nprocess = opt->drivers == BENCH_DRIVERS_ONE ? 1 : config->nodes;
	struct bench_shared shared;
	struct bench_host host = {
		.opt = opt,
		.config = config,
		.nics = nics,
		.shared = &shared,
		.count = config->nodes / nprocess,
		.machine = machine,
		.drive = config->drive || !config->threads ? config->drive : bench_threads_drive,
		.yield = nprocess * (config->threads ? config->threads : 1) >
				 host_cpus(machine, config->where) ||
			 machine->ncpu == 1,
	};
	struct procs procs = { .n = nprocess, .pid = calloc(nprocess, sizeof(pid_t)) };
	uint32_t threads = config->threads ? config->threads : 1;
	struct bench_tuned *tuned = NULL;
	int r = bench_shared_create(&shared, config->nodes, threads,
				    config->iters < BENCH_SKEW_MAX ? config->iters
								   : BENCH_SKEW_MAX);

	if (r || !procs.pid) {
		tool_error("no memory for %u nodes: free some, and try again", config->nodes);
		free(procs.pid);
		return TOOL_FAILED;
	}
	r = bench_tuned_make(opt, config, nics, &tuned);
	host.tuned = tuned;
	if (!r)
		r = start_hosts(&procs, &host, machine);
	if (r)
		procs_kill(&procs);
	int ended = run_watch(&procs, nics);

	if (!r && !ended)
		r = run_gather(&shared, config->iters, out);
	else if (!r && !signals_interrupted())
		run_explain(&procs, &shared, host.count, config);
	if (!r && !ended)
		write_raw(&shared, raw);
	bench_tuned_free(tuned);
	bench_shared_destroy(&shared);
	free(procs.pid);
	return r ? r : ended;
}
