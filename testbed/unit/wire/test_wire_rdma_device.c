/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_rdma_device.c - names of NICs for remote hosts; which RDMA device, port, GID and MTU an
 * address gets; what an open that fails says and leaves behind.
 *
 * No device is needed: the test replaces the calls of libibverbs.
 */
#include "unit/unit.h"

#ifdef WIRES_VERBS
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rdma/rdma.h"

#define DEVICES 3u

static struct ibv_device device[DEVICES] = { { .name = "mlx0" },
					     { .name = "rxe0" },
					     { .name = "rxe1" } };
static struct ibv_device *list[] = { &device[0], &device[1], &device[2], NULL };
static struct ibv_context context[DEVICES];
static struct ibv_comp_channel channel;

static struct {
	bool no_list, no_channel, no_descriptor;
	int open[DEVICES]; /* errors */
	bool port_fails[DEVICES];
	int live; /* objects */
} fake;

int ibv_fork_init(void)
{
	return ENOSYS; /* nobody needs it */
}

struct ibv_device **verbs_devices(void)
{
	return fake.no_list ? NULL : list;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	const size_t i = (size_t)(d - device);

	errno = fake.open[i];
	if (fake.open[i])
		return NULL;
	context[i] = (struct ibv_context){ .device = d };
	fake.live++;
	return &context[i];
}

int ibv_close_device(struct ibv_context *c)
{
	fake.live--;
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	((struct ibv_port_attr *)compat)->active_mtu = port == 2 ? IBV_MTU_2048 : IBV_MTU_512;
	return fake.port_fails[c - context] ? EIO : 0;
}

/* mlx0 has no table. The others have the same; the entries that lie before the right one differ
 * from it in one thing. */
ssize_t _ibv_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *entry, size_t max,
			     uint32_t flags, size_t size)
{
	static const struct {
		const char *ip;
		uint32_t type;
	} row[] = {
		{ "::ffff:192.0.2.1", IBV_GID_TYPE_ROCE_V1 },
		{ "::ffff:192.0.2.2", IBV_GID_TYPE_ROCE_V2 },
		{ "::ffff:192.0.2.0", IBV_GID_TYPE_ROCE_V2 },
		{ "::ffff:192.0.2.1", IBV_GID_TYPE_ROCE_V2 },
		{ "2001:db8::1", IBV_GID_TYPE_ROCE_V2 },
	};
	const size_t n = sizeof(row) / sizeof(row[0]);

	assert_true(size == sizeof(*entry) && max >= n);
	if (c == &context[0])
		return -ENOSYS;
	for (uint32_t i = 0; i < n; i++) {
		entry[i] = (struct ibv_gid_entry){ .gid_index = 10 + i,
						   .port_num = i == 3 ? 2 : 1,
						   .gid_type = row[i].type };
		assert_int_equal(inet_pton(AF_INET6, row[i].ip, entry[i].gid.raw), 1);
	}
	return (ssize_t)n;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
	errno = fake.no_channel ? EMFILE : 0;
	if (fake.no_channel)
		return NULL;
	channel = (struct ibv_comp_channel){ .context = c,
					     .fd = fake.no_descriptor ? -1 : eventfd(0, 0) };
	fake.live++;
	return &channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	assert_ptr_equal(c, &channel);
	if (c->fd >= 0)
		close(c->fd);
	fake.live--;
	return 0;
}

/* --- tests ----------------------------------------------------------------------------------- */

static char text[NBAR_RDMA_TEXT];

static int begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	text[0] = 0;
	return 0;
}

static void names(void **state)
{
	static const struct {
		const char *text, *ip; /* NULL: refused */
		uint16_t port;
	} row[] = {
		{ "192.0.2.1:7100", "192.0.2.1", 7100 },
		{ "192.0.2.1:1", "192.0.2.1", 1 },
		{ "192.0.2.1:65535", "192.0.2.1", 65535 },
		{ "[2001:db8::1]:7100", "2001:db8::1", 7100 },
		{ "[::]:7100", "::", 7100 },
		{ "[2001:0db8:0000:0000:0000:0000:255.255.255.255]:7100", "2001:db8::ffff:ffff",
		  7100 }, /* no address is longer */
		{ "192.0.2.1:0", NULL, 0 },
		{ "192.0.2.1:65536", NULL, 0 },
		{ "192.0.2.1:7100x", NULL, 0 },
		{ "192.0.2.1:", NULL, 0 },
		{ "192.0.2.1", NULL, 0 },
		{ "2001:db8::1:7100", NULL, 0 },
		{ "[2001:db8::1:7100", NULL, 0 },
		{ "2001:db8::1]:7100", NULL, 0 },
		{ "[2001:db8::1]x:7100", NULL, 0 },
		{ "[]:7100", NULL, 0 },
		{ ":7100", NULL, 0 },
		{ "", NULL, 0 },
		{ "[2001:0db8:0000:0000:0000:0000:255.255.255.2555]:7100", NULL, 0 },
		{ "host.example:7100", NULL, 0 },
	};

	for (uint32_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		union rdma_name name;
		int rc = rdma_name_read(row[i].text, &name, text);
		bool v6 = name.any.sa_family == AF_INET6;
		char ip[INET6_ADDRSTRLEN];

		require(rc == (row[i].ip ? 0 : -EINVAL), "\"%s\": %d", row[i].text, rc);
		if (rc < 0) {
			assert_memory_equal(text, row[i].text, strlen(row[i].text));
			assert_non_null(strstr(text, ": not an IP address and a port"));
			continue;
		}
		assert_int_equal(v6, row[i].text[0] == '[');
		assert_int_equal(rdma_name_size(&name), v6 ? sizeof(name.in6) : sizeof(name.in));
		inet_ntop(name.any.sa_family,
			  v6 ? (const void *)&name.in6.sin6_addr : &name.in.sin_addr, ip,
			  sizeof(ip));
		assert_string_equal(ip, row[i].ip);
		assert_int_equal(ntohs(name.in.sin_port), row[i].port);
	}
}

static int opens(const char *name, struct nbar_rdma *d)
{
	*d = (struct nbar_rdma){ .mtu = 0 };
	assert_int_equal(rdma_name_read(name, &d->name, text), 0);
	return rdma_device_open(d, text);
}

static void closes(struct nbar_rdma *d)
{
	rdma_device_close(d);
	assert_true(!d->context && !d->channel);
	assert_int_equal(fake.live, 0);
}

static void the_device_of_an_address(void **state)
{
	struct nbar_rdma d;

	assert_int_equal(opens("192.0.2.1:7100", &d), 0);
	assert_ptr_equal(d.context, &context[1]);
	assert_true(d.port == 2 && d.gid_index == 13 && d.mtu == IBV_MTU_2048);
	assert_true(fcntl(d.channel->fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fake.live, 2); /* the device and the channel */
	closes(&d);
	assert_int_equal(opens("[2001:db8::1]:7100", &d), 0);
	assert_true(d.port == 1 && d.gid_index == 14 && d.mtu == IBV_MTU_512);
	closes(&d);
	/* The next device has the address, too. */
	for (uint32_t i = 0; i < 2; i++) {
		fake.open[1] = i == 0 ? EACCES : 0;
		fake.port_fails[1] = i == 1;
		assert_int_equal(opens("192.0.2.1:7100", &d), 0);
		assert_ptr_equal(d.context, &context[2]);
		closes(&d);
	}
}

static void what_fails(void **state)
{
	struct nbar_rdma d;

	assert_int_equal(opens("192.0.2.9:7100", &d), -ENODEV);
	assert_non_null(strstr(text, "has the address ::ffff:192.0.2.9; see rdma link"));
	assert_int_equal(fake.live, 0);
	fake.open[0] = fake.open[1] = fake.open[2] = EACCES;
	assert_int_equal(opens("[2001:db8::1]:7100", &d), -ENODEV);
	assert_non_null(strstr(text, "has the address 2001:db8::1: Permission denied; see"));
	assert_int_equal(fake.live, 0);
	fake.no_list = true;
	assert_int_equal(opens("192.0.2.1:7100", &d), -ENODEV);
	begin(NULL);
	fake.no_channel = true;
	assert_int_equal(opens("192.0.2.1:7100", &d), -EMFILE);
	assert_string_equal(text, "rxe0: Too many open files");
	assert_int_equal(fake.live, 0);
	begin(NULL);
	fake.no_descriptor = true;
	assert_int_equal(opens("192.0.2.1:7100", &d), -EBADF);
	assert_string_equal(text, "rxe0: Bad file descriptor");
	assert_int_equal(fake.live, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

UNIT_MAIN(NULL, NULL, TEST(names), TEST(the_device_of_an_address), TEST(what_fails))
#else
int main(void)
{
	puts("1..1\nok 1 - devices for remote hosts # SKIP this build has none: apt-get install libibverbs-dev");
	return 0;
}
#endif
