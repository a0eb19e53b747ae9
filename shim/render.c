/* SPDX-License-Identifier: MIT */

/*
 * Replies other than a turn's, and refusals. A refusal is the daemon's own sentence, which says what to do,
 * and the name of its error.
 */

#include <inttypes.h>

#include "excerpt.h"
#include "must.h"
#include "render.h"

#define INTERFACE "io.nixsandbox."
/* Of the code of one earlier turn in a history. */
#define HISTORY_CODE_MAX 400U

void rendering_done(Rendering *r) {
        buffer_done(&r->text);
        buffer_done(&r->blocks);
        free(r->meta);
        *r = (Rendering) {};
}

void render_failure(const char *sentence, Rendering *ret) {
        emit(&ret->text, "%s", sentence);
        ret->is_error = true;
}

void render_malformed(const ToolCall *call, const char *field, Rendering *ret) {
        emit(&ret->text, "sandboxd's reply to %s cannot be understood (%s). It may be of another "
             "version than nix-sandbox-mcp: restart both.", call->method, field ?: "no object");
        ret->is_error = true;
}

static const char *member_string(json_object *o, const char *key) {
        json_object *v;

        if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &v) ||
            !json_object_is_type(v, json_type_string))
                return NULL;
        return json_object_get_string(v);
}

static void render_error(const ToolCall *call, const VarlinkReply *reply, Rendering *ret) {
        const char *name = reply->error, *message = member_string(reply->parameters, "message");
        const char *parameter = member_string(reply->parameters, "parameter");

        if (call->action == TOOL_RESET && streq(name, INTERFACE "NoSuchSession")) {
                emit(&ret->text, "There is no session %s: the next run with that name starts fresh.",
                     tool_call_string(call, "session"));
                return;
        }

        if (strncmp(name, INTERFACE, strlen(INTERFACE)) == 0)
                name += strlen(INTERFACE);
        if (streq(name, VARLINK_ERROR_INVALID_PARAMETER) && parameter)
                emit(&ret->text, "Invalid %s%s%s\n", parameter, message ? ": " : ".", message ?: "");
        else
                emit(&ret->text, "%s\n", message ?: "sandboxd refused the call.");
        if (streq(name, "NoSuchEnvironment"))
                emit(&ret->text, "The session tool's action \"environments\" lists them.\n");
        emit(&ret->text, "[refused: %s]", name);
        ret->is_error = true;
}

typedef struct Session {
        const char *id, *name, *project, *environment, *state;
        bool busy;
        int64_t queued, turns, idle_usec;
} Session;

static const JsonField session_fields[] = {
        { "id", JSON_KIND_STRING, offsetof(Session, id), JSON_MANDATORY },
        { "name", JSON_KIND_STRING, offsetof(Session, name) },
        { "project", JSON_KIND_STRING, offsetof(Session, project) },
        { "environment", JSON_KIND_STRING, offsetof(Session, environment), JSON_MANDATORY },
        { "state", JSON_KIND_STRING, offsetof(Session, state), JSON_MANDATORY },
        { "busy", JSON_KIND_BOOL, offsetof(Session, busy) },
        { "queued", JSON_KIND_INT, offsetof(Session, queued) },
        { "turns", JSON_KIND_INT, offsetof(Session, turns) },
        { "idle_usec", JSON_KIND_INT, offsetof(Session, idle_usec) },
        {}
};

static void render_session(const ToolCall *call, json_object *o, Rendering *ret) {
        Session s = {};
        const char *field;

        if (json_dispatch(o, session_fields, JSON_UNKNOWN_IGNORE, &s, &field) < 0) {
                render_malformed(call, field, ret);
                return;
        }

        emit(&ret->text, "%s · id %s · %s · %s · %" PRIi64 " turn%s", s.name ?: "(no name)", s.id,
             s.environment, s.busy ? "running a turn" : s.state, s.turns, s.turns == 1 ? "" : "s");
        if (s.queued > 0)
                emit(&ret->text, " · %" PRIi64 " waiting", s.queued);
        if (!s.busy && s.idle_usec > 0) {
                emit(&ret->text, " · idle ");
                render_duration(&ret->text, (double) s.idle_usec / 1000);
        }
        if (s.project && s.project[0] != '\0')
                emit(&ret->text, " · project %s", s.project);
        emit(&ret->text, "\n");
}

typedef struct Environment {
        const char *name, *description;
        json_object *interpreters, *missing;
        double timeout;
        int64_t memory_mb;
        const char *network;
} Environment;

static const JsonField environment_fields[] = {
        { "name", JSON_KIND_STRING, offsetof(Environment, name), JSON_MANDATORY },
        { "description", JSON_KIND_STRING, offsetof(Environment, description) },
        { "interpreters", JSON_KIND_ARRAY, offsetof(Environment, interpreters), JSON_MANDATORY },
        { "timeout_seconds", JSON_KIND_NUMBER, offsetof(Environment, timeout) },
        { "memory_mb", JSON_KIND_INT, offsetof(Environment, memory_mb) },
        { "network", JSON_KIND_STRING, offsetof(Environment, network) },
        { "missing", JSON_KIND_ARRAY, offsetof(Environment, missing) },
        {}
};

static void render_names(Buffer *b, const char *label, json_object *names) {
        size_t n = names ? json_object_array_length(names) : 0;

        for (size_t i = 0; i < n; i++)
                emit(b, "%s%s", i == 0 ? label : ", ",
                     json_object_get_string(json_object_array_get_idx(names, i)) ?: "?");
}

static void render_environment(const ToolCall *call, json_object *o, Rendering *ret) {
        Environment e = {};
        const char *field;

        if (json_dispatch(o, environment_fields, JSON_UNKNOWN_IGNORE, &e, &field) < 0) {
                render_malformed(call, field, ret);
                return;
        }

        emit(&ret->text, "%s", e.name);
        if (e.description && e.description[0] != '\0')
                emit(&ret->text, ": %s", e.description);
        render_names(&ret->text, " · interpreters ", e.interpreters);
        emit(&ret->text, " · timeout %g s · memory %" PRIi64 " MB", e.timeout, e.memory_mb);
        if (e.network && !streq(e.network, "none"))
                emit(&ret->text, " · network %s", e.network);
        render_names(&ret->text, " · not usable here, missing ", e.missing);
        emit(&ret->text, "\n");
}

typedef struct HistoryEntry {
        int64_t turn;
        const char *interpreter;
        JsonBytes code;
        json_object *exit_code;
        double duration_ms;
} HistoryEntry;

static const JsonField history_fields[] = {
        { "turn", JSON_KIND_INT, offsetof(HistoryEntry, turn), JSON_MANDATORY },
        { "interpreter", JSON_KIND_STRING, offsetof(HistoryEntry, interpreter), JSON_MANDATORY },
        { "code", JSON_KIND_BYTES, offsetof(HistoryEntry, code), JSON_MANDATORY },
        { "exit_code", JSON_KIND_ANY, offsetof(HistoryEntry, exit_code) },
        { "duration_ms", JSON_KIND_NUMBER, offsetof(HistoryEntry, duration_ms) },
        {}
};

static void render_history_entry(const ToolCall *call, json_object *o, Rendering *ret) {
        HistoryEntry e = {};
        const char *field;

        if (json_dispatch(o, history_fields, JSON_UNKNOWN_IGNORE, &e, &field) < 0) {
                render_malformed(call, field, ret);
                return;
        }

        emit(&ret->text, "[turn %" PRIi64 " · %s · ", e.turn, e.interpreter);
        if (e.exit_code)
                emit(&ret->text, "exit %" PRIi64, json_object_get_int64(e.exit_code));
        else
                emit(&ret->text, "running");
        emit(&ret->text, " · ");
        render_duration(&ret->text, e.duration_ms);
        emit(&ret->text, "]\n");
        (void) excerpt_append(&ret->text, e.code.data, e.code.size, HISTORY_CODE_MAX);
        emit(&ret->text, "\n");
}

typedef struct Snapshot {
        const char *id, *session, *reason;
        int64_t turns, size, skipped;
} Snapshot;

static const JsonField snapshot_fields[] = {
        { "id", JSON_KIND_STRING, offsetof(Snapshot, id), JSON_MANDATORY },
        { "session", JSON_KIND_STRING, offsetof(Snapshot, session), JSON_MANDATORY },
        { "reason", JSON_KIND_STRING, offsetof(Snapshot, reason), JSON_MANDATORY },
        { "turns", JSON_KIND_INT, offsetof(Snapshot, turns), JSON_MANDATORY },
        { "size", JSON_KIND_INT, offsetof(Snapshot, size), JSON_MANDATORY },
        { "skipped", JSON_KIND_INT, offsetof(Snapshot, skipped) },
        {}
};

/* The id begins with the time, in UTC. */
static void render_snapshot(const ToolCall *call, json_object *o, Rendering *ret) {
        Snapshot s = {};
        const char *field;

        if (json_dispatch(o, snapshot_fields, JSON_UNKNOWN_IGNORE, &s, &field) < 0) {
                render_malformed(call, field, ret);
                return;
        }
        emit(&ret->text, "%s · %s · after turn %" PRIi64 " · %" PRIi64 " bytes · %s", s.session, s.id, s.turns, s.size,
             s.reason);
        if (s.skipped > 0)
                emit(&ret->text, " · %" PRIi64 " values left out", s.skipped);
        emit(&ret->text, "\n");
}

typedef struct Listing {
        const char *member;
        void (*render)(const ToolCall *call, json_object *entry, Rendering *ret);
        const char *empty;
} Listing;

static const Listing listings[_TOOL_ACTION_MAX] = {
        [TOOL_LIST] = { "sessions", render_session, "There are no sessions." },
        [TOOL_ENVIRONMENTS] = { "environments", render_environment, "There are no environments." },
        [TOOL_HISTORY] = { "entries", render_history_entry, "The session has run nothing yet." },
        [TOOL_SNAPSHOTS] = { "snapshots", render_snapshot, "Nothing is kept of sessions." },
};

static void render_listing(const ToolCall *call, json_object *parameters, Rendering *ret) {
        const Listing *l = &listings[call->action];
        json_object *array;
        Rendering whole = {};
        size_t n;

        if (!json_object_is_type(parameters, json_type_object) ||
            !json_object_object_get_ex(parameters, l->member, &array) ||
            !json_object_is_type(array, json_type_array)) {
                render_malformed(call, l->member, ret);
                return;
        }

        n = json_object_array_length(array);
        for (size_t i = 0; i < n && !whole.is_error; i++)
                l->render(call, json_object_array_get_idx(array, i), &whole);
        ret->is_error = whole.is_error;
        if (n == 0)
                emit(&ret->text, "%s", l->empty);
        else
                (void) excerpt_append(&ret->text, buffer_data(&whole.text), buffer_size(&whole.text),
                                      RENDER_OUTPUT_MAX);
        rendering_done(&whole);
}

static void render_interrupt(const ToolCall *call, json_object *parameters, Rendering *ret) {
        const char *session = tool_call_string(call, "session"), *field;
        bool interrupted = false;
        static const JsonField fields[] = {
                { "interrupted", JSON_KIND_BOOL, 0, JSON_MANDATORY },
                {}
        };

        if (json_dispatch(parameters, fields, JSON_UNKNOWN_IGNORE, &interrupted, &field) < 0)
                render_malformed(call, field, ret);
        else if (interrupted)
                emit(&ret->text, "The code running in session %s was interrupted. Its result goes to the "
                                 "call that waits for it; action \"wait\" gets it if none does.", session);
        else
                emit(&ret->text, "Nothing was running in session %s.", session);
}

static void render_save(const ToolCall *call, json_object *parameters, Rendering *ret) {
        const char *field, *notice;
        bool unchanged = false;
        static const JsonField fields[] = {
                { "unchanged", JSON_KIND_BOOL, 0, JSON_MANDATORY },
                {}
        };

        if (json_dispatch(parameters, fields, JSON_UNKNOWN_IGNORE, &unchanged, &field) < 0) {
                render_malformed(call, field, ret);
                return;
        }
        notice = member_string(parameters, "notice");
        emit(&ret->text, "Session %s %s as %s.", tool_call_string(call, "session"),
             unchanged ? "has not changed since it was saved" : "was saved",
             member_string(parameters, "snapshot") ?: "?");
        if (notice)
                emit(&ret->text, " %s", notice);
}

static void render_restore(const ToolCall *call, json_object *parameters, Rendering *ret) {
        const char *session = member_string(parameters, "session"), *notice = member_string(parameters, "notice");

        if (!session)
                render_malformed(call, "session", ret);
        else
                emit(&ret->text, "There is a session %s now. %s", session, notice ?: "");
}

static void render_rollback(const ToolCall *call, json_object *parameters, Rendering *ret) {
        const char *notice = member_string(parameters, "notice");

        if (!notice)
                render_malformed(call, "notice", ret);
        else
                emit(&ret->text, "%s", notice);
}

void render_reply(const ToolCall *call, const VarlinkReply *reply, Rendering *ret) {
        if (reply->error) {
                render_error(call, reply, ret);
                return;
        }

        switch (call->action) {
        case TOOL_RUN:
        case TOOL_WAIT:
                render_turn(call, reply->parameters, ret);
                break;

        case TOOL_LIST:
        case TOOL_ENVIRONMENTS:
        case TOOL_HISTORY:
        case TOOL_SNAPSHOTS:
                render_listing(call, reply->parameters, ret);
                break;

        case TOOL_INTERRUPT:
                render_interrupt(call, reply->parameters, ret);
                break;

        case TOOL_ROLLBACK:
                render_rollback(call, reply->parameters, ret);
                break;

        case TOOL_KILL:
                emit(&ret->text, "Session %s has ended; the next run with that name starts fresh. What was saved of "
                                 "it can still be had by action \"restore\".", tool_call_string(call, "session"));
                break;

        case TOOL_VARIABLES:
                render_variables(call, reply->parameters, ret);
                break;

        case TOOL_SAVE:
                render_save(call, reply->parameters, ret);
                break;

        case TOOL_RESTORE:
                render_restore(call, reply->parameters, ret);
                break;

        case TOOL_RESET:
                emit(&ret->text, "Session %s has ended; the next run with that name starts fresh.",
                     tool_call_string(call, "session"));
                break;

        case _TOOL_ACTION_MAX:
        case _TOOL_ACTION_INVALID:
                assert(false);
        }
}
