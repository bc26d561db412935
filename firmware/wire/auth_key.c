/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_key.c - reads the key of the tags of frames from a file.
 *
 * Called when options are read, or an in-process NIC is opened: never on the path of a token. Never
 * prints the contents of the file. Without libsodium, it refuses every key.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef WIRES_SODIUM
#include <sodium.h>
#endif

#include "auth.h"
#include "log.h"

#ifdef WIRES_SODIUM
#define TEXT_MAX 64u /* 32 digits, and blanks after them */

_Static_assert(crypto_shorthash_KEYBYTES == WIRE_AUTH_KEY_SIZE &&
		       crypto_shorthash_BYTES == WIRE_TAG_SIZE,
	       "SipHash-2-4");

/* True if only the owner may read and change the file. If root owns it, its group may read it. */
static bool is_private(const struct stat *st)
{
	return st->st_uid == 0 ? (st->st_mode & 037) == 0
			       : st->st_uid == geteuid() && (st->st_mode & 077) == 0;
}

/* Reads up to TEXT_MAX bytes of the file. Returns their number, or a negative errno after
 * log_error(). */
static ssize_t text_read(const char *what, const char *path, char text[TEXT_MAX])
{
	/* O_NONBLOCK: do not wait for a pipe that nobody writes to. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = -EINVAL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		n = -errno;
		log_error("%s %s: cannot be read: %s", what, path, strerror((int)-n));
	} else if (!S_ISREG(st.st_mode)) {
		log_error("%s %s: not a regular file", what, path);
	} else if (!is_private(&st)) {
		log_error("%s %s: other users may read or change this key; it must belong to the "
			  "user that starts the NIC (chmod 600), or to root (chmod 600, or 640 for "
			  "a group)",
			  what, path);
	} else {
		n = read(fd, text, TEXT_MAX);
		if (n < 0) {
			n = -errno;
			log_error("%s %s: cannot be read: %s", what, path, strerror((int)-n));
		}
	}
	if (fd >= 0)
		close(fd);
	return n;
}

/* Reads the key in a text of n bytes. False: the text has no key. */
static bool key_read(const char *text, size_t n, uint8_t key[WIRE_AUTH_KEY_SIZE])
{
	size_t digits = strspn(text, "0123456789abcdefABCDEF"), bytes = 0;

	/* 16 bytes that are all digits are half a key, and not a key of 16 bytes. */
	if (n == WIRE_AUTH_KEY_SIZE && digits < n) {
		memcpy(key, text, n);
		return true;
	}
	return digits == 2 * WIRE_AUTH_KEY_SIZE && digits + strspn(text + digits, " \t\r\n") == n &&
	       sodium_hex2bin(key, WIRE_AUTH_KEY_SIZE, text, digits, NULL, &bytes, NULL) == 0 &&
	       bytes == WIRE_AUTH_KEY_SIZE;
}

int wire_auth_load(const char *what, const char *path, struct wire_auth *out)
{
	struct wire_auth a = { .hash = crypto_shorthash };
	char text[TEXT_MAX + 1] = "";
	ssize_t n = text_read(what, path, text);

	if (n >= 0 && !key_read(text, (size_t)n, a.key)) {
		log_error("%s %s: no key: it has 16 bytes, or 32 hexadecimal digits; copy the file "
			  "of another node again, or make one key for all: (umask 077; head -c 16 "
			  "/dev/urandom >FILE)",
			  what, path);
		n = -EINVAL;
	}
	if (n >= 0) {
		a.hash(a.id, (const unsigned char *)"nbar key", WIRE_AUTH_ID_SIZE, a.key);
		*out = a;
	}
	explicit_bzero(text, sizeof(text));
	explicit_bzero(&a, sizeof(a));
	return n < 0 ? (int)n : 0;
}
#else
int wire_auth_load(const char *what, const char *path, struct wire_auth *out)
{
	(void)out;
	log_error("%s %s: nbar was built without libsodium, which makes the tags of frames; for "
		  "them: apt-get install libsodium-dev, and build it again",
		  what, path);
	return -ENOTSUP;
}
#endif
