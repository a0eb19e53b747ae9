/* SPDX-License-Identifier: MIT */

/*
 * The operation rollback {"interpreter":"python", "turns":u}: the state goes back by that many checkpoints. The living
 * process is killed, as are the copies that are newer than the chosen one, which then takes its place.
 */

#include <errno.h>

#include "agent/operation.h"
#include "lib/json-writer.h"
#include "lib/json.h"
#include "lib/text.h"

#define ROLLBACK_USEC (5 * USEC_PER_SEC)

typedef struct Rollback {
        Interpreter *interpreter;
        uint64_t turn;                          /* whose state it will be */
        char token[DRIVER_TOKEN_LENGTH + 1];    /* of "wake" */
} Rollback;

static int parse_rollback(Operation *o, json_object *request, Interpreter **ret, uint64_t *ret_turns) {
        struct {
                const char *interpreter;
                uint64_t turns;
        } p = {};
        static const JsonField table[] = {
                { "interpreter", JSON_KIND_STRING, offsetof(typeof(p), interpreter), JSON_MANDATORY },
                { "turns", JSON_KIND_UINT, offsetof(typeof(p), turns), JSON_MANDATORY },
                {},
        };
        int r;

        r = json_dispatch(request, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;

        *ret = interpreter_find(o->interpreters, p.interpreter);
        *ret_turns = p.turns;
        return *ret && p.turns > 0 ? 0 : -EINVAL;
}

/* Its process has ended: the newest copy that is left goes on. */
static int rollback_wake(Operation *o) {
        Rollback *b = o->state;
        Checkpoint checkpoint;
        int r;

        if (checkpoints_take(&b->interpreter->checkpoints, &checkpoint) < 0)
                return operation_fail(o, "failed", "the checkpoint has ended; the state is lost");

        b->turn = checkpoint.turn;
        r = interpreter_wake(b->interpreter, &checkpoint, b->token);
        if (r == -EPIPE) {
                interpreter_kill(b->interpreter); /* and the next one when it has ended */
                return 0;
        }
        return r;
}

static int rollback_begin(Operation *o, json_object *request) {
        Interpreter *i;
        uint64_t turns;
        Rollback *b;

        if (parse_rollback(o, request, &i, &turns) < 0)
                return operation_fail(o, "failed", "the request cannot be understood");
        if (!checkpoints_go_back(&i->checkpoints, turns))
                return operation_fail(o, "refused", "there are not so many checkpoints");

        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        b->interpreter = i;
        o->state = b;
        o->deadline_usec = now_monotonic() + ROLLBACK_USEC;
        if (i->pid == 0)
                return rollback_wake(o);
        interpreter_kill(i);
        return 0;
}

static int rollback_on_interpreter_ended(Operation *o, Interpreter *i) {
        Rollback *b = o->state;

        return i == b->interpreter ? rollback_wake(o) : 0;
}

static int rollback_on_report(Operation *o, Interpreter *i, const Report *report) {
        _cleanup_(buffer_done) Buffer text = {};
        JsonWriter w = JSON_WRITER(&text);
        Rollback *b = o->state;
        int r;

        if (i != b->interpreter || i->ready || !streq(report->token, b->token))
                return 0;

        interpreter_awake(i, b->turn);
        r = interpreter_ask_checkpoint(i);
        if (r < 0)
                return r;

        json_write_object(&w, NULL);
        json_write_uint(&w, "turn", b->turn);
        json_write_bool(&w, "pipes_gone", report->status & WAKE_PIPES_GONE);
        json_write_bool(&w, "children_gone", report->status & WAKE_CHILDREN_GONE);
        json_write_bool(&w, "threads_gone", report->status & WAKE_THREADS_GONE);
        json_write_object_end(&w);
        return w.error < 0 ? w.error : operation_end(o, buffer_data(&text), buffer_size(&text));
}

static int rollback_on_deadline(Operation *o) {
        return operation_fail(o, "failed", "the checkpoint did not answer; the state is lost");
}

/* A copy that is given up on the way is of no use to a turn, but an older one may be. */
static void rollback_done(Operation *o) {
        Rollback *b = o->state;

        if (b && b->interpreter->pid > 0 && !b->interpreter->ready)
                interpreter_kill(b->interpreter);
        free(b);
}

const OperationType operation_rollback = {
        .name = "rollback",
        .channel = OPERATION_NO_CHANNEL,
        .drivers = true,
        .begin = rollback_begin,
        .on_report = rollback_on_report,
        .on_interpreter_ended = rollback_on_interpreter_ended,
        .on_deadline = rollback_on_deadline,
        .done = rollback_done,
};
