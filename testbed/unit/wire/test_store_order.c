/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_store_order.c - the order of stores in the compiled code of page.c and shm.c. A child runs
 * one function, instruction by instruction (ptrace). After each instruction, this process looks at
 * the memory that both share, as a reader on another processor could: what is published must be
 * whole. If a function reads from memory that it hands back, this process overwrites the memory as
 * soon as it may. Neither depends on luck.
 *
 * The order within the processor is not tested here: testbed/mc has models of it.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "nic.h"

static void take_received(struct nbnic *nic, const struct nbnic_addr *from,
			  const struct nbfw_token *t, uint64_t now);
#define nbnic_receive take_received
#include "shm.c"
#undef nbnic_receive

#include "page.h"
#include "unit/unit.h"

#define STEPS_MAX 5000000u

static struct {
	struct nbar_page page;
	struct nbfw_token token[4]; /* that the function has taken */
	uint32_t ntoken;
} * shared;

static struct nbnic_port port;
static struct nbnic nic;

static void take_received(struct nbnic *n, const struct nbnic_addr *from,
			  const struct nbfw_token *t, uint64_t now)
{
	shared->token[shared->ntoken++] = *t;
}

/* Runs fn in a child, and look here after each instruction, until look returns false. */
static void step_through(void (*fn)(void), bool (*look)(void))
{
	pid_t pid = fork();
	uint32_t n = 0;
	bool good = true;
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		raise(SIGSTOP);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status) && good && n++ < STEPS_MAX) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			break;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		good = look();
	}
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("# this system permits no ptrace\n");
		skip();
	}
	require(good, "after %u instructions a reader sees what is not whole", n);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- pages --------------------------------------------------------------------------------------
 */

static void no_wake(void *ctx, uint32_t number, uint32_t cell, uint32_t *word)
{
}

static bool keep_token(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	shared->token[shared->ntoken++] = *t;
	return true;
}

static int page_begin(void **state)
{
	static const struct nbnic_platform platform = { .wake = no_wake };
	static const struct nbnic_ops ops = { .transmit = keep_token };
	const struct nbnic_config config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					     .budget_ns = NBNIC_BUDGET_NS_DEFAULT };
	const struct nbnic_addr addr = { { 1 } };

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(shared != MAP_FAILED);
	memset(&port, 0, sizeof(port));
	port.page = &shared->page;
	port.completion = shared->page.completion;
	port.value = shared->page.value;
	port.platform = &platform;
	return nbnic_init(&nic, &ops, NULL, WIRE_KIND_TEST, &addr, &config);
}

static int page_end(void **state)
{
	return munmap(shared, sizeof(*shared));
}

static const struct nbar_completion *cell0(void)
{
	return &shared->page.completion[0];
}

static void fail_barrier(void)
{
	nbnic_page_complete(&port, &nic, 0, 5, NBAR_STATUS_SILENT, 3);
}

static bool failure_is_whole(void)
{
	const uint64_t word = cell0()->word;

	return (word == 5 || (word == (UINT64_C(1) << 32 | 5) && cell0()->failed_rank == 3)) &&
	       (cell0()->wake == 0 || word != 5);
}

static void failure(void **state)
{
	shared->page.completion[0].word = 5;
	shared->page.completion[0].failed_rank = NBAR_RANK_NONE;
	step_through(fail_barrier, failure_is_whole);
	assert_int_equal(cell0()->word >> 32, NBAR_STATUS_SILENT);
	assert_int_equal(cell0()->wake, 1);
}

static void complete_barrier(void)
{
	nbnic_page_complete(&port, &nic, 0, 6, NBAR_STATUS_OK, NBAR_RANK_NONE);
}

static bool completion_is_whole(void)
{
	return cell0()->word == 6 || (cell0()->word == 5 && cell0()->wake == 0);
}

static void completion_with_a_sleeper(void **state)
{
	shared->page.completion[0].word = 5;
	port.cell[0].wake_pending = true;
	step_through(complete_barrier, completion_is_whole);
	assert_int_equal(cell0()->word, 6);
	assert_int_equal(cell0()->wake, 1);
}

static void name_stragglers(void)
{
	struct nbnic_straggler straggler[NBAR_STRAGGLERS_MAX];

	for (uint32_t i = 0; i < NBAR_STRAGGLERS_MAX; i++)
		straggler[i] =
			(struct nbnic_straggler){ .rank = 100 + i, .why = (uint16_t)(200 + i) };
	nbnic_page_stragglers(&port, 0, straggler, NBAR_STRAGGLERS_MAX);
}

static bool stragglers_are_whole(void)
{
	for (uint32_t i = 0; i < cell0()->nstragglers; i++)
		if (cell0()->straggler[i] != 100 + i || cell0()->why[i] != 200 + i)
			return false;
	return true;
}

static void stragglers(void **state)
{
	step_through(name_stragglers, stragglers_are_whole);
	assert_int_equal(cell0()->nstragglers, NBAR_STRAGGLERS_MAX);
}

static const uint32_t words[NBAR_SIGNAL_WORDS] = { 11, 12, 13, 14, 15 };

static void deliver(void)
{
	if (!nbnic_page_deliver(&port, 7, 8, words))
		abort();
}

static bool message_is_whole(void)
{
	const struct nbar_signal *e = &shared->page.recv[0];

	return e->seq == 0 || (e->seq == 1 && e->cell == 7 && e->peer == 8 &&
			       memcmp(e->word, words, sizeof(words)) == 0);
}

static void message_to_host(void **state)
{
	step_through(deliver, message_is_whole);
	assert_int_equal(shared->page.recv[0].seq, 1);
}

static void send_messages(void)
{
	if (nbnic_page_signals(&port, &nic, 8) != 3)
		abort();
}

/* The host overwrites entries as soon as the NIC says that it has taken them. */
static bool host_overwrites(void)
{
	for (uint32_t i = 0; i < shared->page.sends_taken; i++)
		memset(shared->page.send[i].word, 0xee, sizeof(words));
	return true;
}

static void messages_of_host(void **state)
{
	struct nbnic_open arg = { .size = 2, .alg = "signal", .cookie = 5 };
	struct nbnic_group *g = nbnic_group_build(&arg, malloc(nbnic_group_size(NULL, 2)));
	struct nbar_endpoint endpoint;
	const char *why;
	uint32_t bad;

	assert_int_equal(nbnic_group_open(&nic, g), 0);
	nbnic_group_endpoint(&nic, g, &endpoint);
	endpoint.byte[12] = 1;
	assert_int_equal(nbnic_group_connect(&nic, g, &endpoint, 1, 0, &bad, &why), 0);
	port.cell[0].group = g;
	for (uint32_t i = 0; i < 3; i++) {
		memcpy(shared->page.send[i].word, words, sizeof(words));
		shared->page.send[i].seq = i + 1;
	}
	step_through(send_messages, host_overwrites);
	assert_int_equal(shared->page.sends_taken, 3);
	assert_int_equal(shared->ntoken, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_memory_equal(shared->token[i].word, words, sizeof(words));
	free(g);
}

/* --- slots of the wire "shm" ---------------------------------------------------------------------
 */

static char folder[] = "/tmp/nbar-order-XXXXXX";
static struct wire_base *a, *b;

static const struct nbfw_token token = { .type = NBFW_PULL,
					 .handle = 7,
					 .cookie = 9,
					 .src = 3,
					 .word = { 1, 2, 3, 4, 5 },
					 .reply_cookie = UINT64_C(0x8887868584838281) };

static const char *folder_of(void *args, const char *key)
{
	return strcmp(key, "dir") == 0 ? folder : NULL;
}

static int shm_begin(void **state)
{
	assert_int_equal(shm_open_wire("a", folder_of, NULL, &a), 0);
	assert_int_equal(shm_open_wire("b", folder_of, NULL, &b), 0);
	return page_begin(state);
}

static int shm_end(void **state)
{
	shm_close(a);
	shm_close(b);
	return page_end(state);
}

static struct slot *slot0(void)
{
	return &((struct shm_wire *)b)->own->slot[0];
}

static void transmit(void)
{
	if (!shm_transmit(a, &b->addr, &token))
		abort();
}

static bool slot_is_whole(void)
{
	struct slot *s = slot0();
	uint8_t frame[NBFW_FRAME_SIZE];

	nbfw_token_pack(&token, frame);
	return s->sequence == 0 ||
	       (s->sequence == 1 && memcmp(s->frame, frame, sizeof(frame)) == 0 &&
		memcmp(&s->from, a->addr.byte, sizeof(s->from)) == 0 &&
		s->sum == shm_sum_of(s->from, s->frame, 0));
}

static void slot_of_a_sender(void **state)
{
	step_through(transmit, slot_is_whole);
	assert_int_equal(slot0()->sequence, 1);
}

static void receive(void)
{
	if (shm_poll(b, &nic, 1, 1) != 1)
		abort();
}

/* The next sender writes into a slot as soon as it is free. */
static bool sender_overwrites(void)
{
	if (slot0()->sequence == SLOTS) {
		slot0()->from = 0;
		memset(slot0()->frame, 0xee, NBFW_FRAME_SIZE);
	}
	return true;
}

static void slot_of_a_receiver(void **state)
{
	transmit();
	step_through(receive, sender_overwrites);
	assert_int_equal(slot0()->sequence, SLOTS);
	assert_int_equal(shared->ntoken, 1);
	assert_memory_equal(shared->token[0].word, token.word, sizeof(token.word));
	assert_true(shared->token[0].reply_cookie == token.reply_cookie);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_IN(failure, page_begin, page_end),
		UNIT_IN(completion_with_a_sleeper, page_begin, page_end),
		UNIT_IN(stragglers, page_begin, page_end),
		UNIT_IN(message_to_host, page_begin, page_end),
		UNIT_IN(messages_of_host, page_begin, page_end),
		UNIT_IN(slot_of_a_sender, shm_begin, shm_end),
		UNIT_IN(slot_of_a_receiver, shm_begin, shm_end),
	};
	int failed;

	if (unit_counted()) {
		puts("1..1\nok 1 - order of stores # SKIP instrumented code has too many steps");
		return 0;
	}
	if (!mkdtemp(folder))
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
