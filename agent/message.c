/* SPDX-License-Identifier: MIT */

/*
 * Requests are parsed by the table as all JSON is. Results are written without a tree, since one is sent
 * every turn.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "agent/driver-protocol.h"
#include "agent/message.h"
#include "lib/agent-protocol.h"
#include "lib/frame.h"
#include "lib/json-writer.h"
#include "lib/json.h"

static CheckpointMode checkpoint_mode_from_string(const char *s) {
        static const char *const names[_CHECKPOINTS_MODE_MAX] = {
                [CHECKPOINTS_NEVER] = "never",
                [CHECKPOINTS_AUTO] = "auto",
                [CHECKPOINTS_ALWAYS] = "always",
        };

        for (CheckpointMode m = 0; m < _CHECKPOINTS_MODE_MAX; m++)
                if (streq(s, names[m]))
                        return m;
        return _CHECKPOINTS_MODE_INVALID;
}

int request_parse(const char *payload, size_t size, ExecuteRequest *ret) {
        struct {
                const char *type, *interpreter, *kept, *checkpoints;
                uint64_t timeout_ms, checkpoint_mb;
        } p = { .checkpoints = "never" };
        static const JsonField table[] = {
                { "type", JSON_KIND_STRING, offsetof(typeof(p), type), JSON_MANDATORY },
                { "interpreter", JSON_KIND_STRING, offsetof(typeof(p), interpreter), JSON_MANDATORY },
                { "timeout_ms", JSON_KIND_UINT, offsetof(typeof(p), timeout_ms), JSON_MANDATORY },
                { "tag", JSON_KIND_STRING, offsetof(typeof(p), kept) },
                { "origin", JSON_KIND_STRING, offsetof(typeof(p), kept) },
                { "checkpoints", JSON_KIND_STRING, offsetof(typeof(p), checkpoints) },
                { "checkpoint_mb", JSON_KIND_UINT, offsetof(typeof(p), checkpoint_mb) },
                {},
        };
        _cleanup_json_ json_object *o = NULL;
        ExecuteRequest request = {};
        const char *end;
        int r;

        end = memchr(payload, 0, size);
        if (!end || end - payload > REQUEST_HEAD_MAX)
                return -EBADMSG;

        r = json_parse(payload, (size_t) (end - payload), &o, NULL);
        if (r < 0)
                return r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;

        request.code = end + 1;
        request.code_size = size - (size_t) (end + 1 - payload);
        if (!streq(p.type, "execute") || strlen(p.interpreter) >= sizeof(request.interpreter) ||
            p.timeout_ms > REQUEST_TIMEOUT_USEC_MAX / USEC_PER_MSEC || request.code_size > AGENT_CODE_MAX)
                return -EINVAL;
        request.checkpoints = checkpoint_mode_from_string(p.checkpoints);
        if (request.checkpoints < 0 || p.checkpoint_mb > INT64_MAX / MIB)
                return -EINVAL;
        request.checkpoint_bytes = p.checkpoint_mb * MIB;

        (void) strcpy(request.interpreter, p.interpreter);
        request.timeout_usec = p.timeout_ms * USEC_PER_MSEC;
        *ret = request;
        return 0;
}

/* What is 0 or null goes without saying: most results are two numbers. */
static void write_uint(JsonWriter *w, const char *key, uint64_t value) {
        if (value > 0)
                json_write_uint(w, key, value);
}

static void write_truth(JsonWriter *w, const char *key, bool value) {
        if (value)
                json_write_bool(w, key, value);
}

static void write_string(JsonWriter *w, const char *key, const char *value) {
        if (value)
                json_write_string(w, key, value);
}

static void write_output(JsonWriter *w, const char *key, const OutputSummary *s) {
        if (s->bytes == 0 && s->omitted == 0 && s->dropped == 0 && !s->file)
                return;

        json_write_object(w, key);
        write_uint(w, "bytes", s->bytes);
        write_uint(w, "omitted", s->omitted);
        write_uint(w, "dropped", s->dropped);
        write_string(w, "file", s->file);
        json_write_object_end(w);
}

static void write_outbox(JsonWriter *w, const Outbox *o) {
        if (o->named > 0) {
                json_write_array(w, "out");
                for (size_t i = 0; i < o->n; i++) {
                        if (!o->files[i].named)
                                continue;
                        json_write_object(w, NULL);
                        json_write_string(w, "name", o->files[i].name);
                        json_write_uint(w, "bytes", o->files[i].bytes);
                        json_write_object_end(w);
                }
                json_write_array_end(w);
        }
        write_uint(w, "out_more", o->more);
}

void result_set_error(TurnResult *result, const char *error, const char *format, ...) {
        va_list ap;

        result->error = error;
        result->exit_code = streq(error, "missing") ? EXIT_CODE_MISSING : EXIT_CODE_FAILED;

        va_start(ap, format);
        (void) vsnprintf(result->error_text, sizeof(result->error_text), format, ap);
        va_end(ap);
}

static const char *const obstacle_names[_CHECKPOINT_OBSTACLE_MAX] = {
        [CHECKPOINT_NOT_FORKED] = "fork",
        [CHECKPOINT_THREADS] = "threads",
        [CHECKPOINT_LOCKED] = "lock",
        [CHECKPOINT_LARGE] = "large",
        [CHECKPOINT_NOT_WORTH_IT] = "short",
};

static void write_gone(JsonWriter *w, unsigned gone) {
        write_truth(w, "pipes_gone", gone & WAKE_PIPES_GONE);
        write_truth(w, "children_gone", gone & WAKE_CHILDREN_GONE);
        write_truth(w, "threads_gone", gone & WAKE_THREADS_GONE);
        write_truth(w, "directory_gone", gone & WAKE_DIRECTORY_GONE);
        write_truth(w, "files_gone", gone & WAKE_FILES_GONE);
}

int result_print(const TurnResult *t, Buffer *b) {
        JsonWriter w = JSON_WRITER(b);

        json_write_object(&w, NULL);
        json_write_int(&w, "exit_code", t->exit_code);
        write_uint(&w, "signal", (uint64_t) t->signal);
        write_truth(&w, "timed_out", t->timed_out);
        write_truth(&w, "interrupted", t->interrupted);
        write_string(&w, "state", t->lost ? "lost" : t->rolled_back ? "rolled_back" : NULL);
        write_uint(&w, "rolled_back_to", t->rolled_back_to);
        write_gone(&w, t->gone);
        write_string(&w, "obstacle", obstacle_names[t->obstacle]);
        write_truth(&w, "restarted", t->restarted);
        write_truth(&w, "late", t->late);
        json_write_uint(&w, "duration_us", t->duration_usec);
        write_output(&w, "stdout", &t->out);
        write_output(&w, "stderr", &t->err);
        write_string(&w, "full", t->full);
        write_uint(&w, "values_dropped", t->values_dropped);
        if (t->outbox)
                write_outbox(&w, t->outbox);
        write_string(&w, "error", t->error);
        write_string(&w, "error_text", t->error ? t->error_text : NULL);
        json_write_object_end(&w);
        return w.error;
}

static int state_print(const HelloState *s, Buffer *b) {
        int r;

        r = buffer_printf(b, ",\"turn\":%" PRIu64 ",\"running\":%s,\"total_us\":%" PRIu64 ",\"age_us\":%" PRIu64,
                          s->turn, s->running ? "true" : "false", s->total_usec, s->age_usec);
        /* As it came: it is JSON, or it would not have been run. */
        if (r >= 0 && *s->request)
                r = buffer_printf(b, ",\"request\":%s", s->request);
        return r;
}

int hello_append(const HelloState *state, Buffer *frames) {
        _cleanup_(buffer_done) Buffer text = {};
        int r;

        r = buffer_printf(&text, "{\"event\":\"hello\",\"protocol\":%d,\"version\":\"%s\"",
                          NIX_SANDBOX_AGENT_PROTOCOL, NIX_SANDBOX_VERSION);
        if (r >= 0 && state)
                r = state_print(state, &text);
        if (r >= 0)
                r = buffer_append_str(&text, "}");
        if (r < 0)
                return r;

        return frame_append(frames, AGENT_FRAME_EVENT, /* turn= */ 0, buffer_data(&text),
                            buffer_size(&text));
}
