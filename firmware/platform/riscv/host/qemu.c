/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qemu.c - the machine: QEMU's command line, its start and its end.
 *
 * Called by nic.c and main.c. QEMU gets only the descriptors of the BARs, the bell and the standard
 * streams. QEMU ends when this process ends in any way.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "nic.h"

#define ARGS_MAX 64
#define TEXT_MAX 4096u /* of all arguments that are put together here */

struct command {
	int argc;
	char *argv[ARGS_MAX];
	char text[TEXT_MAX];
	size_t used;
};

static void add(struct command *c, const char *fixed)
{
	c->argv[c->argc++] = (char *)(uintptr_t)fixed;
}

__attribute__((format(printf, 2, 3))) static void addf(struct command *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	c->argv[c->argc++] = c->text + c->used;
	c->used += (size_t)vsnprintf(c->text + c->used, TEXT_MAX - c->used, format, args) + 1;
	va_end(args);
}

static void add_bar(struct command *c, const char *id, int fd, unsigned bytes, unsigned device)
{
	add(c, "-object");
	addf(c, "memory-backend-file,id=%s,share=on,size=%u,mem-path=/proc/self/fd/%d", id, bytes,
	     fd);
	add(c, "-device");
	addf(c, "ivshmem-plain,memdev=%s,addr=%u", id, device);
}

/* The machine has as much memory as link.ld says. A second hart makes QEMU carry out fences. */
static void command_make(struct command *c, const struct nic *n, int bell)
{
	static const char *const fixed[] = {
		"-M",          "virt",       "-m",       "256K",
		"-smp",        "2",          "-bios",    "none",
		"-display",    "none",       "-monitor", "none",
		"-nodefaults", "-no-reboot", "-global",  "virtio-mmio.force-legacy=false"
	};
	char id[16];

	add(c, n->options->qemu);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		add(c, fixed[i]);
	add(c, "-kernel");
	add(c, n->options->image);
	add(c, "-chardev");
	addf(c, "socket,id=bell,fd=%d", bell);
	add(c, "-serial");
	add(c, "chardev:bell");
	add(c, "-netdev");
	add(c, n->options->netdev);
	add(c, "-device");
	addf(c, "virtio-net-device,netdev=w,mac=%s", n->options->mac);
	add_bar(c, "control", n->control_fd, BARED_CONTROL_BYTES, BARED_PCI_CONTROL);
	for (uint32_t i = 0; i < n->options->set.nport; i++) {
		snprintf(id, sizeof(id), "page%u", i);
		add_bar(c, id, n->page_fd[i], BARED_PAGE_BYTES, BARED_PCI_PAGE + i);
	}
	c->argv[c->argc] = NULL;
}

static void keep_over_exec(int fd)
{
	fcntl(fd, F_SETFD, 0);
}

/* Runs QEMU in the child process. Returns only if execvp() fails. */
static void qemu_run(const struct nic *n, struct command *c, int bell, pid_t parent)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setpgid(0, 0); /* Ctrl-C is for us: we end the machine in good order */
	keep_over_exec(bell);
	keep_over_exec(n->control_fd);
	for (uint32_t i = 0; i < n->options->set.nport; i++)
		keep_over_exec(n->page_fd[i]);
	execvp(c->argv[0], c->argv);
}

static int not_started(const struct nic *n, int err)
{
	const char *qemu = n->options->qemu;

	if (err == ENOENT)
		log_error("%s is not here: install it (Debian: apt-get install qemu-system-misc), "
			  "or name it with --qemu",
			  qemu);
	else
		log_error("%s does not start: %s", qemu, strerror(err));
	return -err;
}

int qemu_start(struct nic *n)
{
	static struct command c;
	int bell[2], told[2], err = 0;
	pid_t parent = getpid();

	if (access(n->options->image, R_OK) < 0) {
		err = errno;
		log_error("no image %s: %s; build it with `make` where gcc-riscv64-unknown-elf is "
			  "installed, or name it with --image",
			  n->options->image, strerror(err));
		return -err;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bell) < 0 ||
	    pipe2(told, O_CLOEXEC) < 0)
		return not_started(n, errno);
	command_make(&c, n, bell[1]);
	n->qemu = fork();
	if (n->qemu == 0) {
		qemu_run(n, &c, bell[1], parent);
		err = errno;
		(void)!write(told[1], &err, sizeof(err));
		_exit(127);
	}
	if (n->qemu < 0)
		err = errno;
	close(bell[1]);
	close(told[1]);
	n->bell = bell[0];
	if (n->qemu > 0)
		(void)!read(told[0], &err, sizeof(err)); /* end of file: QEMU runs */
	close(told[0]);
	if (err == 0)
		return 0;
	if (n->qemu > 0)
		waitpid(n->qemu, NULL, 0);
	n->qemu = 0;
	return not_started(n, err);
}

/* True if the process ends within this time. */
static bool ends(pid_t pid, int wait_ms)
{
	struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int rc = poll(&p, p.fd >= 0, wait_ms);

	if (p.fd >= 0)
		close(p.fd);
	return rc > 0;
}

const char *qemu_end(struct nic *n, int wait_ms)
{
	static char text[80];
	bool killed = false;
	int status;

	if (n->qemu <= 0)
		return NULL;
	if (!ends(n->qemu, wait_ms)) {
		killed = true;
		kill(n->qemu, SIGKILL);
	}
	while (waitpid(n->qemu, &status, 0) < 0 && errno == EINTR)
		;
	n->qemu = 0;
	if (killed)
		return NULL;
	if (WIFSIGNALED(status)) {
		snprintf(text, sizeof(text), "QEMU was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
		return text;
	}
	if (WEXITSTATUS(status) == 0)
		return NULL;
	snprintf(text, sizeof(text), "QEMU ended with status %d; what it said is above",
		 WEXITSTATUS(status));
	return text;
}
