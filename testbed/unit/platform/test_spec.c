/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_spec.c - descriptions of NICs, as in --nic: their limits, and each kind of fault.
 */
#include "unit/unit.h"

#include <errno.h>

#include "logged.h"
#include "settings.h"
#include "spec.h"

static int parse(const char *text, struct spec *s)
{
	return spec_parse("--nic", text, s);
}

static void keys_and_values(void **state)
{
	struct spec s;

	assert_int_equal(parse("", &s), 0);
	assert_int_equal(s.n, 0);
	assert_int_equal(parse("name=n0,bind=10.0.0.1:5,x=", &s), 0);
	assert_int_equal(s.n, 3);
	assert_string_equal(spec_value(&s, "name"), "n0");
	assert_string_equal(spec_value(&s, "bind"), "10.0.0.1:5");
	assert_string_equal(spec_value(&s, "x"), "");
	assert_null(spec_value(&s, "nam"));
	assert_null(spec_value(&s, "n0"));
	assert_int_equal(parse("a=b=c", &s), 0);
	assert_string_equal(spec_value(&s, "a"), "b=c");
}

static void bad_texts(void **state)
{
	static const char *const bad[] = { "a", "=b", "a=b,", "a=b,,c=d", ",", "a=b,c" };
	struct spec s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &s), -EINVAL);
	logged[0] = '\0';
	assert_int_equal(parse("a=b,,", &s), -EINVAL);
	logged_is("--nic a=b,,: not a list of KEY=VALUE, such as name=n0,wire=WIRE\n");
}

/* The last text and the last key that fit, and the next ones. */
static void limits(void **state)
{
	char text[SPEC_TEXT_MAX + 1] = "a=", message[128];
	struct spec s;

	memset(text + 2, 'x', SPEC_TEXT_MAX - 3);
	assert_int_equal(strlen(text), SPEC_TEXT_MAX - 1);
	assert_int_equal(parse(text, &s), 0);
	assert_int_equal(strlen(spec_value(&s, "a")), SPEC_TEXT_MAX - 3);
	strcat(text, "x");
	logged[0] = '\0';
	assert_int_equal(parse(text, &s), -EINVAL);
	snprintf(message, sizeof(message), "--nic %.40s...: it has more than %u characters\n", text,
		 SPEC_TEXT_MAX - 1);
	logged_is(message);
	*text = '\0';
	for (uint32_t i = 0; i < SPEC_KEYS_MAX; i++)
		sprintf(text + strlen(text), "%sk%u=%u", i ? "," : "", i, i);
	assert_int_equal(parse(text, &s), 0);
	assert_int_equal(s.n, SPEC_KEYS_MAX);
	assert_string_equal(spec_value(&s, "k15"), "15");
	strcat(text, ",k16=16");
	assert_int_equal(parse(text, &s), -EINVAL);
}

/* A wire that is loaded has its object; a wire that is not here is not in the list. */
static void loaded_wires(void **state)
{
	const struct wire *dpdk = NULL, *w = wires_next(NULL, WIRE_IN_DAEMON);
	int rc = wires_find("--nic", "dpdk", WIRE_IN_DAEMON, &dpdk);

	assert_true(rc == 0 ? dpdk->object && dpdk->ops == dpdk->object->ops : rc == -EINVAL);
	for (; w && strcmp(w->name, "dpdk") != 0; w = wires_next(w, WIRE_IN_DAEMON))
		assert_true(w->ops && (!w->object || w->ops == w->object->ops));
	assert_ptr_equal(w, dpdk);
	assert_int_equal(wires_find("--nic", "dpdk", WIRE_IN_PROCESS, &dpdk), -EINVAL);
}

static int check(const char *text)
{
	const struct wire *udp;
	struct spec s;

	assert_int_equal(wires_find("--nic", "udp", WIRE_IN_PROCESS, &udp), 0);
	assert_int_equal(parse(text, &s), 0);
	assert_int_equal(spec_fits(&s, udp, SETTING_KEY),
			 !strstr(text, "odd") && !strstr(text, "nam="));
	return spec_check("--nic", &s, udp, SETTING_KEY);
}

static void known_keys(void **state)
{
	assert_int_equal(check(""), 0);
	assert_int_equal(check("name=n0,wire=udp,bind=127.0.0.1:0"), 0);
	assert_int_equal(check("odd=1"), -EINVAL);
	assert_int_equal(check("nam=1"), -EINVAL);
	assert_int_equal(check("name=n0,odd=1"), -EINVAL);
	assert_int_equal(check("name="), -EINVAL);
	assert_int_equal(check("name=a,name=b"), -EINVAL);
	assert_int_equal(check("name=a,wire=udp,name=a"), -EINVAL);
	logged[0] = '\0';
	assert_int_equal(check("odd=1"), -EINVAL);
	logged_is("--nic: unknown key \"odd\"; a NIC on wire udp has: name, wire, bind, address\n");
	assert_int_equal(check("name="), -EINVAL);
	logged_is("--nic: key \"name\" needs one value: name=VALUE\n");
}

UNIT_MAIN(NULL, NULL, UNIT(keys_and_values), UNIT(bad_texts), UNIT(limits), UNIT(loaded_wires),
	  UNIT(known_keys))
