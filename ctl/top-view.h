/* SPDX-License-Identifier: MIT */
#pragma once

/* The lines of top as text, for the screen and for -b. All are allocated. */

#include "ctl/call.h"
#include "ctl/top-model.h"

/* Where and when, then two lines of sums. */
#define TOP_SUMMARY_LINES 3
char *top_summary_line(const Context *c, const TopModel *m, unsigned line, double interval_sec);

char *top_titles(void);
/* Where the title of an order begins in those, and its length: the screen marks it. */
void top_title_place(TopOrder order, int *ret_column, int *ret_width);

char *top_row_text(const Context *c, const TopRow *row);
