/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor.c - `nbar doctor`: shows what prevents fast barriers on this machine, or slows barriers.
 */
#include "tool.h"

#include <jansson.h>
#include <stdio.h>

#include "doctor.h"
#include "option.h"
#include "subcommands.h"

static void doctor_usage(FILE *to)
{
	fputs("usage: nbar doctor [OPTION]...\n"
	      "Looks at NICs, processors, memory, network and MPI of this machine, and says\n"
	      "what to do for faster barriers. Changes nothing.\n\n"
	      "  --json         print JSON\n"
	      "  --run-dir DIR  run directory of the daemon ($NBAR_RUN_DIR)\n"
	      "  -h, --help     this text\n"
	      "\nok: good; slow: works, but a change would make it faster or more robust;\n"
	      "bad: programs get no NIC, or an interface cannot carry frames.\n"
	      "Exit status: 0 nothing is bad, 1 something is bad, 2 wrong usage.\n",
	      to);
}

static int print_text(const struct doctor_report *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct doctor_finding *f = &r->finding[i];

		printf("%-4s  %-13s  %s\n", doctor_grade_name(f->grade), f->subject, f->text);
		if (f->next[0])
			printf("%-4s  %-13s  next: %s\n", "", "", f->next);
	}
	return 0;
}

static int print_json(const struct doctor_report *r)
{
	json_t *all = json_array();
	int rc = all ? 0 : -1;

	for (uint32_t i = 0; rc == 0 && i < r->n; i++) {
		const struct doctor_finding *f = &r->finding[i];

		rc = json_array_append_new(
			all, json_pack("{ssssssss}", "grade", doctor_grade_name(f->grade),
				       "subject", f->subject, "text", f->text, "next", f->next));
	}
	if (rc == 0)
		rc = json_dumpf(all, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(all);
	return rc;
}

static int doctor_read_option(void *arg, int c, const char *value)
{
	bool *json = arg;

	if (c == 'd')
		return option_run_dir(value);
	*json = true;
	return 0;
}

int tool_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "run-dir", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct doctor_facts facts;
	static struct doctor_report report;
	bool json = false, bad = false, help;
	int r = option_all(argc, argv, 1, ":h", options, doctor_read_option, &json, &help);

	if (option_ends(r, help, doctor_usage))
		return r;
	doctor_look(&facts);
	doctor_judge(&facts, &report);
	if ((json ? print_json(&report) : print_text(&report)) || fflush(stdout)) {
		tool_error("cannot write the findings");
		return TOOL_FAILED;
	}
	for (uint32_t i = 0; i < report.n; i++)
		bad |= report.finding[i].grade == DOCTOR_BAD;
	return bad ? TOOL_FAILED : TOOL_OK;
}
