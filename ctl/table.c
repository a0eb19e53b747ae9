/* SPDX-License-Identifier: MIT */

/* Cells are collected first, since widths are known only at the end. */

#include "ctl/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

#include "ctl/die.h"
#include "ctl/format.h"

struct Table {
        const char *const *titles;
        size_t n_columns;
        char **cells;
        size_t n_cells, allocated;
};

Table *table_new(const char *const *titles) {
        Table *t = must_alloc(calloc(1, sizeof(*t)));

        t->titles = titles;
        while (titles[t->n_columns])
                t->n_columns++;
        assert(t->n_columns > 0 && t->n_columns <= TABLE_COLUMNS_MAX);
        return t;
}

Table *table_free(Table *t) {
        if (!t)
                return NULL;
        for (size_t i = 0; i < t->n_cells; i++)
                free(t->cells[i]);
        free(t->cells);
        return mfree(t);
}

void table_add(Table *t, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
                die_oom();

        if (t->n_cells == t->allocated) {
                t->allocated = MAX(t->allocated * 2, (size_t) 64);
                t->cells = must_alloc(reallocarray(t->cells, t->allocated, sizeof(char *)));
        }
        t->cells[t->n_cells++] = printable(text);
}

size_t table_rows(const Table *t) {
        return t->n_cells / t->n_columns;
}

/* Columns that a text takes on a terminal. */
static int width(const char *s) {
        wchar_t wide[256];
        size_t n = mbstowcs(wide, s, ELEMENTSOF(wide));

        if (n == (size_t) -1 || n >= ELEMENTSOF(wide))
                return (int) strlen(s);
        return MAX(wcswidth(wide, n), 0);
}

static const char *title(const Table *t, size_t column, bool *ret_right) {
        const char *s = t->titles[column];

        *ret_right = *s == '>';
        return *ret_right ? s + 1 : s;
}

static void print_cell(const char *text, int columns, bool right, bool last) {
        int pad = MAX(columns - width(text), 0);

        if (right)
                printf("%*s%s", pad, "", text);
        else
                printf("%s%*s", text, last ? 0 : pad, "");
        fputs(last ? "\n" : "  ", stdout);
}

void table_print(const Table *t) {
        int widths[TABLE_COLUMNS_MAX] = {};
        bool right;

        for (size_t c = 0; c < t->n_columns; c++)
                widths[c] = width(title(t, c, &right));
        for (size_t i = 0; i < t->n_cells; i++)
                widths[i % t->n_columns] = MAX(widths[i % t->n_columns], width(t->cells[i]));

        for (size_t c = 0; c < t->n_columns; c++) {
                const char *text = title(t, c, &right);

                print_cell(text, widths[c], right, c == t->n_columns - 1);
        }
        for (size_t i = 0; i < t->n_cells; i++) {
                size_t c = i % t->n_columns;

                (void) title(t, c, &right);
                print_cell(t->cells[i], widths[c], right, c == t->n_columns - 1);
        }
}
