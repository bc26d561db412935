/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_auth.c - tags of frames: which frames a NIC with a key accepts, which key files it
 * reads, and the effect of repeated frames.
 */
#include "unit/unit.h"

#ifdef WIRES_SODIUM
#include <poll.h>
#include <sys/stat.h>

#include "nic_world.h"
#include "unit/descriptors.h"
#include "udp.c"

static char said[512];

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

/* --- key files ----------------------------------------------------------------------------- */

static char folder[] = "/tmp/nbar-auth-XXXXXX", path[64];

static int folder_make(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/key", folder);
	return 0;
}

static int folder_drop(void **state)
{
	unlink(path);
	return rmdir(folder);
}

static int load(const void *text, size_t n, mode_t mode, struct wire_auth *out)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
	said[0] = '\0';
	return wire_auth_load("--key-file", path, out);
}

static const char digits[] = "000102030405060708090a0b0c0d0e0f";

static struct wire_auth key_of(uint8_t first)
{
	uint8_t key[16] = { first, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	struct wire_auth a;

	assert_int_equal(load(key, sizeof(key), 0600, &a), 0);
	return a;
}

static void key_is_16_bytes_or_32_digits(void **state)
{
	const struct wire_auth raw = key_of(0), other = key_of(1);
	struct wire_auth hex;
	char line[40];

	snprintf(line, sizeof(line), "%s\n", digits);
	for (size_t n = 32; n <= 33; n++) {
		assert_int_equal(load(line, n, 0600, &hex), 0);
		assert_memory_equal(hex.key, raw.key, sizeof(raw.key));
		assert_memory_equal(hex.id, raw.id, sizeof(raw.id));
	}
	assert_memory_not_equal(other.id, raw.id, sizeof(raw.id));
	for (size_t n = 0; n < 32; n++) { /* 16 digits are a part of a key */
		assert_int_equal(load(digits, n, 0600, &hex), -EINVAL);
		assert_non_null(strstr(said, "16 bytes, or 32 hexadecimal digits"));
		assert_int_equal(strncmp(said, "--key-file ", 11), 0);
		assert_null(strstr(said, "00010203"));
	}
	line[31] = 'g';
	assert_int_equal(load(line, 32, 0600, &hex), -EINVAL);
	memset(line, 'a', sizeof(line));
	assert_int_equal(load(line, 34, 0600, &hex), -EINVAL);
}

static void key_is_private(void **state)
{
	static const mode_t bad[] = { 0644, 0604, 0620, 0660, 0602 };
	const uint32_t was = unit_descriptors();
	struct wire_auth a;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(load(digits, 32, bad[i], &a), -EINVAL);
		assert_non_null(strstr(said, "other users"));
	}
	/* Root may let a group read it. */
	assert_int_equal(load(digits, 32, 0640, &a), geteuid() == 0 ? 0 : -EINVAL);
	if (geteuid() == 0) {
		assert_int_equal(load(digits, 32, 0600, &a), 0);
		/* In a user namespace there may be no other user. */
		if (chown(path, 65534, 65534) == 0)
			assert_int_equal(wire_auth_load("--key-file", path, &a), -EINVAL);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(wire_auth_load("--key-file", folder, &a), -EINVAL);
	assert_non_null(strstr(said, "not a regular file"));
	assert_int_equal(wire_auth_load("--key-file", "/nowhere/key", &a), -ENOENT);
	assert_non_null(strstr(said, "/nowhere/key: cannot be read: No such file"));
	assert_int_equal(unit_descriptors(), was);
}

/* --- frames --------------------------------------------------------------------------------- */

/* The vector of the paper on SipHash, appendix A. */
static void hash_is_siphash_2_4(void **state)
{
	static const uint8_t expected[] = { 0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1 };
	const struct wire_auth a = key_of(0);
	uint8_t text[15], out[8];

	for (uint8_t i = 0; i < sizeof(text); i++)
		text[i] = i;
	assert_int_equal(a.hash(out, text, sizeof(text), a.key), 0);
	assert_memory_equal(out, expected, sizeof(out));
}

/* Nobody can use a proof again: for other nonces, or as that of the other side. */
static void a_proof_is_of_one_side_and_both_nonces(void **state)
{
	const struct wire_auth a = key_of(0), other = key_of(1);
	uint8_t nonce[2 * NBAR_NONCE_SIZE] = { 1, 2, 3 };
	uint8_t proof[NBAR_PROOF_SIZE], second[NBAR_PROOF_SIZE];

	wire_auth_prove(&a, "nbar nic", nonce, proof);
	wire_auth_prove(&a, "nbar nic", nonce, second);
	assert_memory_equal(second, proof, sizeof(proof));
	wire_auth_prove(&a, "nbar host", nonce, second);
	assert_memory_not_equal(second, proof, sizeof(proof));
	wire_auth_prove(&other, "nbar nic", nonce, second);
	assert_memory_not_equal(second, proof, sizeof(proof));
	for (uint32_t i = 0; i < sizeof(nonce); i++) {
		nonce[i] ^= 0x80;
		wire_auth_prove(&a, "nbar nic", nonce, second);
		assert_memory_not_equal(second, proof, sizeof(proof));
		nonce[i] ^= 0x80;
	}
}

#define TAGGED (NBFW_FRAME_SIZE + WIRE_TAG_SIZE) /* bytes of a frame without a value */

static const struct nbfw_token token = {
	.type = NBFW_PULL, .handle = 7, .cookie = 9, .src = 1, .epoch = 5, .reply_cookie = 11
};
static struct nbnic nic;

/* A NIC's end of a wire; the wire carries no frames. */
static struct wire_base end_of(uint8_t address, const struct wire_auth *auth)
{
	struct wire_base w = { .addr = { { address } } };

	if (auth)
		wire_auth_use(&w, auth);
	return w;
}

static bool takes(struct wire_base *to, struct nbnic_addr from, const uint8_t *frame, size_t length)
{
	struct nbfw_token t;

	memset(from.byte + WIRE_AUTH_ID_AT, 0, WIRE_AUTH_ID_SIZE); /* no wire knows this part */
	if (!wire_frame_unpack(to, &nic, &from, frame, length, &t))
		return false;
	assert_int_equal(t.type, token.type);
	assert_int_equal(t.cookie, token.cookie);
	assert_int_equal(t.reply_cookie, token.reply_cookie);
	return memcmp(from.byte + WIRE_AUTH_ID_AT, to->addr.byte + WIRE_AUTH_ID_AT,
		      WIRE_AUTH_ID_SIZE) == 0;
}

static uint64_t count(enum nbar_counter c)
{
	uint64_t n = nic.counter[c];

	nic.counter[c] = 0;
	return n;
}

static void tag_is_over_addresses_and_frame(void **state)
{
	const struct wire_auth key = key_of(0);
	struct wire_base a = end_of(1, &key), b = end_of(2, &key);
	uint8_t frame[TAGGED], text[128] = { 1 }, tag[8];

	assert_int_equal(wire_frame_pack(&a, &b.addr, &token, frame), 56);
	nbfw_token_pack(&token, text + 80);
	assert_int_equal(frame[0], 0x42);
	assert_memory_equal(frame + 1, text + 81, 47);
	text[40] = 2;
	text[80] = 0x42;
	key.hash(tag, text, sizeof(text), key.key);
	assert_memory_equal(frame + 48, tag, sizeof(tag));
	assert_true(takes(&b, a.addr, frame, 56));
	assert_true(takes(&b, a.addr, frame, 60)); /* padding */
	assert_int_equal(count(NBAR_COUNTER_frames_forged), 0);
}

static void each_changed_bit_is_seen(void **state)
{
	const struct wire_auth key = key_of(0);
	struct wire_base a = end_of(1, &key), b = end_of(2, &key);
	uint8_t frame[TAGGED];

	wire_frame_pack(&a, &b.addr, &token, frame);
	for (uint32_t bit = 0; bit < 8 * sizeof(frame); bit++) {
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(takes(&b, a.addr, frame, sizeof(frame)));
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(count(NBAR_COUNTER_frames_forged), 8 * sizeof(frame) - 8);
	assert_int_equal(b.malformed, 7);                         /* other versions ... */
	assert_int_equal(count(NBAR_COUNTER_frames_untagged), 1); /* ... but one is a frame's */
	for (size_t length = 0; length < sizeof(frame); length++)
		assert_false(takes(&b, a.addr, frame, length));
	assert_int_equal(b.malformed, 7 + sizeof(frame));
	assert_true(takes(&b, a.addr, frame, sizeof(frame)));
}

/* The tag also covers a value; a frame that is cut off is no frame. */
static void a_value_is_covered(void **state)
{
	const struct nbfw_value v = {
		.op = NBAR_SUM, .type = NBAR_DOUBLE, .count = { 3 }, .byte = { 1, 2, 3 }
	};
	const struct nbfw_token with = {
		.type = NBFW_TOKEN, .value_length = NBFW_VALUE_HEAD + 24, .handle = 7, .value = &v
	};
	const struct wire_auth key = key_of(0);
	struct wire_base a = end_of(1, &key), b = end_of(2, &key);
	const uint32_t size = NBFW_FRAME_SIZE + NBFW_VALUE_HEAD + 24 + WIRE_TAG_SIZE;
	uint8_t frame[WIRE_FRAME_MAX] = { 0 };
	struct nbnic_addr from = a.addr;
	struct nbfw_token t;

	(void)state;
	assert_int_equal(wire_frame_size(&a, &with), size);
	assert_int_equal(wire_frame_pack(&a, &b.addr, &with, frame), size);
	assert_int_equal(frame[0], 0x43);
	assert_true(wire_frame_unpack(&b, &nic, &from, frame, size + 3, &t));
	assert_ptr_equal(t.value, frame + NBFW_FRAME_SIZE);
	assert_memory_equal(t.value, &v, NBFW_VALUE_HEAD + 24);
	for (uint32_t at = 1; at < size; at++) {
		frame[at] ^= 4;
		assert_false(wire_frame_unpack(&b, &nic, &from, frame, size, &t));
		frame[at] ^= 4;
		assert_false(wire_frame_unpack(&b, &nic, &from, frame, at, &t));
	}
	count(NBAR_COUNTER_frames_forged);
	count(NBAR_COUNTER_frames_untagged);
}

static void other_keys_and_addresses_are_seen(void **state)
{
	const struct wire_auth key = key_of(0), wrong = key_of(1);
	struct wire_base a = end_of(1, &key), b = end_of(2, &key), c = end_of(3, &key),
			 other = end_of(2, &wrong), none = end_of(2, NULL);
	uint8_t frame[TAGGED], plain[TAGGED];

	wire_frame_pack(&a, &b.addr, &token, frame);
	assert_int_equal(wire_frame_pack(&none, &b.addr, &token, plain), NBFW_FRAME_SIZE);
	assert_false(takes(&b, c.addr, frame, sizeof(frame))); /* from elsewhere */
	assert_false(takes(&c, a.addr, frame, sizeof(frame))); /* for another NIC */
	assert_false(takes(&other, a.addr, frame, sizeof(frame)));
	assert_int_equal(count(NBAR_COUNTER_frames_forged), 3);
	assert_false(takes(&none, a.addr, frame, sizeof(frame)));
	assert_int_equal(count(NBAR_COUNTER_frames_tagged), 1);
	assert_false(takes(&b, a.addr, plain, NBFW_FRAME_SIZE));
	assert_false(takes(&b, a.addr, plain, sizeof(plain)));
	assert_int_equal(count(NBAR_COUNTER_frames_untagged), 2);
	assert_true(takes(&none, a.addr, plain, NBFW_FRAME_SIZE));
	assert_int_equal(b.malformed + c.malformed + other.malformed + none.malformed, 0);
}

/* Garbage with a right tag is refused. */
static void frame_with_a_tag_is_checked(void **state)
{
	const struct nbfw_token unknown = { .type = NBFW_TYPE_END };
	const struct wire_auth key = key_of(0);
	struct wire_base a = end_of(1, &key), b = end_of(2, &key);
	uint8_t frame[TAGGED];

	wire_frame_pack(&a, &b.addr, &unknown, frame);
	assert_false(takes(&b, a.addr, frame, sizeof(frame)));
	assert_int_equal(b.malformed, 1);
}

static const char *refusal(struct wire_base *w, const struct wire_base *peer)
{
	const char *why = NULL;
	int rc = wire_auth_peer_begin(w, &peer->addr, &why);

	assert_int_equal(rc, why ? -EPROTO : 0);
	wire_auth_peer_end(w, &peer->addr);
	return why ? why : "";
}

static void peers_need_the_same_key(void **state)
{
	const struct wire_auth key = key_of(0), wrong = key_of(1);
	struct wire_base a = end_of(1, &key), b = end_of(2, &key), other = end_of(3, &wrong),
			 none = end_of(4, NULL), none2 = end_of(5, NULL);

	assert_string_equal(refusal(&a, &b), "");
	assert_string_equal(refusal(&none, &none2), "");
	assert_non_null(strstr(refusal(&a, &other), "another key"));
	assert_non_null(strstr(refusal(&a, &none), "it has no key"));
	assert_non_null(strstr(refusal(&none, &a), "it has a key"));
}

static const char *loopback(void *args, const char *key)
{
	return strcmp(key, "bind") == 0 ? "127.0.0.1:0" : NULL;
}

/* A NIC without groups counts each frame that it accepts as a stranger. */
static uint64_t carried(struct wire_base *from, struct wire_base *to)
{
	struct pollfd ready = { .fd = ((struct udp_wire *)to)->fd, .events = POLLIN };

	assert_true(udp_transmit(from, &to->addr, &token));
	assert_int_equal(poll(&ready, 1, -1), 1);
	assert_int_equal(udp_poll(to, &nic, 0, 8), 1);
	return count(NBAR_COUNTER_frames_stranger);
}

static void udp_carries_tags(void **state)
{
	static const struct nbnic_ops none;
	const struct nbnic_config config = { .pull_ns = MS, .budget_ns = 1000 * MS };
	const struct wire_auth key = key_of(0), wrong = key_of(1);
	const struct wire_auth *keys[4] = { &key, &key, &wrong, NULL };
	struct wire_base *w[4];

	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(udp_open("a", loopback, NULL, &w[i]), 0);
		if (keys[i])
			wire_auth_use(w[i], keys[i]);
	}
	assert_int_equal(nbnic_init(&nic, &none, NULL, 3, &w[0]->addr, &config), 0);
	nic.used.strangers = nic.quota; /* so it answers no stranger */
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t j = 0; j < 4; j++)
			assert_int_equal(carried(w[i], w[j]), keys[i] == keys[j]);
	assert_int_equal(count(NBAR_COUNTER_frames_forged), 4);
	assert_int_equal(count(NBAR_COUNTER_frames_untagged), 3);
	assert_int_equal(count(NBAR_COUNTER_frames_tagged), 3);
	for (uint32_t i = 0; i < 4; i++)
		udp_close(w[i]);
}

/* --- repeated frames ------------------------------------------------------------------------- */

/* The frames that NICs have sent themselves; `seen`: the part of the queue that was recorded. */
static struct {
	struct frame frame[1024];
	uint32_t n, seen;
} record;

static struct world *world_recorded(uint32_t size, const char *alg)
{
	record.n = record.seen = 0;
	return world_connected(size, alg);
}

/* Repeats all frames since the beginning. A repeated frame has a right tag, so it arrives. */
static void repeat_all(struct world *w)
{
	const struct wire_auth key = key_of(0);

	for (; record.seen < w->tail; record.seen++) {
		assert_true(record.n < sizeof(record.frame) / sizeof(record.frame[0]));
		record.frame[record.n++] = w->queue[record.seen % QUEUE_MAX];
	}
	for (uint32_t i = 0; i < record.n; i++) {
		const struct frame *f = &record.frame[i];
		struct wire_base from = end_of((uint8_t)f->from, &key),
				 to = end_of((uint8_t)f->to, &key);
		uint8_t frame[TAGGED];
		struct nbfw_token t;

		wire_frame_pack(&from, &to.addr, &f->token, frame);
		assert_true(wire_frame_unpack(&to, &nic, &from.addr, frame, sizeof(frame), &t));
		w->queue[w->tail++ % QUEUE_MAX] = (struct frame){ f->from, f->to, t };
	}
	settle(w);
	record.seen = w->tail; /* do not record the answers to repeated frames */
}

static void all_at(const struct world *w, uint32_t epoch)
{
	for (uint32_t i = 0; i < w->size; i++) {
		assert_int_equal(w->member[i].epoch, epoch);
		assert_int_equal(w->member[i].status, NBAR_STATUS_OK);
	}
}

/* Runs barriers, and repeats all frames between them, and while one host is late: the repeated
 * frames let no barrier complete or fail. */
static void run_and_repeat(struct world *w, uint32_t barriers)
{
	for (uint32_t epoch = 1; epoch <= barriers; epoch++) {
		for (uint32_t i = 1; i < w->size; i++)
			post(w, i, epoch);
		pass_time(w, 5 * MS); /* they send PULLs, and get LATERs */
		repeat_all(w);
		all_at(w, epoch - 1);
		post(w, 0, epoch);
		settle(w);
		all_at(w, epoch);
		repeat_all(w);
		all_at(w, epoch);
	}
}

static void repeated_frames_end_no_barrier(void **state)
{
	struct world *w = world_recorded(4, "dissemination:1");

	run_and_repeat(w, 4);
	assert_true(counted(w, NBAR_COUNTER_tokens_stale) > 0);
	assert_true(counted(w, NBAR_COUNTER_tokens_duplicate) > 0);
	assert_true(counted(w, NBAR_COUNTER_laters_received) > 0);
	assert_int_equal(counted(w, NBAR_COUNTER_frames_bad), 0);
	world_close(w);
}

/* A NIC that is gone counts as alive for as long as an attacker repeats its frames. */
static void repeated_frames_look_alive(void **state)
{
	struct world *w = world_recorded(4, "dissemination:1");

	run_and_repeat(w, 2);
	w->member[0].unplugged = true;
	for (uint32_t i = 1; i < w->size; i++)
		post(w, i, 3);
	for (uint32_t ms = 0; ms < 5000; ms += 100) {
		pass_time(w, 100 * MS);
		record.seen = w->tail; /* only frames from before */
		repeat_all(w);
	}
	all_at(w, 2);
	pass_time(w, 3000 * MS);
	for (uint32_t i = 1; i < w->size; i++) {
		assert_int_equal(w->member[i].status, NBAR_STATUS_SILENT);
		assert_int_equal(w->member[i].failed_rank, 0);
	}
	world_close(w);
}

/* Answers to old PULLs, and ABORTs among them, let no barrier fail: here a group has closed in
 * order. */
static void repeated_pulls_after_a_close(void **state)
{
	struct world *w = world_recorded(4, "dissemination:1");

	run_and_repeat(w, 2);
	nbnic_group_close(&w->member[0].nic, w->member[0].group, NBAR_STATUS_CLOSED, w->now);
	repeat_all(w);
	all_at(w, 2);
	pass_time(w, 1100 * MS); /* the closed group no longer lingers */
	assert_null(w->member[0].group);
	repeat_all(w);
	assert_true(counted(w, NBAR_COUNTER_frames_stranger) > 0);
	assert_true(counted(w, NBAR_COUNTER_aborts_sent) > 0);
	all_at(w, 2);
	world_close(w);
}

/* The signal service has no epochs: a message that is repeated is delivered again. */
static void repeated_signals_are_delivered(void **state)
{
	static const uint32_t word[NBAR_SIGNAL_WORDS] = { 7 };
	struct world *w = world_recorded(2, "signal");

	assert_true(nbnic_signal(&w->member[0].nic, w->member[0].group, 0, word));
	settle(w);
	assert_int_equal(w->member[1].signals, 1);
	repeat_all(w);
	assert_int_equal(w->member[1].signals, 2);
	world_close(w);
}

UNIT_MAIN(folder_make, folder_drop, UNIT(key_is_16_bytes_or_32_digits), UNIT(key_is_private),
	  UNIT(hash_is_siphash_2_4), UNIT(tag_is_over_addresses_and_frame),
	  UNIT(a_proof_is_of_one_side_and_both_nonces), UNIT(each_changed_bit_is_seen),
	  UNIT(a_value_is_covered), UNIT(other_keys_and_addresses_are_seen),
	  UNIT(frame_with_a_tag_is_checked), UNIT(peers_need_the_same_key), UNIT(udp_carries_tags),
	  UNIT(repeated_frames_end_no_barrier), UNIT(repeated_frames_look_alive),
	  UNIT(repeated_pulls_after_a_close), UNIT(repeated_signals_are_delivered))
#else
int main(void)
{
	puts("1..1\nok 1 - tags of frames # SKIP this build has no libsodium: apt-get install "
	     "libsodium-dev");
	return 0;
}
#endif
