/* SPDX-License-Identifier: MIT */

/*
 * Every reply replaces everything but the selection, which is kept by id: rows change places, and what the
 * next key does must be about the session that was pointed at.
 */

#include "ctl/top-model.h"

#include "ctl/die.h"
#include "ctl/session-view.h"

static int compare_samples(const void *a, const void *b) {
        return strcmp(((const TopSample *) a)->id, ((const TopSample *) b)->id);
}

/* CPU time as a share of the time between two samples; negative where one of them is missing. */
static double cpu_percent(const TopModel *m, const TopRow *row, uint64_t now_usec) {
        const TopSample key = { .id = row->id }, *before = NULL;
        uint64_t cpu_usec = get_uint(row->session, "cpu_usec");

        if (m->n_samples > 0 && has_value(row->session, "cpu_usec"))
                before = bsearch(&key, m->samples, m->n_samples, sizeof(key), compare_samples);
        if (!before || now_usec <= m->sampled_usec)
                return -1;
        /* A counter that went back belongs to another cgroup: that of a session that was restored. */
        if (cpu_usec < before->cpu_usec)
                return -1;
        return (double) (cpu_usec - before->cpu_usec) * 100 / (double) (now_usec - m->sampled_usec);
}

static void take_samples(TopModel *m, const TopRow *rows, size_t n) {
        free(m->samples);
        m->samples = must_alloc(calloc(n + 1, sizeof(*m->samples)));
        m->n_samples = 0;
        for (size_t i = 0; i < n; i++)
                if (has_value(rows[i].session, "cpu_usec"))
                        m->samples[m->n_samples++] =
                                (TopSample) { rows[i].id, get_uint(rows[i].session, "cpu_usec") };
        qsort(m->samples, m->n_samples, sizeof(*m->samples), compare_samples);
}

static int descending(double a, double b) {
        return a < b ? 1 : a > b ? -1 : 0;
}

static int compare_rows(const void *a, const void *b, void *userdata) {
        const TopRow *x = a, *y = b;
        int r = 0;

        switch (*(const TopOrder *) userdata) {
        case TOP_ORDER_MEMORY:
                r = descending((double) get_uint(x->session, "memory_bytes"),
                               (double) get_uint(y->session, "memory_bytes"));
                break;
        case TOP_ORDER_CPU:
                r = descending(x->cpu_percent, y->cpu_percent);
                break;
        case TOP_ORDER_TIME:
                r = descending((double) get_uint(x->session, "turn_usec"),
                               (double) get_uint(y->session, "turn_usec"));
                break;
        case TOP_ORDER_NAME:
                break;
        }
        /* Rows that are equal keep their places. */
        if (r == 0)
                r = strcmp(x->label, y->label);
        return r != 0 ? r : strcmp(x->id, y->id);
}

static void sort_rows(TopModel *m) {
        if (m->n_rows > 0)
                qsort_r(m->rows, m->n_rows, sizeof(*m->rows), compare_rows, &m->order);
}

static size_t index_of_selected(const TopModel *m) {
        for (size_t i = 0; m->selected && i < m->n_rows; i++)
                if (streq(m->rows[i].id, m->selected))
                        return i;
        return SIZE_MAX;
}

static void select_row(TopModel *m, size_t i) {
        free(m->selected);
        m->selected = i < m->n_rows ? must_alloc(strdup(m->rows[i].id)) : NULL;
}

void top_model_update(TopModel *m, json_object *sessions, uint64_t now_usec) {
        size_t n = json_object_array_length(sessions), n_rows = 0, was = index_of_selected(m);
        TopRow *rows = must_alloc(calloc(n + 1, sizeof(*rows)));

        for (size_t i = 0; i < n; i++) {
                json_object *session = json_object_array_get_idx(sessions, i);
                const char *id = get_string(session, "id", NULL);

                if (!id)
                        continue;
                rows[n_rows] = (TopRow) { .session = session, .id = id, .label = session_label(session) };
                rows[n_rows].cpu_percent = cpu_percent(m, &rows[n_rows], now_usec);
                n_rows++;
        }

        take_samples(m, rows, n_rows);
        free(m->rows);
        json_object_put(m->sessions);
        m->rows = rows;
        m->n_rows = n_rows;
        m->sessions = json_object_get(sessions);
        m->sampled_usec = now_usec;
        sort_rows(m);

        /* The place of a session that has gone is taken by its neighbour. */
        if (index_of_selected(m) == SIZE_MAX)
                select_row(m, was == SIZE_MAX ? 0 : MIN(was, MAX(n_rows, (size_t) 1) - 1));
}

void top_model_done(TopModel *m) {
        free(m->rows);
        free(m->samples);
        free(m->selected);
        json_object_put(m->sessions);
        *m = (TopModel) {};
}

void top_model_set_order(TopModel *m, TopOrder order) {
        m->order = order;
        sort_rows(m);
}

TopTotals top_model_totals(const TopModel *m) {
        TopTotals t = { .sessions = m->n_rows };

        for (size_t i = 0; i < m->n_rows; i++) {
                json_object *s = m->rows[i].session;
                const char *state = session_state_word(s);

                t.busy += streq(state, "busy");
                t.running += streq(state, "running");
                t.standby += streq(state, "standby");
                t.frozen += streq(state, "frozen");
                t.cpu_percent += MAX(m->rows[i].cpu_percent, 0.0);
                t.memory_bytes += get_uint(s, "memory_bytes");
                t.processes += get_uint(s, "processes");
        }
        return t;
}

const TopRow *top_model_selected(const TopModel *m) {
        size_t i = index_of_selected(m);

        return i == SIZE_MAX ? NULL : m->rows + i;
}

void top_model_move(TopModel *m, long by) {
        size_t i = index_of_selected(m), last = m->n_rows - 1;

        if (m->n_rows == 0)
                return;
        if (i == SIZE_MAX)
                i = 0;
        else if (by < 0)
                i -= MIN((size_t) -by, i);
        else
                i += MIN((size_t) by, last - i);
        select_row(m, i);
}

void top_model_scroll(TopModel *m, size_t height) {
        size_t i = index_of_selected(m);

        if (height == 0 || i == SIZE_MAX) {
                m->first = 0;
                return;
        }
        m->first = MIN(m->first, m->n_rows - MIN(height, m->n_rows));
        if (i < m->first)
                m->first = i;
        else if (i >= m->first + height)
                m->first = i - height + 1;
}
