/* SPDX-License-Identifier: MIT */

/* Columns of fixed width, so that nothing jumps when a value grows. */

#include "ctl/top-view.h"

#include <inttypes.h>
#include <stdio.h>

#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/session-view.h"
#include "ctl/table.h"
#include "lib/buffer.h"
#include "lib/text.h"

enum {
        COLUMN_SESSION,
        COLUMN_USER,
        COLUMN_STATE,
        COLUMN_ENV,
        COLUMN_CPU,
        COLUMN_CPU_TIME,
        COLUMN_MEMORY,
        COLUMN_LIMIT,
        COLUMN_PROCESSES,
        COLUMN_TURNS,
        COLUMN_TURN_TIME,
        COLUMN_IDLE,
        _COLUMN_MAX,
};

static const struct {
        const char *title;
        int width;
        bool right;
} columns[_COLUMN_MAX] = {
        [COLUMN_SESSION] = { "SESSION", 20, false },
        [COLUMN_USER] = { "USER", 10, false },
        [COLUMN_STATE] = { "STATE", 8, false },
        [COLUMN_ENV] = { "ENV", 10, false },
        [COLUMN_CPU] = { "%CPU", 6, true },
        [COLUMN_CPU_TIME] = { "CPU", 9, true },
        [COLUMN_MEMORY] = { "MEM", 6, true },
        [COLUMN_LIMIT] = { "LIMIT", 6, true },
        [COLUMN_PROCESSES] = { "PROC", 5, true },
        [COLUMN_TURNS] = { "TURNS", 6, true },
        [COLUMN_TURN_TIME] = { "TIME", 9, true },
        [COLUMN_IDLE] = { "IDLE", 12, true },
};

static void add(Buffer *b, unsigned column, const char *text) {
        _cleanup_free_ char *safe = printable(text);
        int width = columns[column].width, pad = width - text_width(safe), r;

        if (column > 0 && buffer_append_str(b, " ") < 0)
                die_oom();
        if (pad < 0)
                r = buffer_printf(b, "%.*s…", (int) text_fit(safe, width - 1), safe);
        else if (columns[column].right)
                r = buffer_printf(b, "%*s%s", pad, "", safe);
        else
                r = buffer_printf(b, "%s%*s", safe, pad, "");
        if (r < 0)
                die_oom();
}

static char *finish(Buffer *b) {
        char *text;

        if (buffer_take(b, &text, NULL) < 0)
                die_oom();
        return text;
}

char *top_titles(void) {
        Buffer b = {};

        for (unsigned i = 0; i < _COLUMN_MAX; i++)
                add(&b, i, columns[i].title);
        return finish(&b);
}

void top_title_place(TopOrder order, int *ret_column, int *ret_width) {
        static const unsigned table[] = {
                [TOP_ORDER_MEMORY] = COLUMN_MEMORY,
                [TOP_ORDER_CPU] = COLUMN_CPU,
                [TOP_ORDER_TIME] = COLUMN_TURN_TIME,
                [TOP_ORDER_NAME] = COLUMN_SESSION,
        };
        int at = 0;

        for (unsigned i = 0; i < table[order]; i++)
                at += columns[i].width + 1;
        *ret_column = at;
        *ret_width = columns[table[order]].width;
}

static const char *number_or_dash(json_object *s, const char *key) {
        return has_value(s, key) ? format_number(get_uint(s, key)) : "-";
}

char *top_row_text(const Context *c, const TopRow *row) {
        json_object *s = row->session;
        char percent[32] = "-";
        Buffer b = {};

        if (row->cpu_percent >= 0)
                (void) snprintf(percent, sizeof(percent), "%.1f", row->cpu_percent);
        add(&b, COLUMN_SESSION, row->label);
        add(&b, COLUMN_USER, session_user(c, s));
        add(&b, COLUMN_STATE, session_state_word(s));
        add(&b, COLUMN_ENV, get_string(s, "environment", "-"));
        add(&b, COLUMN_CPU, percent);
        add(&b, COLUMN_CPU_TIME, has_value(s, "cpu_usec") ? format_clock(get_uint(s, "cpu_usec")) : "-");
        add(&b, COLUMN_MEMORY, has_value(s, "memory_bytes") ? format_size(get_uint(s, "memory_bytes")) : "-");
        add(&b, COLUMN_LIMIT, format_size(megabytes(get_uint(s, "memory_mb"))));
        add(&b, COLUMN_PROCESSES, number_or_dash(s, "processes"));
        add(&b, COLUMN_TURNS, number_or_dash(s, "turns"));
        add(&b, COLUMN_TURN_TIME, format_clock(get_uint(s, "turn_usec")));
        add(&b, COLUMN_IDLE, get_bool(s, "busy") ? "-" : format_duration(get_uint(s, "idle_usec")));
        return finish(&b);
}

char *top_summary_line(const Context *c, const TopModel *m, unsigned line, double interval_sec) {
        const TopTotals t = top_model_totals(m);
        char *text = NULL;
        int r;

        if (line == 0)
                r = asprintf(&text, "sandboxctl top - %s on %s, every %g s", format_time(now_realtime()),
                             c->host ?: c->path ?: "?", interval_sec);
        else if (line == 1)
                r = asprintf(&text,
                             "Sessions: %zu total, %zu busy, %zu running, %zu in standby, %zu frozen by hand",
                             t.sessions, t.busy, t.running, t.standby, t.frozen);
        else
                r = asprintf(&text, "CPU: %.1f %%   Memory: %s   Processes: %" PRIu64, t.cpu_percent,
                             format_bytes(t.memory_bytes), t.processes);
        if (r < 0)
                die_oom();
        return text;
}
