/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * campaign.c - very many barriers of real soft NICs on the wire ring, in an order drawn from a
 * seed.
 *
 *     campaign [SEED [BATCHES [BARRIERS]]]
 *
 * Each batch is a process. One thread plays the hosts of all NICs, and polls the NICs. GROUPS
 * groups of random algorithms and sizes run at once, until they have completed BARRIERS barriers
 * together. Random members post, up to AHEAD_MAX barriers ahead, with random numbers of passes
 * between two posts. After each pass no member may have completed a barrier that another has not
 * posted. At the end every posted barrier completes, the NICs have sent the tokens of the plans and
 * no other frame, and memory has not grown. The clock of the NICs is stopped, so a seed repeats
 * exactly. Prints TAP.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alg.h"
#include "bench/loop_nics.h"
#include "e2e/raw.h"
#include "plan.h"

#define NICS 8u
#define GROUPS 4u
#define AHEAD_MAX 16u
#define PASSES_MAX 3u          /* between two posts */
#define STUCK_PASSES 10000000u /* so many passes without a completion: a barrier hangs */
#define GROWTH_PAGES 256       /* permitted growth of the process */
#define BATCHES_DEFAULT 3u
#define BARRIERS_DEFAULT 100000u

struct group {
	char alg[NBAR_NAME_MAX];
	uint32_t size;
	uint32_t tokens;     /* of one barrier */
	uint32_t cell[NICS]; /* of each member */
	uint32_t posted[NICS], completed[NICS];
};

static char run_dir[] = "/tmp/nbar-campaign-XXXXXX";
static struct raw *member[NICS];
static struct group group[GROUPS]; /* each on the first NICs */
static uint64_t seed;
static int is_done; /* the thread of requests has ended: release there, acquire in run_requests */

static uint32_t draw(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % n);
}

__attribute__((noreturn)) static void give_up(const char *what)
{
	printf("# %s\n", what);
	fflush(stdout);
	_exit(1);
}

/* --- requests, from a second thread, while the first thread polls ----------------------------- */

static void run_requests(void *(*fn)(void *))
{
	pthread_t thread;

	is_done = 0;
	if (pthread_create(&thread, NULL, fn, NULL) != 0)
		give_up("no thread");
	while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE))
		loop_nics_pass();
	pthread_join(thread, NULL);
}

static void group_open(struct group *g)
{
	static struct nbar_rep_group_open rep[NICS];
	static uint32_t rank[NICS][NICS];
	struct nbar_endpoint endpoint[NICS];
	for (uint32_t i = 0; i < g->size; i++) {
		if (raw_group_open(member[i], g->alg, i, g->size, (uint32_t)(g - group)) != 0)
			give_up(member[i]->reply.head.text);
		memcpy(&rep[i], member[i]->reply.body, sizeof(rep[i]));
		memcpy(rank[i], member[i]->reply.body + sizeof(rep[i]),
		       rep[i].npeer * sizeof(rank[i][0]));
		g->cell[i] = rep[i].cell;
	}
	for (uint32_t i = 0; i < g->size; i++) {
		for (uint32_t k = 0; k < rep[i].npeer; k++)
			endpoint[k] = rep[rank[i][k]].endpoint;
		if (raw_group_connect(member[i], g->cell[i], endpoint, rep[i].npeer) != 0)
			give_up(member[i]->reply.head.text);
	}
}

static void *open_all(void *arg)
{
	char name[16];

	for (uint32_t i = 0; i < NICS; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		member[i] = malloc(sizeof(struct raw));
		if (!member[i] || !raw_dial(member[i], run_dir, name) ||
		    raw_port_open(member[i], NBAR_PORT_ANY) != 0)
			give_up("no port");
	}
	for (uint32_t i = 0; i < GROUPS; i++)
		group_open(&group[i]);
	__atomic_store_n(&is_done, 1, __ATOMIC_RELEASE);
	return arg;
}

static uint64_t tokens, others; /* frames that all NICs have sent */

static void *count_all(void *arg)
{
	tokens = others = 0;
	for (uint32_t i = 0; i < NICS; i++) {
		tokens += raw_counter(member[i], NBAR_COUNTER_tokens_sent);
		others += raw_counter(member[i], NBAR_COUNTER_pulls_sent) +
			  raw_counter(member[i], NBAR_COUNTER_aborts_sent);
	}
	__atomic_store_n(&is_done, 1, __ATOMIC_RELEASE);
	return arg;
}

/* --- one batch -------------------------------------------------------------------------------- */

/* Returns how many tokens all ranks send in one barrier. */
static uint32_t plan_tokens(struct nbfw_alg alg, uint32_t size)
{
	uint32_t n = 0;

	for (uint32_t rank = 0; rank < size; rank++) {
		int32_t bytes = nbfw_plan_generate(alg, size, rank, NULL, 0);
		struct nbar_plan *plan = bytes > 0 ? malloc((size_t)bytes) : NULL;

		if (!plan)
			give_up("no plan, or no memory for it");
		nbfw_plan_generate(alg, size, rank, plan, (size_t)bytes);
		n += plan->nsend;
		free(plan);
	}
	return n;
}

static void group_draw(struct group *g)
{
	struct nbfw_alg alg = { NBFW_ALG_FIRST + draw(NBFW_ALG_END - NBFW_ALG_FIRST), 0 };
	const struct nbfw_alg_row *row = nbfw_alg_row(alg.kind);

	if (row->param[0])
		alg.n = row->usual + draw(row->usual_end - row->usual + 1u);
	nbfw_alg_name(alg, g->alg);
	g->size = 2 + draw(NICS - 1);
	g->tokens = plan_tokens(alg, g->size);
}

static uint32_t least(const uint32_t *value, uint32_t n)
{
	uint32_t min = value[0];

	for (uint32_t i = 1; i < n; i++)
		min = value[i] < min ? value[i] : min;
	return min;
}

/* Reads the completions of all members. Returns how many barriers of the group have completed since
 * the last call, at all members. */
static uint32_t look(struct group *g)
{
	uint32_t before = least(g->completed, g->size), started = least(g->posted, g->size);

	for (uint32_t i = 0; i < g->size; i++) {
		uint64_t word = __atomic_load_n(&member[i]->page->completion[g->cell[i]].word,
						__ATOMIC_ACQUIRE);

		if (word >> 32)
			give_up("a member fails");
		if ((uint32_t)word > started)
			give_up("a member completes a barrier that another has not posted");
		if ((uint32_t)word < g->completed[i])
			give_up("a completion goes back");
		g->completed[i] = (uint32_t)word;
	}
	return least(g->completed, g->size) - before;
}

static uint32_t pass_and_look(void)
{
	uint32_t n = 0;

	loop_nics_pass();
	for (uint32_t i = 0; i < GROUPS; i++)
		n += look(&group[i]);
	return n;
}

static void post(struct group *g, uint32_t i, uint32_t epoch)
{
	g->posted[i] = epoch;
	raw_post(member[i], g->cell[i], epoch);
}

static void post_some(void)
{
	struct group *g = &group[draw(GROUPS)];
	uint32_t i = draw(g->size);
	uint32_t room = AHEAD_MAX - (g->posted[i] - g->completed[i]);

	if (room > 0)
		post(g, i, g->posted[i] + 1 + draw(room));
}

/* All members post as many barriers as the member of their group that has posted most. True if all
 * these barriers complete. */
static bool finish(uint64_t *done)
{
	uint32_t idle = 0;

	for (struct group *g = group; g < group + GROUPS; g++) {
		uint32_t most = 0;

		for (uint32_t i = 0; i < g->size; i++)
			most = g->posted[i] > most ? g->posted[i] : most;
		for (uint32_t i = 0; i < g->size; i++)
			post(g, i, most);
	}
	for (struct group *g = group; g < group + GROUPS;) {
		uint32_t n = pass_and_look();

		*done += n;
		idle = n > 0 ? 0 : idle + 1;
		if (idle > STUCK_PASSES)
			return false;
		while (g < group + GROUPS && least(g->completed, g->size) == g->posted[0])
			g++;
	}
	return true;
}

static long resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all, resident = 0;

	if (!f || fscanf(f, "%ld %ld", &all, &resident) != 2)
		give_up("no /proc/self/statm");
	fclose(f);
	return resident;
}

static void check_frames(void)
{
	uint64_t wanted = 0;

	for (uint32_t i = 0; i < GROUPS; i++)
		wanted += (uint64_t)group[i].tokens * group[i].posted[0];
	run_requests(count_all);
	if (tokens == wanted && others == 0)
		return;
	printf("# %llu tokens sent, the plans have %llu; %llu other frames\n",
	       (unsigned long long)tokens, (unsigned long long)wanted, (unsigned long long)others);
	give_up("the NICs have sent other frames than those of the plans");
}

static void batch(uint64_t barriers)
{
	uint64_t done = 0;
	uint32_t idle = 0;
	long pages = 0;

	for (uint32_t i = 0; i < GROUPS; i++)
		group_draw(&group[i]);
	loop_nics_start(NICS, run_dir);
	run_requests(open_all);
	loop_nics_stop_clock();
	while (done < barriers) {
		post_some();
		for (uint32_t i = draw(PASSES_MAX + 1); i > 0; i--) {
			uint32_t n = pass_and_look();

			done += n;
			idle = n > 0 ? 0 : idle + 1;
		}
		if (idle > STUCK_PASSES)
			give_up("no barrier completes any more");
		if (pages == 0 && done > barriers / 10)
			pages = resident_pages();
	}
	if (!finish(&done))
		give_up("a barrier that all have posted does not complete");
	if (resident_pages() > pages + GROWTH_PAGES)
		give_up("memory has grown");
	check_frames();
	printf("# %llu barriers, %llu tokens:", (unsigned long long)done,
	       (unsigned long long)tokens);
	for (uint32_t i = 0; i < GROUPS; i++)
		printf(" %s of %u%s", group[i].alg, group[i].size, i + 1 < GROUPS ? "," : "\n");
	fflush(stdout);
	_exit(0); /* the control thread still runs */
}

static bool batch_passes(uint64_t barriers)
{
	char path[64];
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		batch(barriers);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return false;
	for (uint32_t i = 0; i < NICS; i++) {
		snprintf(path, sizeof(path), "%s/n%u.sock", run_dir, i);
		unlink(path);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static uint64_t argument(int argc, char **argv, int i, uint64_t usual)
{
	return argc > i ? strtoull(argv[i], NULL, 10) : usual;
}

int main(int argc, char **argv)
{
	const char *env = getenv("NBAR_SEED");
	uint64_t first = argument(argc, argv, 1, env ? strtoull(env, NULL, 10) : 1);
	uint64_t batches = argument(argc, argv, 2, BATCHES_DEFAULT);
	uint64_t barriers = argument(argc, argv, 3, BARRIERS_DEFAULT);
	bool all = true;

	if (!mkdtemp(run_dir)) {
		perror("campaign");
		return 1;
	}
	for (uint64_t i = 0; i < batches; i++) {
		seed = (first + i) * UINT64_C(0x9e3779b97f4a7c15);
		bool pass = batch_passes(barriers);

		printf("%sok %llu - at least %llu barriers from seed %llu\n", pass ? "" : "not ",
		       (unsigned long long)(i + 1), (unsigned long long)barriers,
		       (unsigned long long)(first + i));
		all &= pass;
	}
	rmdir(run_dir);
	printf("1..%llu\n", (unsigned long long)batches);
	return all && batches > 0 ? 0 : 1;
}
