/* SPDX-License-Identifier: MIT */

/* Cells are collected first, since widths are known only at the end. */

#include "ctl/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <wchar.h>

#include "ctl/die.h"

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

char *printable(const char *s) {
        char *copy = must_alloc(strdup(s));

        for (unsigned char *p = (unsigned char *) copy; *p; p++)
                if (*p < ' ' || *p == 0x7F)
                        *p = '?';
        return copy;
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

const char *format_duration(uint64_t usec) {
        static char text[48];
        uint64_t s = usec / USEC_PER_SEC;

        if (usec < USEC_PER_SEC)
                (void) snprintf(text, sizeof(text), "%" PRIu64 " ms", usec / USEC_PER_MSEC);
        else if (s < 60)
                (void) snprintf(text, sizeof(text), "%" PRIu64 " s", s);
        else if (s < 3600)
                (void) snprintf(text, sizeof(text), "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
        else if (s < 86400)
                (void) snprintf(text, sizeof(text), "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
        else
                (void) snprintf(text, sizeof(text), "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
        return text;
}

const char *format_bytes(uint64_t bytes) {
        static char text[32];

        if (bytes < MIB)
                (void) snprintf(text, sizeof(text), "%" PRIu64 " kB", bytes / KIB);
        else if (bytes < 1024 * MIB)
                (void) snprintf(text, sizeof(text), "%" PRIu64 " MB", bytes / MIB);
        else
                (void) snprintf(text, sizeof(text), "%.1f GB", (double) bytes / (1024 * MIB));
        return text;
}

const char *format_time(uint64_t realtime_usec) {
        static char text[32];
        time_t t = (time_t) (realtime_usec / USEC_PER_SEC);
        struct tm tm;

        if (!localtime_r(&t, &tm) || strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) == 0)
                return "-";
        return text;
}
