/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_doctor.c - findings of nbar doctor: each bad fact has a finding, and each finding has a next
 * step.
 */
#include "unit/unit.h"

#include <errno.h>
#include <ftw.h>
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
		.nlink = 1,
		.link = { { "eth0", "ixgbe", 1500 } },
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
	put("/sys/devices/system/cpu/isolated", "2-3,7\n");
	put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
	put("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "5\n");
	put("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "3\n");
	put("/proc/sys/net/core/rmem_max", "212992\n");
	put("/proc/self/status",
	    "Name:\tx\nCapPrm:\t0000000000001000\nCapEff:\t0000000000000fff\n");
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

	put("/proc/self/status", "CapInh:\t0000000000000000\nCapEff:\t0000000000001000\n");
	doctor_look_machine(root, &f);
	assert_true(f.net_admin);
	if (old.rlim_cur == RLIM_INFINITY)
		assert_true(f.memlock_kb == UINT64_MAX);
}

/* A machine that shows nothing. */
static void facts_of_an_empty_machine(void **state)
{
	struct doctor_facts f;

	(void)state;
	doctor_look_machine("/nowhere", &f);
	assert_true(f.cpus >= 1);
	assert_string_equal(f.isolated, "");
	assert_string_equal(f.governor, "");
	assert_int_equal(f.huge_mb, 0);
	assert_int_equal(f.rmem_max, 0);
	assert_int_equal(f.nlink + f.nrdma + f.nnic, 0);
	assert_false(f.net_admin);
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

	(void)state;
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
	(void)state;
	assert_string_equal(doctor_grade_name(DOCTOR_GOOD), "ok");
	assert_string_equal(doctor_grade_name(DOCTOR_SLOW), "slow");
	assert_string_equal(doctor_grade_name(DOCTOR_BAD), "bad");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_do),      cmocka_unit_test(no_nic),
		cmocka_unit_test(addresses),          cmocka_unit_test(slow),
		cmocka_unit_test(locked_memory),      cmocka_unit_test(many),
		cmocka_unit_test(facts_of_a_machine), cmocka_unit_test(facts_of_an_empty_machine),
		cmocka_unit_test(facts_of_programs),  cmocka_unit_test(grades_have_names),
	};

	if (!mkdtemp(root))
		return 1;
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return rc;
}
