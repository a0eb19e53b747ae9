/* SPDX-License-Identifier: MIT */

/* A list, newest at the end; the oldest entries make room. Code is cut at a character's edge. */

#include "daemon/history.h"

#include <errno.h>

#include "daemon/environment.h"

struct HistoryEntry {
        HistoryEntry *next;
        uint64_t turn;
        const char *interpreter;
        int exit_code;
        uint64_t duration_usec;
        uint64_t time_usec;
        bool truncated;
        bool restored;
        size_t code_size;
        char code[];
};

static void history_drop_first(History *h) {
        HistoryEntry *e = h->first;

        h->first = e->next;
        if (!h->first)
                h->last = NULL;
        h->n_entries--;
        h->code_size -= e->code_size;
        free(e);
}

static size_t cut_utf8(const char *s, size_t size, size_t max) {
        if (size <= max)
                return size;

        while (max > 0 && ((unsigned char) s[max] & 0xC0) == 0x80)
                max--;
        return max;
}

size_t history_code_size(const char *code, size_t size) {
        return cut_utf8(code, size, HISTORY_CODE_MAX);
}

int history_add(History *h, const HistoryRecord *record) {
        size_t size = history_code_size(record->code, record->code_size);
        HistoryEntry *e;

        e = malloc(sizeof(*e) + size);
        if (!e)
                return -ENOMEM;

        *e = (HistoryEntry){
                .turn = record->turn,
                .interpreter = record->interpreter,
                .exit_code = record->exit_code,
                .duration_usec = record->duration_usec,
                .time_usec = record->time_usec,
                .truncated = size < record->code_size,
                .code_size = size,
        };
        memcpy(e->code, record->code, size);

        if (h->last)
                h->last->next = e;
        else
                h->first = e;
        h->last = e;
        h->n_entries++;
        h->code_size += size;

        while (h->n_entries > HISTORY_ENTRIES_MAX || (h->code_size > HISTORY_TOTAL_MAX && h->n_entries > 1))
                history_drop_first(h);
        return 0;
}

static int entry_to_json(const HistoryEntry *e, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || json_put_uint(o, "turn", e->turn) < 0 ||
            json_put_string(o, "interpreter", e->interpreter) < 0 ||
            json_put_bytes(o, "code", e->code, e->code_size) < 0 ||
            json_put_bool(o, "code_truncated", e->truncated) < 0 ||
            json_put_int(o, "exit_code", e->exit_code) < 0 ||
            json_put_number(o, "duration_ms", (double) e->duration_usec / USEC_PER_MSEC) < 0 ||
            json_put_uint(o, "time_usec", e->time_usec) < 0 || json_put_bool(o, "restored", e->restored) < 0)
                return -ENOMEM;

        *ret = TAKE_PTR(o);
        return 0;
}

int history_to_json(const History *h, json_object **ret) {
        _cleanup_json_ json_object *array = json_object_new_array();
        int r;

        if (!array)
                return -ENOMEM;

        for (const HistoryEntry *e = h->first; e; e = e->next) {
                json_object *o;

                r = entry_to_json(e, &o);
                if (r < 0)
                        return r;
                r = json_array_put(array, o);
                if (r < 0)
                        return r;
        }

        *ret = TAKE_PTR(array);
        return 0;
}

static int entry_from_json(History *h, json_object *o) {
        struct {
                uint64_t turn, time_usec;
                const char *interpreter;
                JsonBytes code;
                bool truncated, restored;
                int64_t exit_code;
                double duration_ms;
        } p = {};
        static const JsonField table[] = {
                { "turn", JSON_KIND_UINT, offsetof(typeof(p), turn), JSON_MANDATORY },
                { "interpreter", JSON_KIND_STRING, offsetof(typeof(p), interpreter), JSON_MANDATORY },
                { "code", JSON_KIND_BYTES, offsetof(typeof(p), code), JSON_MANDATORY },
                { "code_truncated", JSON_KIND_BOOL, offsetof(typeof(p), truncated), JSON_MANDATORY },
                { "exit_code", JSON_KIND_INT, offsetof(typeof(p), exit_code), JSON_MANDATORY },
                { "duration_ms", JSON_KIND_NUMBER, offsetof(typeof(p), duration_ms), JSON_MANDATORY },
                { "time_usec", JSON_KIND_UINT, offsetof(typeof(p), time_usec), JSON_MANDATORY },
                { "restored", JSON_KIND_BOOL, offsetof(typeof(p), restored) },
                {},
        };
        Interpreter interpreter;
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (r < 0)
                return r;
        interpreter = interpreter_from_string(p.interpreter);
        if (interpreter < 0 || p.exit_code < 0 || p.exit_code > 255 ||
            !(p.duration_ms >= 0 && p.duration_ms < 1e15))
                return -EINVAL;

        r = history_add(h, &(HistoryRecord){
                                           .turn = p.turn,
                                           .interpreter = interpreter_to_string(interpreter),
                                           .code = p.code.data,
                                           .code_size = p.code.size,
                                           .exit_code = (int) p.exit_code,
                                           .duration_usec = (uint64_t) (p.duration_ms * USEC_PER_MSEC),
                                           .time_usec = p.time_usec,
                                   });
        if (r < 0)
                return r;
        h->last->truncated |= p.truncated;
        h->last->restored = p.restored;
        return 0;
}

int history_from_json(History *h, json_object *array) {
        size_t n = json_object_array_length(array);
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = entry_from_json(h, json_object_array_get_idx(array, i));
        return r;
}

uint64_t history_last_turn(const History *h) {
        return h->last && !h->last->restored ? h->last->turn : 0;
}

void history_set_restored(History *h) {
        for (HistoryEntry *e = h->first; e; e = e->next)
                e->restored = true;
}

void history_done(History *h) {
        while (h->first)
                history_drop_first(h);
}
