/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor_facts.c - looks at the machine: processors, memory, network, NICs, MPIs. See doctor.h.
 */
#include "doctor.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nbar_extra.h"
#include "nbar_host.h"

/* The path of a file of the machine, below the root that the facts are read from. */
static const char *facts_path_of(const struct doctor_facts *f, char out[PATH_MAX],
				 const char *format, ...)
{
	int n = snprintf(out, PATH_MAX, "%s", f->root);
	va_list args;

	va_start(args, format);
	if (n >= 0 && n < PATH_MAX)
		vsnprintf(out + n, (size_t)(PATH_MAX - n), format, args);
	va_end(args);
	return out;
}

/* Reads the first line of a file, without the newline; empty if the file cannot be read. */
static void read_line(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "re");

	out[0] = '\0';
	if (f && fgets(out, (int)size, f))
		out[strcspn(out, "\n")] = '\0';
	if (f)
		fclose(f);
}

static uint64_t facts_read_number(const char *path)
{
	char line[64];

	read_line(path, line, sizeof(line));
	return strtoull(line, NULL, 10);
}

/* Calls each(arg, name) for each entry of a directory, but . and .. */
static int each_entry(const char *path, void (*each)(struct doctor_facts *f, const char *name),
		      struct doctor_facts *f)
{
	DIR *d = opendir(path);

	if (!d)
		return errno;
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (e->d_name[0] != '.')
			each(f, e->d_name);
	closedir(d);
	return 0;
}

static void on_huge(struct doctor_facts *f, const char *name)
{
	unsigned long kb;
	char path[PATH_MAX];

	if (sscanf(name, "hugepages-%lukB", &kb) != 1)
		return;
	f->huge_mb += facts_read_number(facts_path_of(
			      f, path, "/sys/kernel/mm/hugepages/%s/free_hugepages", name)) *
		      kb / 1024;
}

static void on_link(struct doctor_facts *f, const char *name)
{
	struct doctor_link *l = &f->link[f->nlink];
	char path[PATH_MAX], state[32], target[PATH_MAX], cpus[4096];
	ssize_t n;

	if (f->nlink == DOCTOR_LINKS_MAX || strcmp(name, "lo") == 0)
		return;
	facts_path_of(f, path, "/sys/class/net/%s/operstate", name);
	read_line(path, state, sizeof(state));
	if (strcmp(state, "up") != 0)
		return;
	snprintf(l->name, sizeof(l->name), "%.31s", name);
	facts_path_of(f, path, "/sys/class/net/%s/mtu", name);
	l->mtu = (uint32_t)facts_read_number(path);
	facts_path_of(f, path, "/sys/class/net/%s/queues/rx-0/rps_cpus", name);
	read_line(path, cpus, sizeof(cpus));
	l->rps = cpus[strspn(cpus, "0,")] != '\0';
	facts_path_of(f, path, "/sys/class/net/%s/device/driver", name);
	n = readlink(path, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	snprintf(l->driver, sizeof(l->driver), "%.31s",
		 strrchr(target, '/') ? strrchr(target, '/') + 1 : "");
	f->nlink++;
}

static void on_rdma(struct doctor_facts *f, const char *name)
{
	(void)name;
	f->nrdma++;
}

static void ask_nic(struct doctor_nic *n, const char *nic)
{
	struct nbar_rep_nic_stat stat;

	n->error = nbar_nic_stat(nic, &stat);
	if (n->error)
		snprintf(n->text, sizeof(n->text), "%s", nbar_error());
	else
		snprintf(n->text, sizeof(n->text), "wire %s, address %s%s%s%s", stat.wire,
			 stat.address, stat.address_why[0] ? " (" : "", stat.address_why,
			 stat.address_why[0] ? ")" : "");
}

/* Opens an in-process NIC, as a program of MPI without a daemon does, to see its address. */
static void look_in_process(struct doctor_nic *n)
{
	struct nbar_port *port;

	snprintf(n->name, sizeof(n->name), "host:wire=udp");
	n->error = nbar_open(n->name, &port);
	if (n->error) {
		snprintf(n->text, sizeof(n->text), "%s", nbar_error());
		return;
	}
	ask_nic(n, n->name);
	nbar_close(port);
}

static void on_socket(struct doctor_facts *f, const char *name)
{
	struct doctor_nic *n = &f->nic[f->nnic];
	size_t length = strlen(name);
	char path[PATH_MAX];

	if (f->nnic == NBAR_NICS_MAX || length <= 5 || strcmp(name + length - 5, ".sock") != 0 ||
	    length - 5 >= sizeof(n->name))
		return;
	snprintf(n->name, sizeof(n->name), "%.*s", (int)(length - 5), name);
	snprintf(path, sizeof(path), "%s/%s", f->run_dir, name);
	ask_nic(n, path);
	f->nnic++;
}

/* True if the shell finds the command. */
static bool has_command(const char *name)
{
	const char *path = getenv("PATH");
	char *copy = path ? strdup(path) : NULL, *rest = copy, *dir, file[PATH_MAX];
	bool found = false;

	while (!found && (dir = strsep(&rest, ":"))) {
		snprintf(file, sizeof(file), "%s/%s", dir, name);
		found = access(file, X_OK) == 0;
	}
	free(copy);
	return found;
}

/* Runs a command, and takes the first line of its output that contains the text. */
static bool command_prints(const char *command, const char *text, char *out, size_t size)
{
	FILE *f = popen(command, "re");
	bool found = false;

	while (f && !found && fgets(out, (int)size, f))
		found = strstr(out, text);
	if (f)
		pclose(f);
	out[found ? strcspn(out, "\n") : 0] = '\0';
	return found;
}

static void look_mpi(struct doctor_facts *f)
{
	char line[PATH_MAX], file[PATH_MAX + 64];
	const char *home = getenv("HOME");

	f->openmpi = has_command("ompi_info");
	if (f->openmpi && command_prints("ompi_info --path pkglibdir --parsable 2>/dev/null",
					 "pkglibdir", line, sizeof(line))) {
		const char *dir = strrchr(line, ':');

		snprintf(file, sizeof(file), "%s/mca_coll_nbar.so", dir ? dir + 1 : "");
		f->component = access(file, R_OK) == 0;
	}
	snprintf(file, sizeof(file), "%s/.openmpi/components/mca_coll_nbar.so", home ? home : "");
	f->component |= access(file, R_OK) == 0;
	f->mpich = has_command("mpiexec.mpich") || has_command("mpichversion");
	f->preload = f->mpich && command_prints("/sbin/ldconfig -p 2>/dev/null",
						"libnbar-mpi-mpich.so", line, sizeof(line));
}

/* The capabilities of this process. */
static uint64_t facts_capabilities(const struct doctor_facts *f)
{
	char line[128], path[PATH_MAX];
	FILE *status = fopen(facts_path_of(f, path, "/proc/self/status"), "re");
	uint64_t set = 0;

	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, "CapEff:", 7) == 0)
			set = strtoull(line + 7, NULL, 16);
	if (status)
		fclose(status);
	return set;
}

static void look_limits(struct doctor_facts *f)
{
	const uint64_t bpf = 1ull << CAP_BPF | 1ull << CAP_NET_ADMIN | 1ull << CAP_NET_RAW;
	const uint64_t may = facts_capabilities(f);
	struct rlimit limit = { 0, 0 };
	char path[PATH_MAX], line[64];
	unsigned major, minor;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		f->cpus = (uint32_t)CPU_COUNT(&set);
	read_line(facts_path_of(f, path, "/sys/devices/system/cpu/isolated"), f->isolated,
		  sizeof(f->isolated));
	read_line(facts_path_of(f, path, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		  f->governor, sizeof(f->governor));
	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	f->memlock_kb = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur / 1024;
	f->rmem_max = facts_read_number(facts_path_of(f, path, "/proc/sys/net/core/rmem_max"));
	f->net_admin = may >> CAP_NET_ADMIN & 1;
	f->bpf = (may & bpf) == bpf;
	read_line(facts_path_of(f, path, "/proc/sys/kernel/osrelease"), line, sizeof(line));
	if (sscanf(line, "%u.%u", &major, &minor) == 2)
		f->kernel = major << 8 | minor;
}

void doctor_look_machine(const char *root, struct doctor_facts *f)
{
	char path[PATH_MAX];

	*f = (struct doctor_facts){ .root = root, .cpus = 1 };
	look_limits(f);
	each_entry(facts_path_of(f, path, "/sys/kernel/mm/hugepages"), on_huge, f);
	each_entry(facts_path_of(f, path, "/sys/class/net"), on_link, f);
	each_entry(facts_path_of(f, path, "/sys/class/infiniband"), on_rdma, f);
}

void doctor_look_link(struct doctor_link *l)
{
	struct ethtool_coalesce coalesce = { .cmd = ETHTOOL_GCOALESCE };
	struct ifreq r = { .ifr_data = (void *)&coalesce };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%.15s", l->name);
	l->rx_usecs = ioctl(fd, SIOCETHTOOL, &r) == 0 ? coalesce.rx_coalesce_usecs : 0;
	close(fd);
}

void doctor_look(struct doctor_facts *f)
{
	doctor_look_machine("", f);
	for (uint32_t i = 0; i < f->nlink; i++)
		doctor_look_link(&f->link[i]);
	f->kernel_wire = dlopen("libnbar-wire-kernel.so.0", RTLD_LAZY);
	(void)nbar_run_dir_find(f->run_dir, sizeof(f->run_dir));
	f->run_dir_error = each_entry(f->run_dir, on_socket, f);
	look_in_process(&f->in_process);
	look_mpi(f);
}
