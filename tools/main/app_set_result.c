/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app_set_result.c - settings and notes of synthetic applications in a result; see app_set.h.
 */
#include "app_set.h"

#include <stdio.h>

#include "result.h"

void app_set_describe(const struct app_set *a, struct result *r)
{
	char key[40], list[SWEEP_LIST_MAX * 14];

	result_setting_number(r, "vary_percent", a->vary);
	result_setting_number(r, "scale", a->scale);
	for (uint32_t i = 0; i < a->n; i++) {
		sweep_list_text(&a->app[i].step_us, list, sizeof(list));
		snprintf(key, sizeof(key), "application %s", a->app[i].name);
		result_setting_text(r, key, list);
	}
}

void app_set_note(const struct app_set *a, struct result *r)
{
	result_note(r, "steps scaled by %g, varied by %g %%", a->scale, a->vary);
}
