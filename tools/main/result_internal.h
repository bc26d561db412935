/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * result_internal.h - what only result.c and result_out.c share.
 */
#ifndef NBAR_TOOLS_RESULT_INTERNAL_H
#define NBAR_TOOLS_RESULT_INTERNAL_H

#include "result.h"

struct result {
	const struct result_column *column;
	uint32_t ncolumn;
	json_t *root;                                          /* the whole result */
	json_t *machine, *settings, *rows, *notes, *published; /* parts of root */
	json_t *row;                                           /* the row that has begun; or NULL */
};

#endif
