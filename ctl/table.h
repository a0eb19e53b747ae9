/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A table on standard output: columns as wide as their widest cell, numbers to the right. Text from
 * elsewhere is made harmless (no control characters reach a terminal).
 */

#include "lib/macro.h"

#define TABLE_COLUMNS_MAX 16U

typedef struct Table Table;

/* Column titles, NULL-terminated; one that begins with '>' is aligned to the right. */
Table *table_new(const char *const *titles);
Table *table_free(Table *t);
DEFINE_TRIVIAL_CLEANUP_FUNC(Table *, table_free);

/* The next cell, row by row. Printf style. Dies of OOM: this is a command-line tool. */
void table_add(Table *t, const char *format, ...) _printf_(2, 3);
size_t table_rows(const Table *t);
void table_print(const Table *t);
