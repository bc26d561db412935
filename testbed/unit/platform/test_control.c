/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_control.c - the control thread of a daemon, and the threads of its users: how long they
 * wait, what each event does, in which order all ends, and what each failed call leaves behind.
 */
#include "control_world.h"

#include <sys/stat.h>

#define MS UINT64_C(1000000)

static int begin(void **state)
{
	world_begin();
	return 0;
}

/* --- how long the control thread waits ----------------------------------------------------- */

static void it_waits_for(int ms)
{
	control_runs();
	assert_int_equal(world.wait_ms, ms);
	/* Also after an event. */
	world.wait_ms = 12345;
	write_to(world.wire[1].fd);
	control_runs();
	assert_int_equal(world.wait_ms, ms);
}

static void how_long_it_waits(void **state)
{
	static const struct {
		uint32_t alive_ms, users, lingers[2];
		int ms;
	} row[] = {
		{ 0, 0, { 0, 0 }, -1 },      { 400, 0, { 0, 0 }, 400 },
		{ 5000, 0, { 0, 0 }, 5000 }, { 0, 1, { 0, 0 }, 1000 },
		{ 400, 1, { 0, 0 }, 400 },   { 5000, 1, { 0, 0 }, 1000 },
		{ 0, 0, { 1, 0 }, 1000 },    { 0, 0, { 0, 1 }, 1000 },
		{ 400, 0, { 0, 1 }, 400 },   { 5000, 0, { 1, 0 }, 1000 },
		{ 1001, 0, { 0, 1 }, 1000 }, { 999, 1, { 0, 1 }, 999 },
	};
	struct control_user user = { .uid = 1 };

	assert_int_equal(control_begins(), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		world.control->alive_ms = row[i].alive_ms;
		world.control->user = row[i].users ? &user : NULL;
		for (uint32_t n = 0; n < 2; n++)
			world.nicd.nic[n]->device.nblock = row[i].lingers[n];
		it_waits_for(row[i].ms);
	}
	world.control->user = NULL;
	/* An open group does not linger. */
	world.control->alive_ms = 0;
	world.nicd.nic[1]->device.ngroup = 1;
	it_waits_for(-1);
	world.nicd.nic[1]->device.nblock = world.nicd.nic[1]->device.ngroup = 0;
	daemon_ends();
}

/* When nothing happens, the blocks of groups that have ended are freed, of each NIC. */
static void blocks_are_freed(void **state)
{
	assert_int_equal(control_begins(), 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct nbnic_device *d = &world.nicd.nic[i]->device;

		d->nblock = 1;
		d->released = __wrap_calloc(1, sizeof(struct nbnic_group));
		control_runs();
		assert_int_equal(d->nblock, 1);
		world.timeouts = 1;
		control_runs();
		assert_int_equal(d->nblock, 0);
	}
	daemon_ends();
}

/* Each sign of life shows that the polling thread takes calls, too. */
static void signs_of_life(void **state)
{
	static const struct {
		uint64_t later;
		uint32_t alive;
	} row[] = { { 0, 1 }, { 0, 1 },         { 399 * MS + 999999, 1 },
		    { 1, 2 }, { 1, 2 },         { 400 * MS - 2, 2 },
		    { 1, 3 }, { 4000 * MS, 4 }, { 0, 4 } };
	uint64_t reads;

	world.config.alive_ms = 400;
	assert_int_equal(control_begins(), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint32_t before = world.alive;

		world.clock += row[i].later;
		reads = world.reads;
		write_to(world.wire[1].fd);
		control_runs();
		assert_int_equal(world.alive, row[i].alive);
		assert_int_equal(world.reads - reads, world.alive - before);
	}
	world.config.alive_ms = 0;
	daemon_ends();
	assert_int_equal(world.alive, 4); /* not after its end was asked for */
	world_begin();
	assert_int_equal(control_begins(), 0);
	world.timeouts = 1;
	control_runs();
	assert_int_equal(world.alive, 0);
	daemon_ends();
}

/* --- events -------------------------------------------------------------------------------- */

static void events_go_where_they_belong(void **state)
{
	struct nbnic_port port = { .number = 3, .asked = true };
	struct nbnic_client client = { .port = &port, .pid = (uint32_t)getpid() };
	struct nbnic_device *d = &world.nicd.nic[1]->device;
	uint64_t n;
	int fd;

	assert_int_equal(control_begins(), 0);
	write_to(world.wire[0].fd); /* this wire is not served */
	control_runs();
	assert_int_equal(world.serves[0], 0);
	for (uint32_t i = 1; i < 3; i++) {
		write_to(world.wire[1].fd);
		control_runs();
		assert_int_equal(world.serves[1], i);
	}
	fd = connects(1);
	control_runs();
	assert_int_equal(world.control->nic[0].nclient, 0);
	assert_int_equal(world.control->nic[1].nclient, 1);
	close(fd);
	users_run();
	assert_int_equal(world.control->nic[1].nclient, 0);
	d->port[3] = &port;
	d->owner[3] = d->client = &client;
	write_to(world.nicd.look_fd);
	control_runs();
	assert_int_equal(port.host, NBAR_WHY_HOST_LATE);
	assert_int_equal(read(world.nicd.look_fd, &n, sizeof(n)), -1);
	d->port[3] = NULL;
	d->owner[3] = d->client = NULL;
	daemon_ends();
}

/* One burst takes 64 clients; then others have their turn. */
static void clients_come_in_bursts(void **state)
{
	static const uint32_t row[][2] = { { 1, 1 }, { 64, 1 }, { 65, 2 }, { 128, 2 }, { 129, 3 } };
	int fd[129];

	assert_int_equal(control_begins(), 0);
	control_runs();
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		world.waits = 0;
		for (uint32_t n = 0; n < row[i][0]; n++)
			fd[n] = connects(0);
		control_runs();
		assert_int_equal(world.control->nic[0].nclient, row[i][0]);
		assert_int_equal(world.waits, row[i][1] + 2);
		assert_int_equal(world.control->user->nclient, row[i][0]);
		for (uint32_t n = 0; n < row[i][0]; n++)
			close(fd[n]);
		users_run();
		assert_int_equal(world.control->nic[0].nclient, 0);
	}
	daemon_ends();
}

/* Of the sockets: the mode and the group, and nothing else. */
static void rights_of_sockets(void **state)
{
	struct stat st;

	world.config.group = getegid() == 0 ? 77 : getegid();
	assert_int_equal(control_begins(), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(stat(control_path(world.control, i), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		assert_int_equal(st.st_uid, geteuid());
		assert_int_equal(st.st_gid, world.config.group);
	}
	daemon_ends();
}

/* --- threads of users ---------------------------------------------------------------------- */

static void each_user_has_a_thread(void **state)
{
	static const uint32_t order[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 } };
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(1, &cpus);
	world.config.cpus = &cpus;
	assert_int_equal(control_begins(), 0);
	assert_int_equal(world.nthread, 2); /* of nobody, and the control thread */
	assert_true(CPU_EQUAL(&world.thread[1].cpus, &cpus));
	assert_false(world.thread[1].detached);
	assert_true(world.thread[0].detached);
	for (size_t t = 0; t < sizeof(order) / sizeof(order[0]); t++) {
		uint32_t before = world.nthread;
		int64_t blocks = world.blocks;
		uint32_t fds = entries("/proc/self/fd");
		int fd[3][2];

		for (uint32_t i = 0; i < 6; i++) {
			world.uid = 100 + i % 3;
			fd[i % 3][i / 3] = connects(i / 3);
			control_runs();
			assert_int_equal(world.nthread, before + (i < 3 ? i + 1 : 3));
		}
		for (uint32_t i = before; i < world.nthread; i++) {
			world.waits = 0;
			world.timeouts = 1;
			assert_false(runs(i));
			assert_int_equal(world.waits, 3); /* nothing woke it */
			assert_true(world.thread[i].detached);
			assert_string_equal(world.thread[i].name, "nbar-user");
			assert_int_equal(world.thread[i].stack, 256 << 10);
		}
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t n = order[t][i];

			close(fd[n][0]);
			all_run();
			assert_false(world.thread[before + n].over);
			assert_int_equal(world.control->nuser, 4 - i);
			close(fd[n][1]);
			all_run();
			assert_true(world.thread[before + n].over);
			assert_int_equal(world.control->nuser, 3 - i);
			for (const struct control_user *u = world.control->user; u; u = u->next)
				assert_int_not_equal(u->uid, 100 + n);
		}
		assert_null(world.control->user);
		assert_int_equal(world.blocks, blocks);
		assert_int_equal(entries("/proc/self/fd"), fds);
		world.nthread = before;
	}
	daemon_ends();
}

/* The descriptors of a dropped client are its user's until its thread has closed them. */
static void sockets_are_counted_until_they_are_closed(void **state)
{
	struct control_user *u;
	int fd[3];

	assert_int_equal(control_begins(), 0);
	for (uint32_t i = 0; i < 3; i++)
		fd[i] = connects(0);
	control_runs();
	u = world.control->user;
	assert_int_equal(u->nfd, 5); /* with an eventfd and an epoll set */
	control_client_drop(world.control->nic[0].client);
	control_client_drop(world.control->nic[0].client);
	assert_int_equal(u->nfd, 5);
	assert_int_equal(u->nclosing, 2);
	assert_int_equal(u->nclient, 1);
	u->nnap = 7;
	users_run();
	assert_int_equal(u->nfd, 3);
	assert_int_equal(u->nclosing, 0);
	assert_int_equal(u->nnap, 0);
	assert_int_equal(answered(fd[0]), NO_REPLY);
	assert_int_equal(answered(fd[1]), ENDED);
	assert_int_equal(answered(fd[2]), ENDED);
	for (uint32_t i = 0; i < 3; i++)
		close(fd[i]);
	daemon_ends();
}

/* A client for whom the daemon has no room learns it from the thread, and has no descriptor. */
static void a_refusal_is_sent(void **state)
{
	int fd, got;

	assert_int_equal(control_begins(), 0);
	assert_true(world.control->fds_own >= entries("/proc/self/fd"));
	world.limit.rlim_cur = world.control->fds_own;
	fd = connects(0);
	all_run();
	assert_int_equal(answered_fd(fd, &got), -NBAR_EMFILE);
	assert_int_equal(got, -1);
	assert_int_equal(answered(fd), ENDED);
	assert_null(world.control->user);
	close(fd);
	daemon_ends();
}

/* --- the end ------------------------------------------------------------------------------- */

static void what_ends_when(void **state)
{
	static const struct {
		uint64_t now; /* 300 ms before */
		time_t s;
		long ns;
	} row[] = { { UINT64_C(7000000001), 7, 300000001 },
		    { UINT64_C(7699999999), 7, 999999999 },
		    { UINT64_C(7700000000), 8, 0 },
		    { UINT64_C(7900000000), 8, 200000000 } };
	int fd[2], late;

	assert_int_equal(control_begins(), 0);
	assert_int_equal(entries(world.run_dir), 3);
	fd[0] = connects(0);
	fd[1] = connects(1);
	control_runs();
	late = connects(0);
	write_to(world.stop_fd);
	world.nicd.nic[0]->device.client->port = NULL;
	assert_true(control_runs());
	assert_int_equal(entries(world.run_dir), 1);
	assert_true(world.control->over);
	assert_true(world.nicd.nic[0]->device.wire_closed && world.nicd.nic[1]->device.wire_closed);
	assert_int_equal(world.nicd.stop_at, world.clock + 5 * MS);
	assert_int_equal(world.nicd.stop_latest, world.clock + 200 * MS);
	users_delayed = true;
	control_end(world.control); /* a user's thread is still running: control_end keeps the
				       memory that it uses */
	assert_int_equal(world.control->nuser, 2);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		world.clock = row[i].now;
		assert_false(control_users_end(world.control));
		assert_int_equal(world.wait_end.tv_sec, row[i].s);
		assert_int_equal(world.wait_end.tv_nsec, row[i].ns);
	}
	users_run();
	assert_int_equal(world.control->nuser, 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(answered(fd[i]), ENDED);
		close(fd[i]);
	}
	assert_int_equal(answered(late), ENDED);
	close(late);
	control_free(world.control);
	world_end();
}

/* --- calls that fail ----------------------------------------------------------------------- */

/* The life of a daemon in which one call fails: it does not start, and says why in one line; or it
 * lives. Nothing is left. Or one call makes descriptor 0. Returns false if fewer calls were made.
 */
static bool life(uint32_t fail_at, uint32_t zero_at)
{
	int fd[4], rc, in = dup(STDIN_FILENO);
	struct stat got, want;

	world_begin();
	world.fail_at = fail_at;
	world.zero_at = zero_at;
	rc = control_begins();
	if (rc < 0) {
		const char *end = strchr(logged, '\n');

		require(end && !end[1], "call %u: \"%s\"", fail_at, logged);
		require(strstr(logged, strerror(-rc)) == end - strlen(strerror(-rc)), "call %u: %s",
			fail_at, logged);
	} else {
		require(logged[0] == '\0', "call %u: \"%s\"", fail_at, logged);
		for (uint32_t i = 0; i < 4; i++) {
			world.uid = 100 + i / 2;
			fd[i] = connects(i % 2);
			all_run();
			for (const struct control_user *u = world.control->user; u; u = u->next)
				assert_int_not_equal(u->uid, NOT_A_UID);
			asks(fd[i], NBAR_OP_NIC_STAT, NULL, 0);
			all_run();
			asks(fd[i], NBAR_OP_PORT_OPEN,
			     &(struct nbar_req_port_open){ .port = NBAR_PORT_ANY }, 8);
			all_run();
			/* Whoever was not refused has a page. */
			while ((rc = answered(fd[i])) == 0)
				continue;
			require(rc != NO_REPLY || fail_at ||
					world.nicd.nic[i % 2]->device.nopen == 1 + i / 2,
				"call %u", zero_at);
		}
		for (uint32_t i = 0; i < 4; i += 3)
			close(fd[i]);
		all_run();
		write_to(world.stop_fd);
		require(control_runs(), "call %u", fail_at);
		control_end(world.control);
		for (uint32_t i = 1; i < 3; i++)
			close(fd[i]);
	}
	/* What took the place of stdin is closed. */
	assert_int_equal(fstat(in, &want), 0);
	if (fstat(STDIN_FILENO, &got) == 0)
		assert_true(got.st_dev == want.st_dev && got.st_ino == want.st_ino);
	dup2(in, STDIN_FILENO);
	world.fds--;
	close(in);
	world_end();
	return world.calls >= fail_at + zero_at;
}

static void a_failed_call_leaves_nothing_behind(void **state)
{
	uint32_t n = 1;

	while (life(n, 0))
		n++;
	assert_in_range(n, 50, 500);
}

/* A daemon may be started without stdin. */
static void descriptor_0_is_one_like_others(void **state)
{
	uint32_t n = 1;

	while (life(0, n))
		n++;
	assert_in_range(n, 50, 500);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

UNIT_MAIN(NULL, NULL, TEST(how_long_it_waits), TEST(blocks_are_freed), TEST(signs_of_life),
	  TEST(events_go_where_they_belong), TEST(clients_come_in_bursts), TEST(rights_of_sockets),
	  TEST(each_user_has_a_thread), TEST(sockets_are_counted_until_they_are_closed),
	  TEST(a_refusal_is_sent), TEST(what_ends_when), UNIT(a_failed_call_leaves_nothing_behind),
	  UNIT(descriptor_0_is_one_like_others))
