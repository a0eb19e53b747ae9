/* SPDX-License-Identifier: MIT */

/* Cells are collected first, since widths are known only at the end. */

#include "ctl/table.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

#include "ctl/die.h"
#include "ctl/format.h"

#define GAP 2 /* between columns */

typedef struct Cell {
        char *text;
        Style style;
} Cell;

struct Table {
        const char *titles[TABLE_COLUMNS_MAX];
        size_t n_columns;
        Cell *cells;
        size_t n_cells, allocated;
};

Table *table_new(void) {
        return must_alloc(calloc(1, sizeof(Table)));
}

Table *table_free(Table *t) {
        if (!t)
                return NULL;
        for (size_t i = 0; i < t->n_cells; i++)
                free(t->cells[i].text);
        free(t->cells);
        return mfree(t);
}

void table_column(Table *t, const char *title) {
        assert(t->n_columns < TABLE_COLUMNS_MAX && t->n_cells == 0);
        t->titles[t->n_columns++] = title;
}

static void add_cell(Table *t, Style style, const char *format, va_list ap) _printf_(3, 0);
static void add_cell(Table *t, Style style, const char *format, va_list ap) {
        _cleanup_free_ char *text = NULL;

        if (vasprintf(&text, format, ap) < 0)
                die_oom();
        if (t->n_cells == t->allocated) {
                t->allocated = MAX(t->allocated * 2, (size_t) 64);
                t->cells = must_alloc(reallocarray(t->cells, t->allocated, sizeof(*t->cells)));
        }
        t->cells[t->n_cells++] = (Cell) { printable(text), style };
}

void table_add(Table *t, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        add_cell(t, STYLE_PLAIN, format, ap);
        va_end(ap);
}

void table_add_styled(Table *t, Style style, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        add_cell(t, style, format, ap);
        va_end(ap);
}

size_t table_rows(const Table *t) {
        return t->n_cells / t->n_columns;
}

/* The next character: its bytes (1 where it is none in this locale) and the columns it takes. */
static size_t next_character(const char *s, int *ret_columns) {
        mbstate_t state = {};
        wchar_t c;
        size_t n = mbrtowc(&c, s, strlen(s), &state);

        if (n == 0 || n > MB_LEN_MAX) {
                *ret_columns = 1;
                return 1;
        }
        *ret_columns = MAX(wcwidth(c), 0);
        return n;
}

size_t text_fit(const char *s, int columns) {
        const char *p = s;
        int taken;

        while (*p) {
                size_t n = next_character(p, &taken);

                if (taken > columns)
                        break;
                columns -= taken;
                p += n;
        }
        return (size_t) (p - s);
}

int text_width(const char *s) {
        int width = 0, taken;

        while (*s) {
                s += next_character(s, &taken);
                width += taken;
        }
        return width;
}

static const char *title_text(const Table *t, size_t column, bool *ret_right) {
        const char *s = t->titles[column];

        *ret_right = *s == '>';
        return *ret_right ? s + 1 : s;
}

/* A cell with the blanks around it, as far as it fits; returns the room that is left. */
static int print_cell(const char *text, Style style, int before, int after, int room) {
        int width = text_width(text);

        before = MIN(before, room);
        printf("%*s", before, "");
        room -= before;

        printf("%s%.*s%s", style_begin(style), (int) text_fit(text, room), text, style_end(style));
        room = MAX(room - width, 0);

        after = MIN(after, room);
        printf("%*s", after, "");
        return room - after;
}

static const char *cell_text(const Table *t, const Cell *cells, size_t column, bool *ret_right) {
        const char *title = title_text(t, column, ret_right);

        return cells ? cells[column].text : title;
}

/* The columns of a row: all of every column, but of the last only what is there. */
static int row_length(const Table *t, const int *widths, const Cell *cells) {
        size_t last = t->n_columns - 1;
        int length = 0;
        bool right;

        for (size_t c = 0; c < last; c++)
                length += widths[c] + GAP;
        return length + MAX(text_width(cell_text(t, cells, last, &right)), right ? widths[last] : 0);
}

/* One row; titles when cells is NULL. A line that is longer than its limit ends in "…". */
static void print_row(const Table *t, const int *widths, const Cell *cells, int limit) {
        int length = row_length(t, widths, cells);
        bool cut = limit > 0 && length > limit, right;
        int room = cut ? limit - 1 : length;

        for (size_t c = 0; c < t->n_columns; c++) {
                const char *text = cell_text(t, cells, c, &right);
                int pad = widths[c] - text_width(text), gap = c < t->n_columns - 1 ? GAP : 0;

                if (gap == 0 && !right)
                        pad = 0;
                room = print_cell(text, cells ? cells[c].style : STYLE_TITLE, right ? pad : 0,
                                  (right ? 0 : pad) + gap, room);
        }
        puts(cut ? "…" : "");
}

void table_print(const Table *t, int columns) {
        int widths[TABLE_COLUMNS_MAX] = {};
        bool right;

        for (size_t c = 0; c < t->n_columns; c++)
                widths[c] = text_width(title_text(t, c, &right));
        for (size_t i = 0; i < t->n_cells; i++)
                widths[i % t->n_columns] =
                        MAX(widths[i % t->n_columns], text_width(t->cells[i].text));

        print_row(t, widths, NULL, columns);
        for (size_t i = 0; i + t->n_columns <= t->n_cells; i += t->n_columns)
                print_row(t, widths, t->cells + i, columns);
}
