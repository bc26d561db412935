/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_doctor.c - findings of nbar doctor: each bad fact has a finding, and each finding has a next
 * step.
 */
#include "unit/unit.h"

#include <errno.h>
#include <ftw.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

/* A machine without a finding. */
static struct doctor_facts good(void)
{
	return (struct doctor_facts){
		.cpus = 8,
		.isolated = "7",
		.governor = "performance",
		.huge_mb = 1024,
		.memlock_kb = UINT64_MAX,
		.rmem_max = 1 << 30,
		.bpf = true,
		.kernel = 0x606,
		.kernel_wire = true,
		.nlink = 1,
		.link = { { "eth0", "ixgbe", 1500, 0, false } },
		.run_dir = "/run/nbar",
		.nnic = 1,
		.nic = { { "n0", 0, "" } },
		.openmpi = true,
		.component = true,
		.mpich = true,
		.preload = true,
	};
}

static const struct doctor_finding *worst(const struct doctor_facts *f, struct doctor_report *r)
{
	const struct doctor_finding *worst = NULL;

	doctor_judge(f, r);
	for (uint32_t i = 0; i < r->n; i++)
		if (r->finding[i].grade != DOCTOR_GOOD &&
		    (!worst || r->finding[i].grade > worst->grade))
			worst = &r->finding[i];
	return worst;
}

static void nothing_to_do(void **state)
{
	struct doctor_facts f = good();
	struct doctor_report r;

	assert_null(worst(&f, &r));
	assert_true(r.n >= 6);
	for (uint32_t i = 0; i < r.n; i++)
		assert_string_equal(r.finding[i].next, "");
}

static void expect(const struct doctor_facts *f, enum doctor_grade grade, const char *subject,
		   const char *text, const char *next)
{
	struct doctor_report r;
	const struct doctor_finding *w = worst(f, &r);

	assert_non_null(w);
	assert_int_equal(w->grade, grade);
	assert_string_equal(w->subject, subject);
	assert_non_null(strstr(w->text, text));
	assert_non_null(strstr(w->next, next));
}

static void no_nic(void **state)
{
	struct doctor_facts f = good();

	f.nnic = 0;
	expect(&f, DOCTOR_BAD, "run directory", "has no NIC", "nbar-nicd --nics 4");
	f.run_dir_error = ENOENT;
	expect(&f, DOCTOR_BAD, "run directory", "No such file", "NBAR_RUN_DIR");
	f.run_dir_error = EACCES;
	expect(&f, DOCTOR_BAD, "run directory", "no permission", "--mode 0660");
	f = good();
	f.nic[0].error = -EPROTO;
	strcpy(f.nic[0].text, "speaks version 1");
	expect(&f, DOCTOR_BAD, "NIC", "speaks version 1", "");
}

static bool says(const struct doctor_facts *f, const char *text)
{
	struct doctor_report r;

	doctor_judge(f, &r);
	for (uint32_t i = 0; i < r.n; i++)
		if (strstr(r.finding[i].text, text))
			return true;
	return false;
}

/* The address of each NIC, and why it has this address. */
static void addresses(void **state)
{
	struct doctor_facts f = good();

	f.nnic = 2;
	f.nic[1] = (struct doctor_nic){ "n1", 0, "wire udp, address 10.0.0.1:7 (as bind= says)" };
	f.in_process = (struct doctor_nic){ "host:wire=udp", 0, "address 10.0.0.2:9 (eth0)" };
	assert_true(says(&f, "n1 answers, and is of this version: wire udp, address 10.0.0.1:7 "
			     "(as bind= says)"));
	assert_true(says(&f, "in-process NIC host:wire=udp: address 10.0.0.2:9 (eth0)"));
	f.in_process.error = -ELIBACC;
	strcpy(f.in_process.text, "needs a library of nbar");
	expect(&f, DOCTOR_SLOW, "NIC", "no in-process NIC: needs a library", "");
}

static void slow(void **state)
{
	struct doctor_facts f = good();

	f.cpus = 1;
	expect(&f, DOCTOR_SLOW, "processors", "free while barriers run", "host:wire=udp");
	f = good();
	f.isolated[0] = '\0';
	expect(&f, DOCTOR_SLOW, "processors", "none isolated", "isolcpus=7");
	f = good();
	strcpy(f.governor, "powersave");
	expect(&f, DOCTOR_SLOW, "frequency", "powersave", "cpupower");
	f = good();
	f.huge_mb = 2;
	expect(&f, DOCTOR_SLOW, "hugepages", "2 MB", "vm.nr_hugepages");
	f = good();
	f.rmem_max = 212992;
	expect(&f, DOCTOR_SLOW, "receive queue", "212992", "net.core.rmem_max");
	f.net_admin = true;
	assert_null(worst(&f, &(struct doctor_report){ 0 }));
	f = good();
	f.nlink = 0;
	expect(&f, DOCTOR_SLOW, "network", "no interface", "ip link set");
	f = good();
	f.component = false;
	expect(&f, DOCTOR_SLOW, "Open MPI", "coll/nbar", "make install");
	f = good();
	f.preload = false;
	expect(&f, DOCTOR_SLOW, "MPICH", "not installed", "ldconfig");
}

/* A limit of locked memory counts only on a machine with an RDMA device. */
static void locked_memory(void **state)
{
	struct doctor_facts f = good();

	f.memlock_kb = 64;
	assert_null(worst(&f, &(struct doctor_report){ 0 }));
	f.nrdma = 1;
	expect(&f, DOCTOR_SLOW, "locked memory", "64 KB", "memlock");
}

/* Even with the most findings, none is written beyond the end of the array. */
static void many(void **state)
{
	static struct doctor_facts f;
	static struct doctor_report r;

	f = good();
	f.nnic = NBAR_NICS_MAX;
	f.nlink = DOCTOR_LINKS_MAX;
	f.nrdma = 1;
	for (uint32_t i = 0; i < f.nnic; i++) {
		f.nic[i].error = -EIO;
		memset(f.nic[i].name, 'n', sizeof(f.nic[i].name) - 1);
		memset(f.nic[i].text, 't', sizeof(f.nic[i].text) - 1);
	}
	doctor_judge(&f, &r);
	assert_true(r.n > NBAR_NICS_MAX + DOCTOR_LINKS_MAX && r.n <= DOCTOR_FINDINGS_MAX);
}

/* --- facts of a prepared machine ---------------------------------------------------------- */

static char root[] = "/tmp/nbar-doctor.XXXXXX";

/* Writes a file below the root, and makes its folders. */
static void put(const char *path, const char *text)
{
	char full[300];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *c = full + sizeof(root); (c = strchr(c, '/')); *c++ = '/') {
		*c = '\0';
		assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Each value in its unit, and the second of each kind. */
static void facts_of_a_machine(void **state)
{
	struct rlimit old, limit;
	struct doctor_facts f;
	char path[300];

	put("/sys/devices/system/cpu/isolated", "2-3,7\n");
	put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
	put("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "5\n");
	put("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "3\n");
	put("/proc/sys/net/core/rmem_max", "212992\n");
	put("/proc/self/status",
	    "Name:\tx\nCapPrm:\t0000000000001000\nCapEff:\t0000000000000fff\n");
	put("/proc/sys/kernel/osrelease", "6.12.48+deb13-amd64\n");
	put("/sys/class/net/eth0/queues/rx-0/rps_cpus", "00,00000000\n");
	put("/sys/class/net/eth2/queues/rx-0/rps_cpus",
	    "00000000,00000000,00000000,00000000,00000100\n");
	put("/sys/class/net/lo/operstate", "up\n");
	put("/sys/class/net/eth0/operstate", "up\n");
	put("/sys/class/net/eth0/mtu", "1500\n");
	put("/sys/class/net/eth1/operstate", "down\n");
	put("/sys/class/net/eth1/mtu", "1400\n");
	put("/sys/class/net/eth2/operstate", "up\n");
	put("/sys/class/net/eth2/mtu", "9000\n");
	put("/sys/class/net/eth2/device/x", "");
	snprintf(path, sizeof(path), "%s/sys/class/net/eth2/device/driver", root);
	assert_int_equal(symlink("../../../bus/pci/drivers/mlx5_core", path), 0);
	put("/sys/class/infiniband/mlx5_0/x", "");
	put("/sys/class/infiniband/mlx5_1/x", "");
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	limit = old;
	limit.rlim_cur = 65536;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	doctor_look_machine(root, &f);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &old), 0);

	assert_string_equal(f.isolated, "2-3,7");
	assert_string_equal(f.governor, "powersave");
	assert_int_equal(f.huge_mb, 5 * 2 + 3 * 1024);
	assert_int_equal(f.memlock_kb, 64);
	assert_int_equal(f.rmem_max, 212992);
	assert_false(f.net_admin); /* effective, not permitted; bit 12, not 11 */
	assert_int_equal(f.nrdma, 2);
	assert_int_equal(f.nlink, 2);
	bool second = strcmp(f.link[1].name, "eth2") == 0; /* in any order */

	assert_string_equal(f.link[second].name, "eth2");
	assert_int_equal(f.link[second].mtu, 9000);
	assert_string_equal(f.link[second].driver, "mlx5_core");
	assert_string_equal(f.link[!second].name, "eth0");
	assert_int_equal(f.link[!second].mtu, 1500);
	assert_string_equal(f.link[!second].driver, "");
	assert_true(f.link[second].rps && !f.link[!second].rps);
	assert_int_equal(f.kernel, 6 << 8 | 12);

	put("/proc/self/status", "CapInh:\t0000000000000000\nCapEff:\t0000000000001000\n");
	doctor_look_machine(root, &f);
	assert_true(f.net_admin && !f.bpf);
	put("/proc/self/status", "CapEff:\t0000008000003000\n");
	doctor_look_machine(root, &f);
	assert_true(f.net_admin && f.bpf);
	if (old.rlim_cur == RLIM_INFINITY)
		assert_true(f.memlock_kb == UINT64_MAX);
}

/* A machine that shows nothing. */
static void facts_of_an_empty_machine(void **state)
{
	struct doctor_facts f;

	doctor_look_machine("/nowhere", &f);
	assert_true(f.cpus >= 1);
	assert_string_equal(f.isolated, "");
	assert_string_equal(f.governor, "");
	assert_int_equal(f.huge_mb, 0);
	assert_int_equal(f.rmem_max, 0);
	assert_int_equal(f.nlink + f.nrdma + f.nnic, 0);
	assert_false(f.net_admin || f.bpf);
	assert_int_equal(f.kernel, 0);
}

static int error_of_ioctl;
static char asked_of[IFNAMSIZ];

int __wrap_ioctl(int fd, unsigned long request, struct ifreq *r)
{
	struct ethtool_coalesce *c = (void *)r->ifr_data;

	assert_true(fd >= 0 && request == SIOCETHTOOL && c->cmd == ETHTOOL_GCOALESCE);
	snprintf(asked_of, sizeof(asked_of), "%s", r->ifr_name);
	c->rx_coalesce_usecs = 8;
	return error_of_ioctl;
}

/* Many devices hold no frames back, and refuse the question. */
static void facts_of_a_device(void **state)
{
	struct doctor_link l = { .name = "eth2" };

	doctor_look_link(&l);
	assert_int_equal(l.rx_usecs, 8);
	assert_string_equal(asked_of, "eth2");
	error_of_ioctl = -1;
	doctor_look_link(&l);
	assert_int_equal(l.rx_usecs, 0);
}

static void put_program(const char *path, const char *text)
{
	char full[300];

	put(path, text);
	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_int_equal(chmod(full, 0700), 0);
}

static void set_below(const char *variable, const char *path)
{
	char full[300];

	snprintf(full, sizeof(full), "%s%s", root, path);
	setenv(variable, full, 1);
}

/* NICs that do not answer, and MPIs by their programs. */
static void facts_of_programs(void **state)
{
	struct doctor_facts f;
	char told[400];

	set_below("NBAR_RUN_DIR", "/run");
	set_below("HOME", "/home");
	set_below("PATH", "/bin");
	put("/run/n7.sock", "");
	put("/run/nicd.lock", "");
	put("/run/a-name-that-is-too-long-for-any-nic.sock", "");
	put("/bin/mpichversion", ""); /* no program */
	doctor_look(&f);
	assert_int_equal(f.run_dir_error, 0);
	assert_int_equal(f.nnic, 1);
	assert_string_equal(f.nic[0].name, "n7");
	assert_true(f.nic[0].error < 0);
	assert_non_null(strstr(f.nic[0].text, "/run/n7.sock"));
	assert_non_null(
		strstr(f.in_process.text, f.in_process.error ? "host:wire=udp" : "wire udp"));
	assert_false(f.openmpi || f.component || f.mpich || f.preload);

	/* The component of nbar is where this Open MPI says, or in the user's folder. */
	snprintf(told, sizeof(told), "#!/bin/sh\necho path:none:/\necho path:pkglibdir:%s/lib\n",
		 root);
	put_program("/bin/ompi_info", told);
	put_program("/bin/mpichversion", "");
	doctor_look(&f);
	assert_true(f.openmpi && f.mpich && !f.component);
	put("/lib/mca_coll_nbar.so", "");
	doctor_look(&f);
	assert_true(f.component);
	put_program("/bin/ompi_info", "#!/bin/sh\nexit 1\n");
	doctor_look(&f);
	assert_true(f.openmpi && !f.component);
	put("/home/.openmpi/components/mca_coll_nbar.so", "");
	doctor_look(&f);
	assert_true(f.component);

	set_below("NBAR_RUN_DIR", "/none");
	doctor_look(&f);
	assert_int_equal(f.run_dir_error, ENOENT);
	assert_int_equal(f.nnic, 0);
}

static void grades_have_names(void **state)
{
	assert_string_equal(doctor_grade_name(DOCTOR_GOOD), "ok");
	assert_string_equal(doctor_grade_name(DOCTOR_SLOW), "slow");
	assert_string_equal(doctor_grade_name(DOCTOR_BAD), "bad");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

/* All findings, a line each: grade, subject, text, and the next step after "|". */
static void findings_are(const struct doctor_facts *f, const char *want)
{
	static char text[8192];
	struct doctor_report r;

	text[0] = '\0';
	doctor_judge(f, &r);
	for (uint32_t i = 0; i < r.n; i++) {
		const struct doctor_finding *x = &r.finding[i];
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "%s %s: %s%s%s\n", doctor_grade_name(x->grade),
			 x->subject, x->text, *x->next ? "|" : "", x->next);
	}
	assert_string_equal(text, want);
}

static void all_that_is_good(void **state)
{
	struct doctor_facts f = good();

	f.nrdma = 2;
	strcpy(f.nic[0].text, "udp");
	strcpy(f.in_process.name, "host");
	strcpy(f.in_process.text, "shm");
	f.link[0].driver[0] = '\0';
	findings_are(&f,
		     "ok NIC: n0 answers, and is of this version: udp\n"
		     "ok NIC: in-process NIC host: shm\n"
		     "ok network: eth0: up, driver unknown, MTU 1500\n"
		     "ok RDMA: 2 devices: wire=verbs can use them\n"
		     "ok wire kernel: can run barriers without a processor: nbar-nicd --nic "
		     "wire=kernel,dev=DEV\n"
		     "ok processors: 8, isolated: 7\n"
		     "ok hugepages: 1024 MB free\n"
		     "ok receive queue: large enough for bursts of large groups\n"
		     "ok Open MPI: has the component coll/nbar: mpirun --mca coll_nbar_enable 1\n"
		     "ok MPICH: LD_PRELOAD=libnbar-mpi-mpich.so offloads its barriers\n");
}

static void all_that_is_bad(void **state)
{
	struct doctor_facts f = {
		.cpus = 4,
		.governor = "powersave",
		.huge_mb = 63,
		.memlock_kb = 65535,
		.rmem_max = (4 << 20) - 1,
		.nrdma = 1,
		.nlink = 1,
		.link = { { "eth0", "ixgbe", 575, 50, true } },
		.kernel = 0x601,
		.run_dir = "/run/nbar",
		.nnic = 1,
		.nic = { { "n0", 1, "no reply" } },
		.in_process = { "host", 1, "no wire" },
		.openmpi = true,
		.mpich = true,
	};

	findings_are(&f,
		     "bad NIC: n0 does not answer as expected: no reply\n"
		     "slow NIC: programs have no in-process NIC: no wire\n"
		     "bad network: eth0: MTU 575 is too small for a frame|ip link set eth0 mtu "
		     "1500\n"
		     "slow network: eth0 holds frames back for up to 50 us|ethtool -C eth0 "
		     "adaptive-rx off rx-usecs 0\n"
		     "slow network: eth0: RPS hands frames to other processors|echo 0 "
		     ">/sys/class/net/eth0/queues/rx-0/rps_cpus\n"
		     "ok RDMA: 1 devices: wire=verbs can use them\n"
		     "slow wire kernel: Linux 6.1 does not attach its programs (tcx)|boot Linux "
		     "6.6 or later, or use the wire udp\n"
		     "slow processors: 4, none isolated: the scheduler interrupts the thread that "
		     "polls|boot with isolcpus=3 nohz_full=3, then nbar-nicd --cpu 3 --idle spin\n"
		     "slow frequency: governor powersave: a processor that wakes runs slowly at "
		     "first|cpupower frequency-set -g performance\n"
		     "slow hugepages: 63 MB free: the wire dpdk then uses small pages, and drivers "
		     "of devices do not start|sysctl vm.nr_hugepages=32\n"
		     "slow locked memory: limit 65535 KB: the wire verbs may fail to register "
		     "memory|raise memlock in /etc/security/limits.conf, or LimitMEMLOCK of the "
		     "service\n"
		     "slow receive queue: at most 4194303 bytes: bursts of large groups overflow "
		     "it, and cost retransmissions|sysctl net.core.rmem_max=4194304, or give the "
		     "daemon CAP_NET_ADMIN\n"
		     "slow Open MPI: has no component coll/nbar: its barriers are not "
		     "offloaded|make install, or make install-component-user, or install "
		     "the package libnbar-mpi (RPM: nbar-mpi)\n"
		     "slow MPICH: libnbar-mpi-mpich.so is not installed: its barriers are not "
		     "offloaded|make install && ldconfig, or install the package "
		     "libnbar-mpi (RPM: nbar-mpi)\n");
	f = good();
	f.nnic = 0;
	f.nlink = 0;
	f.cpus = 1;
	f.isolated[0] = '\0';
	f.openmpi = f.mpich = false;
	f.kernel_wire = false;
	findings_are(
		&f,
		"bad run directory: /run/nbar has no NIC|start a daemon (nbar-nicd --nics 4 to "
		"try), or name its directory by NBAR_RUN_DIR\n"
		"ok NIC: in-process NIC : \n"
		"slow network: no interface is up: only NICs of this machine meet|ip link set "
		"DEV up\n"
		"slow wire kernel: is not installed: a daemon needs a processor|install "
		"the package nbar-nicd-kernel, or install clang and libbpf-dev and build nbar again\n"
		"slow processors: 1: the NIC and the hosts take turns on it; a NIC in a daemon "
		"needs a processor that is free while barriers run|use in-process NICs "
		"(host:wire=udp)\n"
		"ok hugepages: 1024 MB free\n"
		"ok receive queue: large enough for bursts of large groups\n");
	f = good();
	f.nnic = f.nlink = 0;
	f.openmpi = f.mpich = false;
	f.run_dir_error = EACCES;
	f.net_admin = true;
	f.rmem_max = 0;
	f.cpus = 2;
	f.link[0].mtu = 576;
	f.nlink = 1;
	f.huge_mb = 64;
	f.bpf = false;
	f.kernel = 0; /* not known */
	f.nrdma = 1;
	f.memlock_kb = 65536;
	f.governor[0] = '\0';
	findings_are(&f, "bad run directory: no permission for /run/nbar|ask its owner to start "
			 "nbar-nicd with --mode 0660 --group GROUP, and join that group\n"
			 "ok NIC: in-process NIC : \n"
			 "ok network: eth0: up, driver ixgbe, MTU 576\n"
			 "ok RDMA: 1 devices: wire=verbs can use them\n"
			 "slow wire kernel: this user may not load its programs|start nbar-nicd as "
			 "root, or by the service: CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW\n"
			 "ok processors: 2, isolated: 7\n"
			 "ok hugepages: 64 MB free\n"
			 "ok receive queue: large enough for bursts of large groups\n");
	f.run_dir_error = ENOENT;
	f.rmem_max = 4 << 20;
	f.net_admin = false;
	f.nrdma = 0;
	f.memlock_kb = 0;
	f.nnic = 1; /* a NIC has the wire */
	f.kernel = 0x60c;
	strcpy(f.nic[0].text, "wire kernel, address eth0");
	findings_are(
		&f, "bad run directory: /run/nbar: No such file or directory|start a daemon "
		    "(nbar-nicd --nics 4 to try), or name its directory by NBAR_RUN_DIR\n"
		    "ok NIC: n0 answers, and is of this version: wire kernel, address eth0\n"
		    "ok NIC: in-process NIC : \n"
		    "ok network: eth0: up, driver ixgbe, MTU 576\n"
		    "slow wire kernel: Linux 6.12 takes no programs of values: allreduces wake the "
		    "daemon|boot Linux 6.18 or later\n"
		    "ok processors: 2, isolated: 7\n"
		    "ok hugepages: 64 MB free\n"
		    "ok receive queue: large enough for bursts of large groups\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(all_that_is_good),   UNIT(all_that_is_bad),
		UNIT(nothing_to_do),      UNIT(no_nic),
		UNIT(addresses),          UNIT(slow),
		UNIT(locked_memory),      UNIT(many),
		UNIT(facts_of_a_machine), UNIT(facts_of_an_empty_machine),
		UNIT(facts_of_a_device),  UNIT(facts_of_programs),
		UNIT(grades_have_names),
	};

	if (!mkdtemp(root))
		return 1;
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return rc;
}
