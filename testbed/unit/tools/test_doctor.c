/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_doctor.c - findings of nbar doctor: each bad fact has a finding, and each finding has a next
 * step.
 */
#include "unit/unit.h"

#include <errno.h>
#include <string.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_do), cmocka_unit_test(no_nic),
		cmocka_unit_test(addresses),     cmocka_unit_test(slow),
		cmocka_unit_test(locked_memory), cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
