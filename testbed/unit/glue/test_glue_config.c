/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_glue_config.c - the settings of the glue: defaults, each variable with good and bad values,
 * names of NICs, and the library that an in-process NIC keeps loaded.
 */
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "unit/said.h"
#include "comm.h"

static bool nameless; /* uname fails */
static struct {
	uint32_t n;
	char name[64];
	int flags;
} loaded;

int __real_uname(struct utsname *out);
int __wrap_uname(struct utsname *out)
{
	if (nameless)
		return -1;
	memset(out, 0, sizeof(*out));
	strcpy(out->nodename, "node7.site");
	return 0;
}

void *__wrap_dlopen(const char *name, int flags)
{
	loaded.n++;
	snprintf(loaded.name, sizeof(loaded.name), "%s", name);
	loaded.flags = flags;
	return NULL;
}

static const char *const variables[] = {
	"NBAR_MPI_ENABLE",  "NBAR_MPI_ALLREDUCE", "NBAR_MPI_MIN_HOSTS",
	"NBAR_MPI_VERBOSE", "NBAR_MPI_ALG",       "NBAR_MPI_NIC",
	"NBAR_MPI_WAIT",    "NBAR_MPI_WHERE",     "NBAR_NIC",
};

static int clean(void **state)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	nameless = false;
	loaded.n = 0;
	return 0;
}

static void is_default(const struct nbmpi_config *config)
{
	assert_true(config->enable);
	assert_true(config->allreduce);
	assert_int_equal(config->where, NBMPI_WHERE_AUTO);
	assert_string_equal(config->alg, "auto");
	assert_int_equal(config->min_hosts, 1);
	assert_int_equal(config->wait, NBMPI_WAIT_AUTO);
	assert_string_equal(config->nic, "");
	assert_int_equal(config->verbose, 0);
}

/* Reads the settings from the environment. Returns the text that the glue printed. */
static const char *read_env(struct nbmpi_config *config)
{
	memset(config, 0xff, sizeof(*config));
	said_begin();
	nbmpi_config_env(config);
	return said_end();
}

static void defaults(void **state)
{
	struct nbmpi_config config;

	memset(&config, 0xff, sizeof(config));
	nbmpi_config_init(&config);
	is_default(&config);
	assert_string_equal(read_env(&config), "");
	is_default(&config);
	/* An empty variable is not set. */
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		setenv(variables[i], "", 1);
	assert_string_equal(read_env(&config), "");
	is_default(&config);
	assert_null(nbmpi_config_nic(&config));
}

static void all_are_read(void **state)
{
	struct nbmpi_config config;

	setenv("NBAR_MPI_ENABLE", "0", 1);
	setenv("NBAR_MPI_ALLREDUCE", "0", 1);
	setenv("NBAR_MPI_MIN_HOSTS", "17", 1);
	setenv("NBAR_MPI_VERBOSE", "2", 1);
	setenv("NBAR_MPI_ALG", "tuned:/etc/profile.json", 1);
	setenv("NBAR_MPI_NIC", "n%r", 1);
	setenv("NBAR_MPI_WAIT", "block", 1);
	setenv("NBAR_MPI_WHERE", "host", 1);
	assert_string_equal(read_env(&config), "");
	assert_false(config.enable);
	assert_false(config.allreduce);
	assert_int_equal(config.min_hosts, 17);
	assert_int_equal(config.verbose, 2);
	assert_string_equal(config.alg, "tuned:/etc/profile.json");
	assert_string_equal(config.nic, "n%r");
	assert_int_equal(config.wait, NBMPI_WAIT_BLOCK);
	assert_int_equal(config.where, NBMPI_WHERE_HOST);
	setenv("NBAR_MPI_ENABLE", "1", 1);
	assert_string_equal(read_env(&config), "");
	assert_true(config.enable);
}

struct text_case {
	const char *name, *value, *says; /* says NULL: the value is good */
};

static void each_value_is_checked(void **state)
{
	static const struct text_case cases[] = {
		{ "NBAR_MPI_ENABLE", "1", NULL },
		{ "NBAR_MPI_ENABLE", "2",
		  "NBAR_MPI_ENABLE is \"2\": it must be a number from 0 to 1\n" },
		{ "NBAR_MPI_ENABLE", "yes", "from 0 to 1\n" },
		{ "NBAR_MPI_ENABLE", "1x", "\"1x\"" },
		{ "NBAR_MPI_ENABLE", "-0", "\"-0\"" },
		{ "NBAR_MPI_ENABLE", " 1", "\" 1\"" },
		{ "NBAR_MPI_ENABLE", ":", "\":\"" },
		{ "NBAR_MPI_ALLREDUCE", "2", "from 0 to 1\n" },
		{ "NBAR_MPI_MIN_HOSTS", "0", NULL },
		{ "NBAR_MPI_MIN_HOSTS", "9", NULL },
		{ "NBAR_MPI_MIN_HOSTS", "1048576", NULL },
		{ "NBAR_MPI_MIN_HOSTS", "1048577", "from 0 to 1048576\n" },
		{ "NBAR_MPI_MIN_HOSTS", "99999999999999999999999", "from 0 to 1048576\n" },
		{ "NBAR_MPI_VERBOSE", "9", NULL },
		{ "NBAR_MPI_VERBOSE", "10", "from 0 to 9\n" },
		{ "NBAR_MPI_WAIT", "auto", NULL },
		{ "NBAR_MPI_WAIT", "spin", NULL },
		{ "NBAR_MPI_WAIT", "yield", NULL },
		{ "NBAR_MPI_WAIT", "sleep",
		  "NBAR_MPI_WAIT is \"sleep\": it must be auto, spin, yield or block\n" },
		{ "NBAR_MPI_WHERE", "auto", NULL },
		{ "NBAR_MPI_WHERE", "nic", NULL },
		{ "NBAR_MPI_WHERE", "hosts",
		  "NBAR_MPI_WHERE is \"hosts\": it must be auto, nic or host\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct text_case *it = &cases[i];
		struct nbmpi_config config;
		const char *said;

		setenv(it->name, it->value, 1);
		said = read_env(&config);
		require(config.enable == !it->says, "%s=%s", it->name, it->value);
		if (it->says)
			require(strstr(said, it->says) &&
					strstr(said, "all barriers are left to MPI"),
				"%s=%s: %s", it->name, it->value, said);
		else
			require(!*said, "%s=%s: %s", it->name, it->value, said);
		unsetenv(it->name);
	}
}

static void the_numbers_are_those_of_the_text(void **state)
{
	struct nbmpi_config config;

	setenv("NBAR_MPI_MIN_HOSTS", "1048576", 1);
	setenv("NBAR_MPI_VERBOSE", "9", 1);
	assert_string_equal(read_env(&config), "");
	assert_int_equal(config.min_hosts, 1048576);
	assert_int_equal(config.verbose, 9);
	/* A bad number leaves the default. */
	setenv("NBAR_MPI_MIN_HOSTS", "1048577", 1);
	read_env(&config);
	assert_int_equal(config.min_hosts, 1);
}

static void words_have_their_values(void **state)
{
	enum nbmpi_wait wait = NBMPI_WAIT_BLOCK;
	enum nbmpi_where where = NBMPI_WHERE_HOST;

	assert_true(nbmpi_wait_read("x", "auto", &wait));
	assert_int_equal(wait, NBMPI_WAIT_AUTO);
	assert_true(nbmpi_wait_read("x", "spin", &wait));
	assert_int_equal(wait, NBMPI_WAIT_SPIN);
	assert_true(nbmpi_wait_read("x", "yield", &wait));
	assert_int_equal(wait, NBMPI_WAIT_YIELD);
	assert_true(nbmpi_wait_read("x", "block", &wait));
	assert_int_equal(wait, NBMPI_WAIT_BLOCK);
	assert_true(nbmpi_where_read("x", "nic", &where));
	assert_int_equal(where, NBMPI_WHERE_NIC);
	assert_true(nbmpi_where_read("x", "host", &where));
	assert_int_equal(where, NBMPI_WHERE_HOST);
	assert_true(nbmpi_where_read("x", "auto", &where));
	assert_int_equal(where, NBMPI_WHERE_AUTO);
}

/* A text of n times 'a' as the value of a variable. */
static void set_long(const char *name, size_t n)
{
	char text[512];

	memset(text, 'a', n);
	text[n] = '\0';
	setenv(name, text, 1);
}

static void texts_have_a_longest(void **state)
{
	struct nbmpi_config config;

	set_long("NBAR_MPI_ALG", sizeof(config.alg) - 1);
	set_long("NBAR_MPI_NIC", sizeof(config.nic) - 1);
	assert_string_equal(read_env(&config), "");
	assert_int_equal(strlen(config.alg), sizeof(config.alg) - 1);
	assert_int_equal(strlen(config.nic), sizeof(config.nic) - 1);
	set_long("NBAR_MPI_ALG", sizeof(config.alg));
	assert_non_null(strstr(read_env(&config), "NBAR_MPI_ALG is too long: 255 characters"));
	assert_false(config.enable);
	assert_string_equal(config.alg, "auto");
	set_long("NBAR_MPI_ALG", 3);
	set_long("NBAR_MPI_NIC", sizeof(config.nic));
	assert_non_null(strstr(read_env(&config), "NBAR_MPI_NIC is too long"));
	assert_false(config.enable);
	assert_string_equal(config.nic, "");
}

/* --- names of NICs ---------------------------------------------------------------------------- */

static const char *name_of(const char *nic, uint32_t rank, size_t size)
{
	static char name[NBMPI_NIC_SIZE];
	struct nbmpi_config config;

	nbmpi_config_init(&config);
	strcpy(config.nic, nic);
	memset(name, '?', sizeof(name));
	return nbmpi_nic_name(&config, rank, name, size) ? name : NULL;
}

static void names_are_filled_in(void **state)
{
	assert_string_equal(name_of("", 5, 320), "");
	assert_string_equal(name_of("n1", 5, 320), "n1");
	assert_string_equal(name_of("n%r", 5, 320), "n5");
	assert_string_equal(name_of("%h-%r.%r", 4294967295u, 320),
			    "node7.site-4294967295.4294967295");
	assert_null(name_of("n%x", 5, 320));
	assert_null(name_of("n%", 5, 320));
	assert_null(name_of("%%", 5, 320));
	nameless = true;
	assert_string_equal(name_of("a%hb", 5, 320), "ab");
}

static void names_have_a_longest(void **state)
{
	assert_string_equal(name_of("abc", 0, 4), "abc");
	assert_null(name_of("abcd", 0, 4));
	assert_null(name_of("abcde", 0, 4));
	assert_string_equal(name_of("a%r", 10, 4), "a10");
	assert_null(name_of("a%r", 100, 4));
	assert_null(name_of("a%rb", 100, 4));
	assert_null(name_of("%h", 0, 10));
	assert_string_equal(name_of("%h", 0, 11), "node7.site");
}

/* --- the check of NIC and place --------------------------------------------------------------- */

static const char *check(const char *nic, enum nbmpi_where where, struct nbmpi_config *config)
{
	nbmpi_config_init(config);
	strcpy(config->nic, nic);
	config->where = where;
	said_begin();
	nbmpi_config_check(config, 3);
	return said_end();
}

static void nic_and_place_fit(void **state)
{
	struct nbmpi_config config;

	assert_string_equal(check("", NBMPI_WHERE_AUTO, &config), "");
	is_default(&config);
	assert_string_equal(check("n%r", NBMPI_WHERE_NIC, &config), "");
	assert_true(config.enable);
	assert_int_equal(config.where, NBMPI_WHERE_NIC);
	/* Each of the two sets the other. */
	assert_string_equal(check("host:wire=udp", NBMPI_WHERE_NIC, &config), "");
	assert_true(config.enable);
	assert_int_equal(config.where, NBMPI_WHERE_HOST);
	assert_string_equal(config.nic, "host:wire=udp");
	assert_string_equal(check("", NBMPI_WHERE_HOST, &config), "");
	assert_true(config.enable);
	assert_int_equal(config.where, NBMPI_WHERE_HOST);
	assert_string_equal(config.nic, "host:");
	assert_string_equal(nbmpi_config_nic(&config), "host:");
	assert_non_null(
		strstr(check("n0", NBMPI_WHERE_HOST, &config),
		       "NIC \"n0\" does not begin with host:; all barriers are left to MPI"));
	assert_false(config.enable);
}

static void the_nic_of_the_environment(void **state)
{
	struct nbmpi_config config;

	setenv("NBAR_NIC", "n4", 1);
	assert_non_null(strstr(check("", NBMPI_WHERE_HOST, &config), "NIC \"n4\" does not begin"));
	assert_false(config.enable);
	assert_string_equal(check("", NBMPI_WHERE_NIC, &config), "");
	assert_string_equal(nbmpi_config_nic(&config), "n4");
	assert_int_equal(config.where, NBMPI_WHERE_NIC);
	assert_string_equal(check("n5", NBMPI_WHERE_NIC, &config), "");
	assert_string_equal(nbmpi_config_nic(&config), "n5");
	setenv("NBAR_NIC", "host:name=x", 1);
	assert_string_equal(check("", NBMPI_WHERE_NIC, &config), "");
	assert_true(config.enable);
	assert_int_equal(config.where, NBMPI_WHERE_HOST);
	assert_string_equal(config.nic, "");
	assert_string_equal(check("", NBMPI_WHERE_HOST, &config), "");
	assert_true(config.enable);
}

static void a_bad_name_is_refused(void **state)
{
	struct nbmpi_config config;

	assert_non_null(
		strstr(check("n%q", NBMPI_WHERE_NIC, &config),
		       "\"n%q\" is not a NIC name: after % comes r (rank) or h (host's name), "
		       "and it has at most 319 characters"));
	assert_false(config.enable);
}

static void libefa_stays_for_nics_in_process(void **state)
{
	struct nbmpi_config config;

	nbmpi_config_init(&config);
	nbmpi_config_pin(&config);
	strcpy(config.nic, "n0");
	nbmpi_config_pin(&config);
	assert_int_equal(loaded.n, 0);
	strcpy(config.nic, "host:");
	nbmpi_config_pin(&config);
	assert_int_equal(loaded.n, 1);
	assert_string_equal(loaded.name, "libefa.so.1");
	assert_int_equal(loaded.flags, RTLD_LAZY | RTLD_NODELETE);
	strcpy(config.nic, "");
	config.where = NBMPI_WHERE_HOST;
	nbmpi_config_pin(&config);
	assert_int_equal(loaded.n, 2);
	config.enable = false;
	nbmpi_config_pin(&config);
	assert_int_equal(loaded.n, 2);
}

/* Each line is one write, so lines of different ranks do not mix. A socket keeps writes apart. */
static void a_line_is_one_write(void **state)
{
	char text[301], line[400];
	int pair[2], kept = fcntl(2, F_DUPFD_CLOEXEC, 10);

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(dup2(pair[1], 2), 2);
	nbmpi_say("%s", text);
	assert_int_equal(dup2(kept, 2), 2);
	assert_int_equal(recv(pair[0], line, sizeof(line), MSG_DONTWAIT),
			 strlen("nbar: ") + strlen(text) + 1);
	assert_memory_equal(line, "nbar: xxx", 9);
	close(kept);
	close(pair[0]);
	close(pair[1]);
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(defaults, clean),
	  cmocka_unit_test_setup(all_are_read, clean),
	  cmocka_unit_test_setup(each_value_is_checked, clean),
	  cmocka_unit_test_setup(the_numbers_are_those_of_the_text, clean),
	  cmocka_unit_test_setup(words_have_their_values, clean),
	  cmocka_unit_test_setup(texts_have_a_longest, clean),
	  cmocka_unit_test_setup(names_are_filled_in, clean),
	  cmocka_unit_test_setup(names_have_a_longest, clean),
	  cmocka_unit_test_setup(nic_and_place_fit, clean),
	  cmocka_unit_test_setup(the_nic_of_the_environment, clean),
	  cmocka_unit_test_setup(a_bad_name_is_refused, clean),
	  cmocka_unit_test_setup(libefa_stays_for_nics_in_process, clean),
	  cmocka_unit_test_setup(a_line_is_one_write, clean))
