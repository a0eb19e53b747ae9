/* SPDX-License-Identifier: MIT */

/*
 * The reply to a turn: what the program wrote, then notes, then one trailer line with the facts, in the
 * order in which a model needs them. The facts are also in the result's _meta for programs.
 */

#include <inttypes.h>
#include <math.h>

#include "lib/json-writer.h"

#include "excerpt.h"
#include "must.h"
#include "render-values.h"
#include "render.h"

#define RESULT_MAX 4000U

typedef struct Turn {
        const char *session, *id, *environment, *interpreter;
        JsonBytes out, err;
        int64_t number;
        int64_t exit_code;              /* EXIT_NONE while it is running */
        const char *signal;
        bool timed_out;
        double duration_ms;
        const char *state, *session_state;
        json_object *truncated, *files;
        json_object *pictures, *outputs;
        json_object *result;            /* any value */
        const char *notice;
        /* out of truncated and files */
        uint64_t out_omitted, err_omitted;
        const char *out_file, *err_file;
} Turn;

#define EXIT_NONE INT64_MIN

static const JsonField turn_fields[] = {
        { "session", JSON_KIND_STRING, offsetof(Turn, session) },
        { "id", JSON_KIND_STRING, offsetof(Turn, id), JSON_MANDATORY },
        { "environment", JSON_KIND_STRING, offsetof(Turn, environment) },
        { "interpreter", JSON_KIND_STRING, offsetof(Turn, interpreter) },
        { "turn", JSON_KIND_INT, offsetof(Turn, number), JSON_MANDATORY },
        { "stdout", JSON_KIND_BYTES, offsetof(Turn, out), JSON_MANDATORY },
        { "stderr", JSON_KIND_BYTES, offsetof(Turn, err), JSON_MANDATORY },
        { "exit_code", JSON_KIND_INT, offsetof(Turn, exit_code) },
        { "signal", JSON_KIND_STRING, offsetof(Turn, signal) },
        { "timed_out", JSON_KIND_BOOL, offsetof(Turn, timed_out), JSON_MANDATORY },
        { "duration_ms", JSON_KIND_NUMBER, offsetof(Turn, duration_ms), JSON_MANDATORY },
        { "state", JSON_KIND_STRING, offsetof(Turn, state), JSON_MANDATORY },
        { "session_state", JSON_KIND_STRING, offsetof(Turn, session_state), JSON_MANDATORY },
        { "truncated", JSON_KIND_OBJECT, offsetof(Turn, truncated) },
        { "files", JSON_KIND_OBJECT, offsetof(Turn, files) },
        { "pictures", JSON_KIND_ARRAY, offsetof(Turn, pictures) },
        { "result", JSON_KIND_ANY, offsetof(Turn, result) },
        { "outputs", JSON_KIND_ARRAY, offsetof(Turn, outputs) },
        { "notice", JSON_KIND_STRING, offsetof(Turn, notice) },
        {}
};

static const JsonField truncated_fields[] = {
        { "stdout", JSON_KIND_UINT, offsetof(Turn, out_omitted) },
        { "stderr", JSON_KIND_UINT, offsetof(Turn, err_omitted) },
        {}
};

static const JsonField files_fields[] = {
        { "stdout", JSON_KIND_STRING, offsetof(Turn, out_file) },
        { "stderr", JSON_KIND_STRING, offsetof(Turn, err_file) },
        {}
};

static bool turn_parse(json_object *o, Turn *t, const char **reterr_field) {
        *t = (Turn) { .exit_code = EXIT_NONE };

        return json_dispatch(o, turn_fields, JSON_UNKNOWN_IGNORE, t, reterr_field) >= 0 &&
               (!t->truncated ||
                json_dispatch(t->truncated, truncated_fields, JSON_UNKNOWN_IGNORE, t, reterr_field) >= 0) &&
               (!t->files ||
                json_dispatch(t->files, files_fields, JSON_UNKNOWN_IGNORE, t, reterr_field) >= 0);
}

static bool turn_is_running(const Turn *t) {
        return t->exit_code == EXIT_NONE;
}

static bool turn_is_ephemeral(const Turn *t) {
        return streq(t->session_state, "ephemeral");
}

static void end_line(Buffer *b) {
        if (buffer_size(b) > 0 && buffer_data(b)[buffer_size(b) - 1] != '\n')
                emit(b, "\n");
}

/* Both streams share the room; stderr may have a third of it, or all that stdout does not need. */
static void render_output(const Turn *t, Buffer *b, bool *ret_out_cut, bool *ret_err_cut) {
        size_t out = text_length(t->out.data, t->out.size), err = text_length(t->err.data, t->err.size);
        size_t err_max;

        err_max = MIN(err, MAX(RENDER_OUTPUT_MAX / 3, RENDER_OUTPUT_MAX - MIN(out, RENDER_OUTPUT_MAX)));
        *ret_out_cut = excerpt_append(b, t->out.data, t->out.size, RENDER_OUTPUT_MAX - err_max);
        end_line(b);
        *ret_err_cut = false;
        if (err == 0)
                return;
        emit(b, "--- stderr ---\n");
        *ret_err_cut = excerpt_append(b, t->err.data, t->err.size, err_max);
        end_line(b);
}

/* How to get what is not shown. Where the daemon left out some itself, its notice says that already. */
static void render_missing(Buffer *b, const char *stream, bool cut, const char *file) {
        if (cut && file)
                emit(b, "note: the whole %s is in the session's file %s: look at parts of it with head, "
                        "tail or grep\n", stream, file);
        else if (cut)
                emit(b, "note: to see all of %s send it to a file in a session's /workspace and look at "
                        "parts of that\n", stream);
}

static void render_notice(Buffer *b, const char *notice) {
        while (*notice != '\0') {
                size_t n = strcspn(notice, "\n");

                emit(b, "note: %.*s\n", (int) n, notice);
                notice += n + (notice[n] == '\n');
        }
}

static void render_result(Buffer *b, json_object *result) {
        size_t size;
        const char *text = must_alloc((void *) json_text(result, &size));

        emit(b, "result: ");
        (void) excerpt_append(b, text, size, RESULT_MAX);
        end_line(b);
}

static void render_how_to_wait(Buffer *b, const Turn *t) {
        const char *name = t->session ?: t->id;

        emit(b, "The code is still running. To get its result call the tool session with action "
             "\"wait\" and session \"%s\"; action \"interrupt\" stops it.\n", name);
}

void render_duration(Buffer *b, double msec) {
        uint64_t sec;

        if (!(msec >= 0 && msec < 1e15))
                msec = 0;
        sec = (uint64_t) (msec / 1000);
        if (msec < 999.5)
                emit(b, "%.0f ms", msec);
        else if (msec < 99950)
                emit(b, "%.1f s", msec / 1000);
        else if (sec < 3600)
                emit(b, "%" PRIu64 " min %" PRIu64 " s", sec / 60, sec % 60);
        else
                emit(b, "%" PRIu64 " h %" PRIu64 " min", sec / 3600, sec % 3600 / 60);
}

static void render_trailer_session(Buffer *b, const Turn *t) {
        if (turn_is_ephemeral(t))
                emit(b, "%s", turn_is_running(t) ? " · sandbox " : " · no session");
        else
                emit(b, " · session ");
        if (turn_is_running(t) || !turn_is_ephemeral(t))
                emit(b, "%s", t->session ?: t->id);
        if (streq(t->session_state, "created"))
                emit(b, " (new)");
        else if (streq(t->session_state, "restored"))
                emit(b, " (restored)");
        if (!turn_is_ephemeral(t))
                emit(b, " · turn %" PRIi64, t->number);
}

static void render_images(Buffer *b, unsigned n, const char *rest) {
        if (n > 0)
                emit(b, " · %u picture%s%s", n, n == 1 ? "" : "s", rest);
}

static void render_trailer(Buffer *b, const Turn *t, PicturesShown pictures) {
        if (turn_is_running(t))
                emit(b, "[still running");
        else
                emit(b, "[exit %" PRIi64, t->exit_code);
        if (t->signal)
                emit(b, " · %s", t->signal);
        if (t->timed_out)
                emit(b, " · timed out");
        render_trailer_session(b, t);
        if (streq(t->state, "lost"))
                emit(b, " · state lost");
        else if (streq(t->state, "rolled_back"))
                emit(b, " · state rolled back");
        else if (streq(t->state, "rolled_back"))
                emit(b, " · state rolled back");
        render_images(b, pictures.shown, "");
        render_images(b, pictures.hidden, " not shown");
        emit(b, " · ");
        render_duration(b, t->duration_ms);
        emit(b, "]");
}

static char *turn_meta(const Turn *t) {
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);
        char *text;

        json_write_object(&w, NULL);
        if (turn_is_running(t))
                json_write_null(&w, "exit_code");
        else
                json_write_int(&w, "exit_code", t->exit_code);
        json_write_string(&w, "session", t->session);
        json_write_string(&w, "id", t->id);
        json_write_string(&w, "environment", t->environment);
        json_write_string(&w, "interpreter", t->interpreter);
        json_write_int(&w, "turn", t->number);
        json_write_usec_as_ms(&w, "duration_ms", (uint64_t) (MAX(t->duration_ms, 0.0) * USEC_PER_MSEC));
        json_write_bool(&w, "timed_out", t->timed_out);
        json_write_string(&w, "signal", t->signal);
        json_write_string(&w, "state", t->state);
        json_write_string(&w, "session_state", t->session_state);
        json_write_object(&w, "truncated");
        json_write_uint(&w, "stdout", t->out_omitted);
        json_write_uint(&w, "stderr", t->err_omitted);
        json_write_object_end(&w);
        json_write_object_end(&w);
        must(w.error);
        must(buffer_take(&b, &text, /* ret_size= */ NULL));
        return text;
}

void render_turn(const ToolCall *call, json_object *parameters, Rendering *ret) {
        Buffer *b = &ret->text;
        const char *field;
        bool out_cut, err_cut;
        PicturesShown pictures;
        Turn t;

        if (!turn_parse(parameters, &t, &field)) {
                render_malformed(call, field, ret);
                return;
        }

        render_output(&t, b, &out_cut, &err_cut);
        if (t.result)
                render_result(b, t.result);
        render_missing(b, "stdout", out_cut && t.out_omitted == 0, t.out_file);
        render_missing(b, "stderr", err_cut && t.err_omitted == 0, t.err_file);
        if (t.notice)
                render_notice(b, t.notice);
        pictures = render_pictures(t.pictures, &ret->blocks);
        render_hidden_pictures(b, pictures);
        render_outputs(b, t.outputs);
        if (turn_is_running(&t))
                render_how_to_wait(b, &t);
        render_trailer(b, &t, pictures);

        ret->is_error = !turn_is_running(&t) && (t.exit_code != 0 || t.signal || t.timed_out);
        ret->meta = turn_meta(&t);
}
