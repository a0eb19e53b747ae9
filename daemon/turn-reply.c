/* SPDX-License-Identifier: MIT */

/* Facts of a turn to words and JSON. */

#include "daemon/turn-reply.h"

#include <inttypes.h>

#include "lib/json-writer.h"

static const char *const origin_names[_SESSION_ORIGIN_MAX] = {
        [SESSION_ORIGIN_EPHEMERAL] = "ephemeral",
        [SESSION_ORIGIN_CREATED] = "created",
        [SESSION_ORIGIN_RESUMED] = "resumed",
        [SESSION_ORIGIN_RESTORED] = "restored",
};

const char *session_origin_to_string(SessionOrigin o) {
        assert(o >= 0 && o < _SESSION_ORIGIN_MAX);

        return origin_names[o];
}

SessionOrigin session_origin_from_string(const char *s) {
        for (SessionOrigin o = 0; s && o < _SESSION_ORIGIN_MAX; o++)
                if (streq(s, origin_names[o]))
                        return o;
        return SESSION_ORIGIN_RESUMED;
}

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
        return t->lost ? "lost" : t->rolled_back ? "rolled_back" : "kept";
}

static void write_per_stream(JsonWriter *w, const Turn *t) {
        json_write_object(w, "truncated");
        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++)
                json_write_uint(w, stream_names[i], t->output[i].omitted);
        json_write_object_end(w);

        json_write_object(w, "files");
        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++)
                json_write_string(w, stream_names[i], t->output[i].file);
        json_write_object_end(w);
}

/* Still running: what the turn has cost and said so far, and no code. */
static void write_outcome(JsonWriter *w, const Turn *t) {
        if (t->finished)
                json_write_int(w, "exit_code", t->exit_code);
        else
                json_write_null(w, "exit_code");
        json_write_string(w, "signal", t->signal > 0 ? signal_name(t->signal) : NULL);
        json_write_bool(w, "timed_out", t->timed_out);
        json_write_usec_as_ms(w, "duration_ms",
                              t->finished      ? t->duration_usec
                              : t->started > 0 ? now_monotonic() - t->started
                                               : 0);
}

int turn_reply_append(const Turn *t, Buffer *b) {
        JsonWriter w = JSON_WRITER(b);

        json_write_object(&w, NULL);
        json_write_string(&w, "session", t->context->session_name);
        json_write_string(&w, "id", t->context->session_id);
        json_write_string(&w, "environment", t->context->environment);
        json_write_string(&w, "interpreter", interpreter_to_string(t->interpreter));
        json_write_uint(&w, "turn", t->number);
        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++)
                json_write_bytes(&w, stream_names[i], buffer_data(&t->output[i].text),
                                 buffer_size(&t->output[i].text));
        write_outcome(&w, t);
        json_write_string(&w, "state", turn_state(t));
        json_write_string(&w, "session_state", origin_names[t->origin]);
        write_per_stream(&w, t);
        turn_values_write(t->finished ? &t->values : NULL, &w);
        if (buffer_size(&t->notice) > 0)
                json_write_bytes(&w, "notice", buffer_data(&t->notice), buffer_size(&t->notice));
        else
                json_write_null(&w, "notice");
        json_write_object_end(&w);
        return w.error;
}

/* How a stopped or ended interpreter left its state. */
static const char *fate(const AgentResult *result, bool ephemeral) {
        if (ephemeral)
                return "";
        if (result->rolled_back)
                return ""; /* describe_rollback() says it */
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
                                result->lost || result->rolled_back
                                                ? "; it ignored the interrupt, so the interpreter was killed"
                                                : " and was interrupted",
                                what);
        if (result->interrupted)
                return turn_add_notice(t, "Interrupted on request.%s", what);
        if (result->signal > 0)
                return turn_add_notice(t, "%s was ended by %s.%s", name,
                                       signal_name((int) result->signal) ?: "a signal", what);
        if (result->lost || result->rolled_back)
                return turn_add_notice(t, "%s ended with code %d.%s", name, (int) result->exit_code, what);
        return 0;
}

/* What a state that was gone back to cannot have. */
static int describe_gone(Turn *t, const AgentResult *result) {
        int r = 0;

        if (result->pipes_gone)
                r = turn_add_notice(t, "Pipes and sockets that were open then are closed.");
        if (r >= 0 && result->children_gone)
                r = turn_add_notice(t, "Processes that it had started can no longer be waited for%s.",
                                    t->interpreter == INTERPRETER_PYTHON ? ": poll() of one says 0" : "");
        if (r >= 0 && result->threads_gone)
                r = turn_add_notice(t, "Its threads are gone; a lock that one of them held is never released.");
        if (r >= 0 && result->files_gone)
                r = turn_add_notice(t, "Descriptors that it had opened are closed.");
        if (r >= 0 && result->directory_gone)
                r = turn_add_notice(t, "Its working directory is not there any more: it is in /workspace now.");
        return r;
}

static int describe_rollback(Turn *t, const AgentResult *result) {
        const char *name = interpreter_to_string(t->interpreter);
        int r;

        if (result->rolled_back_to == 0)
                return 0;
        if (result->rolled_back)
                r = turn_add_notice(t,
                                    "The state is that after turn %" PRIu64 " again. Files that were written since, "
                                    "and processes that were started, stay as they are.",
                                    result->rolled_back_to);
        else
                r = turn_add_notice(t,
                                    "%s had ended since its last turn: this turn began with the state after turn "
                                    "%" PRIu64 ".",
                                    name, result->rolled_back_to);
        return r < 0 ? r : describe_gone(t, result);
}

/* Why a lost state could not be had back. */
static int describe_obstacle(Turn *t, const AgentResult *result) {
        static const char *const reasons[][2] = {
                { "short", "the turns before it were too short to pay for one; with \"checkpoints\": \"always\" in "
                           "the configuration there is one after each" },
                { "threads", "threads were running" },
                { "lock", "it held the lock of a file, as of a database in a transaction" },
                { "fork", "there was no room for another process" },
                { "large", "the state was larger than 1 MB" },
        };

        for (size_t i = 0; result->lost && result->obstacle && i < ELEMENTSOF(reasons); i++)
                if (streq(result->obstacle, reasons[i][0]))
                        return turn_add_notice(t, "There was no checkpoint to go back to: %s.", reasons[i][1]);
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

/* What was left out of what the turn gave back, and what to do about it. */
static int describe_values(Turn *t, const AgentResult *result) {
        int r = 0;

        if (result->values_dropped > 0)
                r = turn_add_notice(t,
                                    "Pictures or results left out: %" PRIu64 ". A picture may have 2 MB, a result "
                                    "256 kB, and a turn 16 of them with 4 MB in all. Write what is larger to files in "
                                    "/workspace/out of a session.",
                                    result->values_dropped);
        if (r >= 0 && t->values.bad_result)
                r = turn_add_notice(t,
                                    "The result was left out: it is not JSON, or is nested deeper than %d, or has "
                                    "an integer of more than 64 bits or the same key twice.",
                                    TURN_RESULT_DEPTH_MAX);
        if (r >= 0 && t->values.bad_pictures > 0)
                r = turn_add_notice(t, "Pictures left out: %u. They are not of the type that they were given as.",
                                    t->values.bad_pictures);
        if (r >= 0 && result->out_more > 0 && t->origin != SESSION_ORIGIN_EPHEMERAL)
                r = turn_add_notice(t,
                                    "Files in /workspace/out that are new or have changed, and are not named: "
                                    "%" PRIu64 ".",
                                    result->out_more);
        return r;
}

int turn_describe_result(Turn *t, const AgentResult *result) {
        int r;

        if (result->restarted && result->rolled_back_to == 0) {
                r = turn_add_notice(t, "A new %s was started for this turn, because the last one had ended.",
                                    interpreter_to_string(t->interpreter));
                if (r < 0)
                        return r;
        }

        r = describe_end(t, result);
        if (r >= 0)
                r = describe_rollback(t, result);
        if (r >= 0 && t->origin != SESSION_ORIGIN_EPHEMERAL)
                r = describe_obstacle(t, result);
        if (r < 0)
                return r;

        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++) {
                r = describe_output(t, (OutputStream) i, &result->output[i]);
                if (r < 0)
                        return r;
        }

        r = describe_values(t, result);
        if (r < 0)
                return r;

        if (result->late)
                return turn_add_notice(t, "The output begins with what background processes wrote after the "
                                          "last turn.");
        return 0;
}

static const char *const hit_names[_TURN_HIT_MAX] = {
        [TURN_HIT_MEMORY] = "memory",
        [TURN_HIT_USER_MEMORY] = "user-memory",
        [TURN_HIT_PROCESSES] = "processes",
        [TURN_HIT_CPU] = "cpu",
        [TURN_HIT_DISK] = "disk",
};

const char *turn_hit_to_string(TurnHit h) {
        assert(h >= 0 && h < _TURN_HIT_MAX);

        return hit_names[h];
}

/* Only of /workspace it is known how large it was made: limits can have been set since. */
static int describe_disk(Turn *t, uint64_t workspace_mb) {
        if (streq(t->full, "/workspace"))
                return turn_add_notice(t,
                                       "Disk limit %" PRIu64 " MB of /workspace reached: writing fails. Delete files "
                                       "there, or write less.",
                                       workspace_mb);
        return turn_add_notice(t, "Disk limit of %s reached: writing fails. Delete files there, or use /workspace.",
                               t->full);
}

int turn_describe_hit(Turn *t, const Limits *limits, uint64_t workspace_mb, TurnHit hit) {
        switch (hit) {
        case TURN_HIT_MEMORY:
                return turn_add_notice(t,
                                       "Memory limit %" PRIu64
                                       " MB reached: a process was killed. Use less memory at once, or give the "
                                       "session more ('sandboxctl set').",
                                       limits->memory_mb);
        case TURN_HIT_USER_MEMORY:
                return turn_add_notice(t, "Out of memory: a process was killed, because all your sessions "
                                          "together, or the machine, reached their limit. End sessions that "
                                          "are not needed.");
        case TURN_HIT_PROCESSES:
                return turn_add_notice(
                                t, "Process limit %" PRIu64 " reached: starting a process or thread failed.",
                                limits->processes);
        case TURN_HIT_CPU:
                return turn_add_notice(t,
                                       "CPU limit %.10g reached: the turn was held back for a good part of its "
                                       "time.",
                                       limits->cpus);
        case TURN_HIT_DISK:
                return describe_disk(t, workspace_mb);
        case _TURN_HIT_MAX:
        default:
                assert_se(false);
                return -EINVAL;
        }
}

int turn_describe_bound(Turn *t, Bound bound, uint64_t left_usec) {
        const char *what = bound == BOUND_TURN_BUDGET ? "of turn time is left for the session; then it ends"
                                                      : "is left until the session ends";

        if (left_usec >= 120 * USEC_PER_SEC)
                return turn_add_notice(t, "%" PRIu64 " min %s (%s).", left_usec / (60 * USEC_PER_SEC), what,
                                       bound_to_string(bound));
        return turn_add_notice(t, "%" PRIu64 " s %s (%s).", left_usec / USEC_PER_SEC, what, bound_to_string(bound));
}
