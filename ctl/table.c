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

/* How many bytes a character has that does something to a terminal instead of being seen; 0: it is none. */
static size_t control_length(const unsigned char *s) {
        static const struct {
                const char *lead;
                unsigned char first, last;
        } table[] = {
                { "\xC2", 0x80, 0x9F },     /* C1: U+009B is as good as ESC [ */
                { "\xD8", 0x9C, 0x9C },     /* these change the direction of what follows: U+061C */
                { "\xE2\x80", 0x8E, 0x8F }, /* U+200E, U+200F */
                { "\xE2\x80", 0xA8, 0xAE }, /* U+2028 and U+2029, separators; U+202A to U+202E */
                { "\xE2\x81", 0xA6, 0xA9 }, /* U+2066 to U+2069 */
        };

        if (*s < ' ' || *s == 0x7F)
                return 1;
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                size_t n = strlen(table[i].lead);

                if (strncmp((const char *) s, table[i].lead, n) == 0 && s[n] >= table[i].first &&
                    s[n] <= table[i].last)
                        return n + 1;
        }
        return 0;
}

char *printable(const char *s) {
        char *copy = must_alloc(malloc(strlen(s) + 1)), *out = copy;

        while (*s) {
                size_t n = control_length((const unsigned char *) s);

                *out++ = n > 0 ? '?' : *s;
                s += MAX(n, (size_t) 1);
        }
        *out = 0;
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
