/* SPDX-License-Identifier: MIT */

/* From top to bottom: sums, a line for questions and news, titles, as many rows as fit. */

#include "ctl/session-view.h"
#include "ctl/table.h"
#include "ctl/top-screen.h"
#include "ctl/top-view.h"
#include "ctl/top.h"

#define STATUS_LINE TOP_SUMMARY_LINES
#define TITLE_LINE (STATUS_LINE + 1)
#define FIRST_ROW (TITLE_LINE + 1)

static void draw_help(void) {
        static const char *const lines[] = {
                "q               quit",
                "up, down, K, j  select; also page up, page down, home, end, g, G",
                "M P T N         order by memory, CPU, time in turns, name",
                "d, s            seconds between updates",
                "k               kill the selected session",
                "f               freeze or thaw it",
                "space, enter    update now",
                "h, ?            this help",
                "",
                "%CPU is of one CPU, since the update before. Any key goes back.",
        };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                screen_line((int) i, STYLE_PLAIN, false, lines[i]);
        screen_end(-1, 0);
}

static void draw_titles(const Top *t) {
        _cleanup_free_ char *text = top_titles();
        int column, width;

        screen_line(TITLE_LINE, STYLE_PLAIN, true, text);
        top_title_place(t->model.order, &column, &width);
        screen_mark(TITLE_LINE, column, width, STYLE_WARN);
}

static void draw_rows(Top *t) {
        const TopRow *selected = top_model_selected(&t->model);

        t->height = (size_t) MAX(screen_lines() - FIRST_ROW, 0);
        top_model_scroll(&t->model, t->height);
        for (size_t i = 0; i < t->height && t->model.first + i < t->model.n_rows; i++) {
                const TopRow *row = t->model.rows + t->model.first + i;
                _cleanup_free_ char *text = top_row_text(t->context, row);

                screen_line(FIRST_ROW + (int) i, session_style(row->session), row == selected, text);
        }
}

void top_draw(Top *t) {
        screen_begin();
        if (t->mode == TOP_MODE_HELP) {
                draw_help();
                return;
        }

        for (unsigned i = 0; i < TOP_SUMMARY_LINES; i++) {
                _cleanup_free_ char *text = top_summary_line(t->context, &t->model, i, t->interval_sec);

                screen_line((int) i, i == 0 ? STYLE_TITLE : STYLE_PLAIN, false, text);
        }
        if (t->status)
                screen_line(STATUS_LINE, t->status_style, false, t->status);
        draw_titles(t);
        draw_rows(t);
        if (t->mode == TOP_MODE_ROWS)
                screen_end(-1, 0);
        else
                screen_end(STATUS_LINE, MIN(text_width(t->status), screen_columns() - 1));
}
