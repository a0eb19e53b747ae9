/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What top shows: the sessions of the last List reply in an order, how much CPU time each took since the reply
 * before, which one is selected and which part is on the screen. Pure.
 */

#include "ctl/fields.h"

typedef enum TopOrder {
        TOP_ORDER_MEMORY,
        TOP_ORDER_CPU,
        TOP_ORDER_TIME, /* in turns */
        TOP_ORDER_NAME,
} TopOrder;

typedef struct TopRow {
        json_object *session; /* borrowed from the model */
        const char *id, *label;
        double cpu_percent; /* of one CPU; negative: not known yet */
} TopRow;

typedef struct TopSample {
        const char *id;
        uint64_t cpu_usec;
} TopSample;

typedef struct TopModel {
        json_object *sessions; /* owned; rows and samples borrow from it */
        TopRow *rows;
        size_t n_rows;
        TopSample *samples; /* by id */
        size_t n_samples;
        uint64_t sampled_usec;
        TopOrder order;
        char *selected; /* id; NULL: none */
        size_t first; /* the first row on the screen */
} TopModel;

typedef struct TopTotals {
        size_t sessions, busy, running, standby, frozen;
        double cpu_percent;
        uint64_t memory_bytes, processes;
} TopTotals;

/* Takes a reply's array (a reference of its own) as of a time on the monotonic clock. */
void top_model_update(TopModel *m, json_object *sessions, uint64_t now_usec);
void top_model_done(TopModel *m);

void top_model_set_order(TopModel *m, TopOrder order);
TopTotals top_model_totals(const TopModel *m);

/* The row that is selected; NULL when there are none. */
const TopRow *top_model_selected(const TopModel *m);
/* Selects the row so many further down (negative: up), or the last or first one. */
void top_model_move(TopModel *m, long by);
/* Moves the part that is shown, of so many rows, as little as brings the selected row into it. */
void top_model_scroll(TopModel *m, size_t height);
