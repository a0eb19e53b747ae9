/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A table on standard output: columns as wide as their widest cell, numbers to the right. On a terminal lines
 * are cut at its width, so put what may be cut last. Text from elsewhere is made harmless (no control
 * characters reach a terminal).
 */

#include "ctl/terminal.h"

#define TABLE_COLUMNS_MAX 24U

typedef struct Table Table;

/* A table of no columns. */
Table *table_new(void);
Table *table_free(Table *t);
DEFINE_TRIVIAL_CLEANUP_FUNC(Table *, table_free);

/* One more column, before the first cell. A title that begins with '>' is aligned to the right. Borrowed. */
void table_column(Table *t, const char *title);

/* The next cell, row by row. Printf style. Dies of OOM: this is a command-line tool. */
void table_add(Table *t, const char *format, ...) _printf_(2, 3);
void table_add_styled(Table *t, Style style, const char *format, ...) _printf_(3, 4);
size_t table_rows(const Table *t);

/* columns: where lines are cut; 0: nowhere. */
void table_print(const Table *t, int columns);

/* The columns that a text takes, and how many of its bytes fit into so many columns. */
int text_width(const char *s);
size_t text_fit(const char *s, int columns);
