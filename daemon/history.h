/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The turns of one session, oldest first (row S12). Bounded three ways, because an idle session must cost
 * next to nothing: number of entries, code kept of one turn, code kept in all.
 */

#include "lib/json.h"
#include "lib/macro.h"

#define HISTORY_ENTRIES_MAX 256U
#define HISTORY_CODE_MAX (16 * KIB)
#define HISTORY_TOTAL_MAX (64 * KIB)

typedef struct HistoryEntry HistoryEntry;

typedef struct History {
        HistoryEntry *first, *last;
        size_t n_entries;
        size_t code_size; /* of all entries */
} History;

/* Values of one finished turn. interpreter is a static string. */
typedef struct HistoryRecord {
        uint64_t turn;
        const char *interpreter;
        const char *code;
        size_t code_size;
        int exit_code;
        uint64_t duration_usec;
        uint64_t time_usec; /* CLOCK_REALTIME of its start */
} HistoryRecord;

/* How much of a code is kept. */
size_t history_code_size(const char *code, size_t size);
int history_add(History *h, const HistoryRecord *record);
/* A new array of HistoryEntry objects of the IDL. */
int history_to_json(const History *h, json_object **ret);
/* Adds the entries of such an array. -EINVAL. */
int history_from_json(History *h, json_object *array);
/* The number of the newest one; 0: there is none. */
uint64_t history_last_turn(const History *h);
/* All there are so far are turns of the session that this one was restored from, with its numbers. */
void history_set_restored(History *h);
void history_done(History *h);
