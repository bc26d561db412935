/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_exchange.c - the exchange of ranks during the set-up of a communicator: the results are
 * right, and the messages, bytes and memory of a rank grow with the logarithm of the number of
 * ranks.
 *
 * For the results, all ranks are threads, with mailboxes in place of an MPI. For the growth, single
 * ranks of up to a million run with a simulated MPI that computes the messages of the others.
 */
#include <pthread.h>

#include "exchange.h"
#include "unit/unit.h"

#define RANKS_MAX 40u
#define LETTERS_MAX 4096u
#define PEERS_MAX 64u

/* --- hosts, each with some ranks in a row, and the peers of a dissemination ----------------- */

static uint32_t peers_of(uint32_t host, uint32_t nhost, uint32_t peer[PEERS_MAX])
{
	uint32_t n = 0;

	for (uint32_t h = 1; h < nhost; h *= 2) {
		uint32_t both[2] = { (host + h) % nhost, (host + nhost - h) % nhost };

		for (int i = 0; i < 2; i++) {
			bool known = false;

			for (uint32_t k = 0; k < n; k++)
				known |= peer[k] == both[i];
			if (!known)
				peer[n++] = both[i];
		}
	}
	return n;
}

static struct nbar_endpoint address_of(uint32_t host)
{
	struct nbar_endpoint address = { .byte = { 0 } };

	memcpy(address.byte, &host, sizeof(host));
	return address;
}

static uint32_t leaders_below(uint32_t rank, uint32_t each)
{
	return (rank + each - 1) / each;
}

/* --- results: an MPI of threads ------------------------------------------------------------------
 */

struct letter {
	uint32_t from, to, tag, size;
	bool taken;
	uint8_t data[2048];
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t news;
	uint32_t n, size, each;
	uint32_t absent; /* a rank that does not take part, or RANKS_MAX */
	uint32_t poor;   /* a rank without memory, or RANKS_MAX */
	struct letter letter[LETTERS_MAX];
} post = { .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER };

static _Thread_local uint32_t me;

static struct letter *find(uint32_t from, uint32_t tag)
{
	for (uint32_t i = 0; i < post.n; i++) {
		struct letter *l = &post.letter[i];

		if (!l->taken && l->to == me && l->tag == tag &&
		    (from == NBAR_RANK_NONE || l->from == from))
			return l;
	}
	return NULL;
}

static int exchange(void *mpi, uint32_t tag, struct nbmpi_message *m, uint32_t n)
{
	pthread_mutex_lock(&post.lock);
	for (uint32_t i = 0; i < n; i++) {
		struct letter *l = &post.letter[post.n];

		if (m[i].in)
			continue;
		require(post.n < LETTERS_MAX && m[i].size <= sizeof(l->data), "rank %u", me);
		require(m[i].rank != post.absent && m[i].rank != me, "rank %u", me);
		*l = (struct letter){ me, m[i].rank, tag, m[i].size, false, { 0 } };
		memcpy(l->data, m[i].data, m[i].size);
		post.n++;
	}
	pthread_cond_broadcast(&post.news);
	for (uint32_t i = 0; i < n; i++) {
		struct letter *l;

		while (m[i].in && !(l = find(m[i].rank, tag)))
			pthread_cond_wait(&post.news, &post.lock);
		if (!m[i].in)
			continue;
		require(tag == (m[i].rank == NBAR_RANK_NONE ? 2 : 3), "rank %u: tag %u", me, tag);
		require(l->size == m[i].size, "rank %u: %u bytes, not %u", me, l->size, m[i].size);
		memcpy(m[i].data, l->data, l->size);
		l->taken = true;
	}
	pthread_mutex_unlock(&post.lock);
	return 0;
}

static enum nbmpi_why meet(void *mpi, uint32_t rank)
{
	return rank == post.absent ? NBMPI_WHY_foreign : NBMPI_WHY_none;
}

void *__real_calloc(size_t n, size_t size);
static _Thread_local bool poor;

/* Exchanges addresses as join.c does. False: a rank has no memory, and all ranks know that. */
static bool addresses(const struct nbmpi_channel *at, uint32_t nhost, const struct nbmpi_host *host)
{
	struct nbmpi_sum sum = { .least = NBMPI_VOTE_YES };
	struct nbmpi_speech *speech;

	poor = me == post.poor;
	assert_int_equal(nbmpi_exchange_begin(at, me, nhost, host, &speech), 0);
	poor = false;
	require((speech != NULL) == (me < nhost && me != post.poor), "rank %u", me);
	if (me < nhost && !speech)
		sum.least = nbmpi_vote_no(NBMPI_WHY_memory, me);
	assert_int_equal(nbmpi_tree_sum(at, me, post.size, meet, &sum), 0);
	if (sum.least == NBMPI_VOTE_YES)
		assert_int_equal(nbmpi_exchange_addresses(at, me, host, speech), 0);
	else
		require(sum.least == nbmpi_vote_no(NBMPI_WHY_memory, post.poor), "rank %u", me);
	free(speech);
	return sum.least == NBMPI_VOTE_YES;
}

/* Runs the set-up of one rank. */
static void *rank_main(void *arg)
{
	const struct nbmpi_channel at = { .exchange = exchange, .tag = 2 };
	struct nbar_endpoint address[PEERS_MAX];
	struct nbmpi_sum sum = { .least = NBMPI_VOTE_YES + 100 };
	uint32_t nhost = leaders_below(post.size, post.each), peer[PEERS_MAX];
	bool leads;

	me = (uint32_t)(uintptr_t)arg;
	leads = me % post.each == 0;
	sum.least -= me;
	sum.total = leads;
	sum.before = 77; /* only an output */
	for (uint32_t k = 0; k < 4; k++)
		sum.also[k] = 100 * k + (k % 2 ? me : post.size - me);
	assert_int_equal(
		nbmpi_tree_sum(&at, me, post.size, post.absent == RANKS_MAX ? NULL : meet, &sum),
		0);
	if (post.absent != RANKS_MAX) {
		require((uint32_t)sum.least == NBMPI_WHY_foreign, "rank %u", me);
		require(sum.least < NBMPI_VOTE_YES, "rank %u", me);
		return NULL;
	}
	require(sum.least == NBMPI_VOTE_YES + 101 - post.size, "rank %u", me);
	for (uint32_t k = 0; k < 4; k++)
		require(sum.also[k] == 100 * k + (k % 2 ? 0 : 1), "rank %u, %u", me, k);
	require(sum.total == nhost, "rank %u: %u", me, sum.total);
	require(sum.before == leaders_below(me, post.each), "rank %u: %u", me, sum.before);
	struct nbmpi_host host = { sum.before, address_of(sum.before), peer,
				   peers_of(sum.before, nhost, peer), address };
	if (!addresses(&at, nhost, leads ? &host : NULL))
		return NULL;
	require(post.poor >= nhost, "rank %u goes on without the memory of rank %u", me, post.poor);
	for (uint32_t i = 0; leads && i < host.npeer; i++) {
		struct nbar_endpoint want = address_of(peer[i]);

		require(memcmp(&want, &address[i], sizeof(want)) == 0, "rank %u, peer %u", me,
			peer[i]);
	}
	/* A vote between two exchanges, as exchange.h asks for. */
	uint32_t number[2 * RANKS_MAX];

	sum = (struct nbmpi_sum){ .least = NBMPI_VOTE_YES };
	assert_int_equal(nbmpi_tree_sum(&at, me, post.size, meet, &sum), 0);
	assert_int_equal(nbmpi_exchange_numbers(&at, me, post.size, 1000 + me, number), 0);
	for (uint32_t r = 0; r < post.size; r++)
		require(number[r] == 1000 + r, "rank %u, from %u: %u", me, r, number[r]);
	return NULL;
}

static void all_ranks(uint32_t size, uint32_t each, uint32_t absent, uint32_t without_memory)
{
	pthread_t thread[RANKS_MAX];

	post.n = 0;
	post.size = size;
	post.each = each;
	post.absent = absent;
	post.poor = without_memory;
	for (uint32_t r = 0; r < size; r++)
		if (r != absent)
			pthread_create(&thread[r], NULL, rank_main, (void *)(uintptr_t)r);
	for (uint32_t r = 0; r < size; r++)
		if (r != absent)
			pthread_join(thread[r], NULL);
	for (uint32_t i = 0; i < post.n; i++)
		require(post.letter[i].taken, "a letter from %u to %u, of %u, %u each",
			post.letter[i].from, post.letter[i].to, size, each);
}

static void test_right(void **state)
{
	for (uint32_t size = 1; size <= RANKS_MAX; size += size < 10 ? 1 : 6)
		for (uint32_t each = 1; each <= 4; each++)
			all_ranks(size, each, RANKS_MAX, RANKS_MAX);
}

static void test_absent(void **state)
{
	for (uint32_t absent = 0; absent < 21; absent++)
		all_ranks(21, 1, absent, RANKS_MAX);
}

/* A rank without memory tells the others before they wait for its messages. */
static void test_no_memory(void **state)
{
	for (uint32_t each = 1; each <= 3; each++)
		for (uint32_t rank = 0; rank < 10; rank++)
			all_ranks(10, each, RANKS_MAX, rank);
}

/* --- growth: one rank --------------------------------------------------------------------------
 */

static struct {
	uint32_t size, each;
	uint64_t messages, bytes, memory, peak;
} count;

void *__wrap_calloc(size_t n, size_t size)
{
	if (poor)
		return NULL;
	count.memory += n * size;
	return __real_calloc(n, size);
}

/* The message of the other rank, chosen by its size. */
static void say(const struct nbmpi_message *m)
{
	uint32_t nhost = leaders_below(count.size, count.each), peer[PEERS_MAX];
	struct {
		struct nbar_endpoint address;
		uint32_t leader, npeer;
	} card = { address_of(me), me * count.each, peers_of(me, nhost, peer) };

	if (m->rank == NBAR_RANK_NONE) {
		require(m->size == sizeof(card), "%u bytes", m->size);
		memcpy(m->data, &card, sizeof(card));
	} else if (m->size == sizeof(struct nbmpi_sum)) {
		uint32_t top = m->rank < me ? me : count.size;
		uint64_t end = (uint64_t)m->rank + (m->rank & -m->rank);

		if (m->rank > me && end < top)
			top = (uint32_t)end;
		*(struct nbmpi_sum *)m->data = (struct nbmpi_sum){
			.least = NBMPI_VOTE_YES,
			.before = leaders_below(me, count.each),
			.total = m->rank < me ? nhost
					      : leaders_below(top, count.each) -
							leaders_below(m->rank, count.each),
		};
	} else if (m->size == card.npeer * sizeof(*peer)) {
		memcpy(m->data, peer, m->size);
	}
}

static int exchange_counted(void *mpi, uint32_t tag, struct nbmpi_message *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		count.messages++;
		count.bytes += m[i].size;
		if (m[i].in)
			say(&m[i]);
	}
	return 0;
}

static enum nbmpi_why meet_all(void *mpi, uint32_t rank)
{
	require(rank < count.size, "rank %u", rank);
	return NBMPI_WHY_none;
}

/* Runs three votes and the exchange of addresses on one rank. */
static void one_rank(uint32_t rank)
{
	const struct nbmpi_channel at = { .exchange = exchange_counted, .tag = 2 };
	uint32_t nhost = leaders_below(count.size, count.each), peer[PEERS_MAX];
	bool leads = rank % count.each == 0;
	struct nbar_endpoint address[PEERS_MAX];
	struct nbmpi_sum sum;

	me = rank;
	count.messages = count.bytes = count.memory = 0;
	for (int i = 0; i < 3; i++) {
		sum = (struct nbmpi_sum){ .least = NBMPI_VOTE_YES, .total = leads };
		assert_int_equal(nbmpi_tree_sum(&at, rank, count.size, meet_all, &sum), 0);
		require(sum.total == nhost && sum.before == leaders_below(rank, count.each),
			"rank %u of %u: %u, %u", rank, count.size, sum.before, sum.total);
	}
	struct nbmpi_host host = { sum.before, address_of(sum.before), peer,
				   peers_of(sum.before, nhost, peer), address };
	struct nbmpi_speech *speech;

	assert_int_equal(nbmpi_exchange_begin(&at, rank, nhost, leads ? &host : NULL, &speech), 0);
	assert_int_equal(nbmpi_exchange_addresses(&at, rank, leads ? &host : NULL, speech), 0);
	free(speech);
	count.memory += leads ? host.npeer * sizeof(*address) : 0; /* those of join.c */
}

/* The maximum over many ranks. */
static void ranks_of(uint32_t size, uint32_t each)
{
	uint64_t messages = 0, bytes = 0, memory = 0;
	uint32_t log = 0;
	struct rng rng = { size };

	while (UINT32_C(1) << log < size)
		log++;
	count.size = size;
	count.each = each;
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t rank = i < 100 ? i : rng_below(&rng, size);

		one_rank(rank);
		messages = count.messages > messages ? count.messages : messages;
		bytes = count.bytes > bytes ? count.bytes : bytes;
		memory = count.memory > memory ? count.memory : memory;
	}
	print_message("%7u ranks, %2u a host: at most %3u messages, %5u bytes sent and received, "
		      "%5u bytes of memory a rank\n",
		      size, each, (unsigned)messages, (unsigned)bytes, (unsigned)memory);
	/* 6 log: twice the messages of a child of the root in three votes. 4 log: 2 peers a round,
	 * both ways. The rest: the card. */
	require(messages <= 6 * log + 4 * log + 8, "%u ranks", size);
	require(bytes <= (6 * 16 + 4 * 96 + 4 * (4 + 96)) * (uint64_t)log + 256, "%u ranks", size);
	require(memory <= 2 * (2 * 32 + 4 + 2 * 96) * (uint64_t)log + 256, "%u ranks", size);
}

static void test_growth(void **state)
{
	for (uint32_t size = 1000; size <= 1000000; size *= 10) {
		ranks_of(size, 1);
		ranks_of(size, 64);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(test_right), UNIT(test_absent), UNIT(test_no_memory), UNIT(test_growth))
