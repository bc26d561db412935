/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * break.c - breaks the queue pairs of another process, like a device that fails.
 *
 * verbs-break PID ud|line error|destroy: ud: queue pairs of datagrams; line: those of connections.
 * Moves them to the error state, or destroys them without the knowledge of the process. It copies
 * the process's descriptor of the device, so it needs root. Prints how many queue pairs it has
 * broken; exit status 1 if none.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define QKEY 0x6e626172u /* nbar's datagram queue pairs have this Q_Key, its connections do not */
#define HANDLES_MAX 256
#define DRIVERS_MAX 64u
#define BUSY_TRIES 5000u
#define BUSY_US 1000u

static uint32_t driver; /* number of the device's driver; each call must name it */

static int call(int fd, uint16_t method, const struct ib_uverbs_attr attr[3])
{
	union {
		struct ib_uverbs_ioctl_hdr head;
		char room[sizeof(struct ib_uverbs_ioctl_hdr) + 3 * sizeof(*attr)];
	} c;

	c.head = (struct ib_uverbs_ioctl_hdr){
		.length = sizeof(c),
		.object_id = UVERBS_OBJECT_DEVICE,
		.method_id = method,
		.num_attrs = 3,
		.driver_id = driver,
	};
	memcpy(c.head.attrs, attr, 3 * sizeof(*attr));
	return ioctl(fd, RDMA_VERBS_IOCTL, &c);
}

static struct ib_uverbs_attr attr(uint16_t id, const void *data, size_t size)
{
	return (struct ib_uverbs_attr){
		.attr_id = id,
		.len = (uint16_t)size,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = (uintptr_t)data,
	};
}

/* A command of the kernel's older interface, which applications send by write(). */
static int command(int fd, uint32_t which, const void *in, size_t in_size, void *out,
		   size_t out_size)
{
	struct ib_uverbs_attr a[3] = {
		attr(UVERBS_ATTR_CORE_IN, in, in_size),
		attr(UVERBS_ATTR_CORE_OUT, out, out_size),
		attr(UVERBS_ATTR_WRITE_CMD, NULL, sizeof(uint64_t)),
	};

	a[2].data = which;
	return call(fd, UVERBS_METHOD_INVOKE_WRITE, a);
}

/* Returns the number of queue pairs, and sets their handles. Finds the driver by trying all
 * numbers. */
static uint32_t queue_pairs(int fd, uint32_t handle[HANDLES_MAX])
{
	uint32_t n = 0;
	struct ib_uverbs_attr a[3] = {
		attr(UVERBS_ATTR_INFO_OBJECT_ID, NULL, sizeof(uint64_t)),
		attr(UVERBS_ATTR_INFO_TOTAL_HANDLES, &n, sizeof(n)),
		attr(UVERBS_ATTR_INFO_HANDLES_LIST, handle, HANDLES_MAX * sizeof(*handle)),
	};

	a[0].data = UVERBS_OBJECT_QP;
	for (driver = 0; driver < DRIVERS_MAX; driver++)
		if (call(fd, UVERBS_METHOD_INFO_HANDLES, a) == 0)
			return n;
	perror("list of queue pairs");
	return 0;
}

static bool is_ud(int fd, uint32_t handle)
{
	struct ib_uverbs_query_qp in = { .qp_handle = handle, .attr_mask = IBV_QP_QKEY };
	struct ib_uverbs_query_qp_resp out = { .qkey = 0 };

	if (command(fd, IB_USER_VERBS_CMD_QUERY_QP, &in, sizeof(in), &out, sizeof(out)) < 0)
		perror("query");
	return out.qkey == QKEY;
}

static int put_into_error(int fd, uint32_t handle)
{
	struct ib_uverbs_modify_qp in = {
		.qp_handle = handle,
		.attr_mask = IBV_QP_STATE,
		.qp_state = IBV_QPS_ERR,
	};
	uint64_t out;

	return command(fd, IB_USER_VERBS_CMD_MODIFY_QP, &in, sizeof(in), &out, 0);
}

static int destroy(int fd, uint32_t handle)
{
	struct ib_uverbs_destroy_qp in = { .qp_handle = handle };
	struct ib_uverbs_destroy_qp_resp out;

	return command(fd, IB_USER_VERBS_CMD_DESTROY_QP, &in, sizeof(in), &out, sizeof(out));
}

/* The kernel refuses while a call of the other process uses the queue pair. */
static int when_free(int (*how)(int fd, uint32_t handle), int fd, uint32_t handle)
{
	int rc = how(fd, handle);

	for (uint32_t i = 0; i < BUSY_TRIES && rc < 0 && errno == EBUSY; i++) {
		usleep(BUSY_US);
		rc = how(fd, handle);
	}
	return rc;
}

/* Breaks the queue pairs of one descriptor. Returns how many it has broken. */
static uint32_t break_all(int fd, bool ud, int (*how)(int fd, uint32_t handle))
{
	uint32_t handle[HANDLES_MAX], n = queue_pairs(fd, handle), done = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (is_ud(fd, handle[i]) != ud)
			continue;
		if (when_free(how, fd, handle[i]) == 0)
			done++;
		else
			perror("queue pair");
	}
	return done;
}

/* Returns a copy of descriptor `number` of the other process; -1: this is no RDMA device. */
static int taken(int pidfd, const char *folder, const char *number)
{
	char path[300], to[64] = "";

	snprintf(path, sizeof(path), "%s/%s", folder, number);
	if (readlink(path, to, sizeof(to) - 1) < 0 || !strstr(to, "/infiniband/uverbs"))
		return -1;
	return (int)syscall(SYS_pidfd_getfd, pidfd, atoi(number), 0);
}

int main(int argc, char **argv)
{
	uint32_t n = 0;
	char folder[32];
	int pidfd;
	DIR *d;

	if (argc != 4) {
		fputs("usage: verbs-break PID ud|line error|destroy\n", stderr);
		return 2;
	}
	snprintf(folder, sizeof(folder), "/proc/%d/fd", atoi(argv[1]));
	pidfd = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
	d = opendir(folder);
	if (pidfd < 0 || !d) {
		perror(folder);
		return 1;
	}
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		int fd = taken(pidfd, folder, e->d_name);

		if (fd >= 0)
			n += break_all(fd, strcmp(argv[2], "ud") == 0,
				       strcmp(argv[3], "destroy") == 0 ? destroy : put_into_error);
	}
	printf("broken: %u\n", n);
	return n == 0;
}
