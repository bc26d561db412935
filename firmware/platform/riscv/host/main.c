/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - nbar-bared, the host process of a NIC that is a RISC-V machine: it owns the control
 * socket, the memory of the BARs and the emulator.
 *
 * When this process ends, the emulator ends, and the reverse; nothing restarts. The image does the
 * work of the NIC; bared.h has the protocol between this process and the image.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon.h"
#include "log.h"
#include "rundir.h"
#include "serve.h"

#define END_MS 1000 /* QEMU has this time to end, after the NIC has stopped */

/* Serves clients, when the machine is ready. */
static int bared_serve(struct nic *n, int stop_fd)
{
	struct rundir_socket socket;
	int fd = serve_listen(n->options, &socket), rc;

	if (fd < 0)
		return fd;
	n->control->text[sizeof(n->control->text) - 1] = '\0';
	printf("nic %s ready: wire virtio, address %s, socket %s\n", n->options->set.name,
	       n->control->text, socket.path);
	fflush(stdout);
	rc = serve_run(n, fd, stop_fd);
	rundir_remove(&socket);
	close(fd);
	return rc;
}

int main(int argc, char **argv)
{
	static struct options o;
	static struct nic n = { .control_fd = -1, .bell = -1 };
	int rc = options_parse(argc, argv, &o), lock, stop_fd;

	if (rc != 0)
		return rc > 0 ? 0 : EXIT_USAGE;
	memset(n.page_fd, -1, sizeof(n.page_fd));
	lock = rundir_take(o.set.run_dir);
	if (lock < 0)
		return 1;
	stop_fd = daemon_signals();
	if (stop_fd < 0)
		log_error("cannot wait for signals: %s", strerror(errno));
	rc = stop_fd < 0 ? 1 : nic_memory(&n, &o);
	if (rc == 0)
		rc = nic_start(&n, stop_fd);
	if (rc == 0)
		rc = bared_serve(&n, stop_fd);
	qemu_end(&n, rc == 0 ? END_MS : 0);
	nic_free(&n);
	close(stop_fd);
	close(lock);
	return rc == 0 ? 0 : 1;
}
