/* SPDX-License-Identifier: MIT */

/* Facts of a turn to words and JSON. */

#include "daemon/turn-reply.h"

#include <inttypes.h>

static const char *const origin_names[_SESSION_ORIGIN_MAX] = {
        [SESSION_ORIGIN_EPHEMERAL] = "ephemeral",
        [SESSION_ORIGIN_CREATED] = "created",
        [SESSION_ORIGIN_RESUMED] = "resumed",
};

static const char *const stream_names[_OUTPUT_STREAM_MAX] = {
        [OUTPUT_STDOUT] = "stdout",
        [OUTPUT_STDERR] = "stderr",
};

int turn_output_to_json(OutputStream stream, const char *text, size_t size, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object(), *output = json_object_new_object();

        if (!o || !output || json_put_string(output, "stream", stream_names[stream]) < 0 ||
            json_put_bytes(output, "text", text, size) < 0 ||
            json_put_object(o, "output", TAKE_PTR(output)) < 0)
                return -ENOMEM;

        *ret = TAKE_PTR(o);
        return 0;
}

static const char *turn_state(const Turn *t) {
        if (t->origin == SESSION_ORIGIN_EPHEMERAL)
                return "none";
        return t->lost ? "lost" : "kept";
}

static int put_per_stream(json_object *o, const Turn *t) {
        _cleanup_json_ json_object *truncated = json_object_new_object(), *files = json_object_new_object();

        if (!truncated || !files)
                return -ENOMEM;

        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++)
                if (json_put_uint(truncated, stream_names[i], t->output[i].omitted) < 0 ||
                    json_put_string(files, stream_names[i], t->output[i].file) < 0)
                        return -ENOMEM;

        if (json_put_object(o, "truncated", TAKE_PTR(truncated)) < 0 ||
            json_put_object(o, "files", TAKE_PTR(files)) < 0)
                return -ENOMEM;
        return 0;
}

/* Still running: what the turn has cost and said so far, and no code. */
static int put_outcome(json_object *o, const Turn *t) {
        uint64_t duration = t->finished      ? t->duration_usec
                            : t->started > 0 ? now_monotonic() - t->started
                                             : 0;
        int r;

        r = t->finished ? json_put_int(o, "exit_code", t->exit_code) : json_put_object(o, "exit_code", NULL);
        if (r < 0 || json_put_string(o, "signal", t->signal > 0 ? signal_name(t->signal) : NULL) < 0 ||
            json_put_bool(o, "timed_out", t->timed_out) < 0 ||
            json_put_number(o, "duration_ms", (double) duration / USEC_PER_MSEC) < 0)
                return -ENOMEM;
        return 0;
}

static int put_output(json_object *o, const Turn *t) {
        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++)
                if (json_put_bytes(o, stream_names[i], buffer_data(&t->output[i].text),
                                   buffer_size(&t->output[i].text)) < 0)
                        return -ENOMEM;
        return 0;
}

int turn_reply_to_json(const Turn *t, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();
        int r;

        if (!o || json_put_string(o, "session", t->context->session_name) < 0 ||
            json_put_string(o, "id", t->context->session_id) < 0 ||
            json_put_string(o, "environment", t->context->environment) < 0 ||
            json_put_string(o, "interpreter", interpreter_to_string(t->interpreter)) < 0 ||
            json_put_uint(o, "turn", t->number) < 0 || put_output(o, t) < 0 || put_outcome(o, t) < 0 ||
            json_put_string(o, "state", turn_state(t)) < 0 ||
            json_put_string(o, "session_state", origin_names[t->origin]) < 0 || put_per_stream(o, t) < 0 ||
            json_put_int(o, "images", 0) < 0 || json_put_object(o, "result", NULL) < 0)
                return -ENOMEM;

        if (buffer_size(&t->notice) > 0)
                r = json_put_bytes(o, "notice", buffer_data(&t->notice), buffer_size(&t->notice));
        else
                r = json_put_object(o, "notice", NULL);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(o);
        return 0;
}

/* How a stopped or ended interpreter left its state. */
static const char *fate(const AgentResult *result, bool ephemeral) {
        if (ephemeral)
                return "";
        return result->lost ? " Its variables and imports are lost, files in /workspace are kept; the next "
                              "turn starts a new one."
                            : " State was kept.";
}

static int describe_end(Turn *t, const AgentResult *result) {
        const char *name = interpreter_to_string(t->interpreter);
        const char *what = fate(result, t->origin == SESSION_ORIGIN_EPHEMERAL);

        if (result->timed_out)
                return turn_add_notice(
                                t,
                                "Timed out after %g s%s.%s Ask for a longer timeout, or start long work in "
                                "the background and look at it in a later turn.",
                                (double) t->timeout_usec / USEC_PER_SEC,
                                result->lost ? "; it ignored the interrupt, so the interpreter was killed"
                                             : " and was interrupted",
                                what);
        if (result->interrupted)
                return turn_add_notice(t, "Interrupted on request.%s", what);
        if (result->signal > 0)
                return turn_add_notice(t, "%s was ended by %s.%s", name,
                                       signal_name((int) result->signal) ?: "a signal", what);
        if (result->lost)
                return turn_add_notice(t, "%s ended with code %d.%s", name, (int) result->exit_code, what);
        return 0;
}

static int describe_output(Turn *t, OutputStream stream, const AgentOutputResult *o) {
        int r;

        if (o->omitted > 0) {
                if (t->output[stream].file)
                        r = turn_add_notice(t,
                                            "%s was long: its start and end are shown, %" PRIu64
                                            " bytes between them left out; read %s for more.",
                                            stream_names[stream], o->omitted, t->output[stream].file);
                else
                        r = turn_add_notice(t,
                                            "%s was long: its start and end are shown, %" PRIu64
                                            " bytes between them left out.",
                                            stream_names[stream], o->omitted);
                if (r < 0)
                        return r;
        }
        if (o->dropped > 0)
                return turn_add_notice(
                                t,
                                "%" PRIu64
                                " bytes that background processes wrote to %s between turns were dropped.",
                                o->dropped, stream_names[stream]);
        return 0;
}

int turn_describe_result(Turn *t, const AgentResult *result) {
        int r;

        if (result->restarted) {
                r = turn_add_notice(t, "A new %s was started for this turn, because the last one had ended.",
                                    interpreter_to_string(t->interpreter));
                if (r < 0)
                        return r;
        }

        r = describe_end(t, result);
        if (r < 0)
                return r;

        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++) {
                r = describe_output(t, (OutputStream) i, &result->output[i]);
                if (r < 0)
                        return r;
        }

        if (result->late)
                return turn_add_notice(t, "The output begins with what background processes wrote after the "
                                          "last turn.");
        return 0;
}

int turn_describe_limits(Turn *t, const Limits *limits, const CgroupCounters *before,
                         const CgroupCounters *after) {
        int r;

        if (after->oom_kills > before->oom_kills) {
                r = turn_add_notice(t,
                                    "Memory limit %" PRIu64
                                    " MB reached: a process was killed. Use less memory at once, or ask for "
                                    "more when the session is created.",
                                    limits->memory_mb);
                if (r < 0)
                        return r;
        }
        if (after->process_hits > before->process_hits)
                return turn_add_notice(
                                t, "Process limit %" PRIu64 " reached: starting a process or thread failed.",
                                limits->processes);
        return 0;
}
