/* SPDX-License-Identifier: MIT */

/*
 * Arguments are checked here only for what the daemon cannot know (which tool, which member, which type); names and
 * limits are its business, and its sentences reach the model as they are.
 */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "must.h"
#include "tools.h"

#define TIMEOUT_MAX_SEC (24 * 3600)
#define STEPS_MAX 1000 /* what sandboxd takes */

typedef struct Arguments {
        JsonBytes code;
        const char *env;
        const char *session;
        const char *action;
        const char *name;
        double timeout;
        double steps;
        json_object *ignored;
} Arguments;

/* Gemini CLI adds wait_for_previous to every tool's schema, so models may send it. */
static const JsonField run_fields[] = {
        { "code", JSON_KIND_BYTES, offsetof(Arguments, code), JSON_MANDATORY },
        { "env", JSON_KIND_STRING, offsetof(Arguments, env) },
        { "session", JSON_KIND_STRING, offsetof(Arguments, session) },
        { "timeout", JSON_KIND_NUMBER, offsetof(Arguments, timeout) },
        { "wait_for_previous", JSON_KIND_ANY, offsetof(Arguments, ignored) },
        {}
};

static const JsonField session_fields[] = {
        { "action", JSON_KIND_STRING, offsetof(Arguments, action), JSON_MANDATORY },
        { "session", JSON_KIND_STRING, offsetof(Arguments, session) },
        { "name", JSON_KIND_STRING, offsetof(Arguments, name) },
        { "steps", JSON_KIND_NUMBER, offsetof(Arguments, steps) },
        { "wait_for_previous", JSON_KIND_ANY, offsetof(Arguments, ignored) },
        {}
};

typedef struct Action {
        const char *name;
        const char *method;
        bool needs_session;
        bool repeatable;
} Action;

static const Action actions[_TOOL_ACTION_MAX] = {
        [TOOL_RUN] = { NULL, "io.nixsandbox.Run" },
        [TOOL_LIST] = { "list", "io.nixsandbox.List", .repeatable = true },
        [TOOL_ENVIRONMENTS] = { "environments", "io.nixsandbox.Environments", .repeatable = true },
        [TOOL_HISTORY] = { "history", "io.nixsandbox.History", .needs_session = true, .repeatable = true },
        [TOOL_WAIT] = { "wait", "io.nixsandbox.Wait", .needs_session = true, .repeatable = true },
        [TOOL_INTERRUPT] = { "interrupt", "io.nixsandbox.Interrupt", .needs_session = true },
        [TOOL_ROLLBACK] = { "rollback", "io.nixsandbox.Rollback", .needs_session = true },
        [TOOL_KILL] = { "kill", "io.nixsandbox.Kill", .needs_session = true },
        [TOOL_RESET] = { "reset", "io.nixsandbox.Kill", .needs_session = true },
        [TOOL_SAVE] = { "save", "io.nixsandbox.Save", .needs_session = true, .repeatable = true },
        [TOOL_SNAPSHOTS] = { "snapshots", "io.nixsandbox.Snapshots", .repeatable = true },
        [TOOL_RESTORE] = { "restore", "io.nixsandbox.Restore", .needs_session = true },
        [TOOL_VARIABLES] = { "variables", "io.nixsandbox.Variables", .needs_session = true, .repeatable = true },
};

static ToolAction action_from_string(const char *s) {
        for (ToolAction a = TOOL_RUN + 1; a < _TOOL_ACTION_MAX; a++)
                if (streq(actions[a].name, s))
                        return a;
        return _TOOL_ACTION_INVALID;
}

static int refuse(char **reterr_why, const char *format, ...) _printf_(2, 3);

static int refuse(char **reterr_why, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        must(vasprintf(reterr_why, format, ap));
        va_end(ap);
        return TOOL_E_ARGUMENTS;
}

static const char *field_type(const JsonField *fields, const char *name) {
        for (const JsonField *f = fields; f->name; f++)
                if (streq(f->name, name))
                        return f->kind == JSON_KIND_NUMBER ? "a number" : "a string";
        return NULL;
}

/* "code, env, session, timeout" */
static void list_fields(const JsonField *fields, char *buf, size_t size) {
        size_t n = 0;

        for (const JsonField *f = fields; f->name; f++)
                if (f->kind != JSON_KIND_ANY)
                        n += (size_t) snprintf(buf + n, size - n, "%s%s", n > 0 ? ", " : "", f->name);
}

static int read_arguments(const char *tool, const JsonField *fields, json_object *o, Arguments *ret,
                          char **reterr_why) {
        const char *field, *type;
        char names[128];

        if (json_dispatch(o, fields, JSON_UNKNOWN_REFUSE, ret, &field) >= 0)
                return 0;

        list_fields(fields, names, sizeof(names));
        type = field ? field_type(fields, field) : NULL;
        if (!field)
                return refuse(reterr_why, "The arguments of %s must be an object with: %s.", tool, names);
        if (!type)
                return refuse(reterr_why, "The tool %s has no argument \"%.64s\". It has: %s.", tool, field,
                              names);
        return refuse(reterr_why, "The argument \"%s\" of %s %s and must be %s%s.", field, tool,
                      json_object_object_get_ex(o, field, NULL) ? "has a wrong type" : "is missing", type,
                      streq(field, "timeout") ? " of seconds" : "");
}

/* Models often send "" for what they mean to leave out. */
static const char *nonempty(const char *s) {
        return s && s[0] != '\0' ? s : NULL;
}

static void put_optional(json_object *o, const char *key, const char *value) {
        if (nonempty(value))
                must(json_put_string(o, key, value));
}

static int parse_run(json_object *arguments, const char *project, ToolCall *t, char **reterr_why) {
        Arguments a = { .timeout = NAN };
        int r;

        r = read_arguments("run", run_fields, arguments, &a, reterr_why);
        if (r != 0)
                return r;
        if (!isnan(a.timeout) && !(a.timeout >= 0.001 && a.timeout <= TIMEOUT_MAX_SEC))
                return refuse(reterr_why, "timeout is in seconds and must be between 0.001 and %i.",
                              TIMEOUT_MAX_SEC);

        t->action = TOOL_RUN;
        must(json_put_bytes(t->parameters, "code", a.code.data, a.code.size));
        put_optional(t->parameters, "environment", a.env);
        put_optional(t->parameters, "session", a.session);
        put_optional(t->parameters, "project", project);
        if (!isnan(a.timeout))
                must(json_put_int(t->parameters, "timeout_ms", (int64_t) (a.timeout * 1000)));
        must(json_put_int(t->parameters, "answer_after_ms", TOOL_ANSWER_AFTER_MSEC));
        return 0;
}

static int parse_session(json_object *arguments, const char *project, ToolCall *t, char **reterr_why) {
        Arguments a = { .steps = NAN };
        int r;

        r = read_arguments("session", session_fields, arguments, &a, reterr_why);
        if (r != 0)
                return r;

        t->action = action_from_string(a.action);
        if (t->action < 0)
                return refuse(reterr_why, "There is no action \"%.64s\". There are: list, environments, "
                              "history, wait, interrupt, rollback, kill, reset, save, snapshots, restore, variables.",
                              a.action);
        if (t->action == TOOL_SNAPSHOTS && nonempty(a.session)) {
                must(json_put_string(t->parameters, "session", a.session));
                put_optional(t->parameters, "project", project);
        }
        if (!actions[t->action].needs_session)
                return 0;
        if (!nonempty(a.session))
                return refuse(reterr_why, "The action %s needs the argument \"session\": a name or an id; "
                              "the action list shows them.", a.action);

        must(json_put_string(t->parameters, "session", a.session));
        put_optional(t->parameters, "project", project);
        if (t->action == TOOL_ROLLBACK && !isnan(a.steps)) {
                if (!(a.steps >= 1 && a.steps <= STEPS_MAX) || a.steps != (int) a.steps)
                        return refuse(reterr_why, "steps is how many checkpoints to go back, and must be a whole "
                                      "number from 1 to %i.", STEPS_MAX);
                must(json_put_int(t->parameters, "steps", (int64_t) a.steps));
        }
        if (t->action == TOOL_RESTORE)
                must(json_put_string(t->parameters, "name", nonempty(a.name) ? a.name : a.session));
        if (t->action == TOOL_VARIABLES && nonempty(a.name)) {
                t->method = "io.nixsandbox.Variable";
                must(json_put_string(t->parameters, "name", a.name));
        }
        if (t->action == TOOL_WAIT)
                must(json_put_int(t->parameters, "answer_after_ms", TOOL_ANSWER_AFTER_MSEC));
        return 0;
}

int tool_call_parse(const char *name, json_object *arguments, const char *project, ToolCall *ret,
                    char **reterr_why) {
        ToolCall t = {};
        _cleanup_json_ json_object *none = NULL;
        int r;

        if (!streq(name, "run") && !streq(name, "session"))
                return TOOL_E_UNKNOWN;

        if (!arguments)
                arguments = none = must_alloc(json_object_new_object());
        t.parameters = must_alloc(json_object_new_object());
        r = streq(name, "run") ? parse_run(arguments, project, &t, reterr_why)
                               : parse_session(arguments, project, &t, reterr_why);
        if (r != 0) {
                tool_call_done(&t);
                return r;
        }

        t.method = t.method ?: actions[t.action].method;
        t.repeatable = actions[t.action].repeatable;
        *ret = t;
        return 0;
}

void tool_call_done(ToolCall *t) {
        json_object_putp(&t->parameters);
        *t = (ToolCall) {};
}

const char *tool_call_string(const ToolCall *t, const char *key) {
        json_object *v;

        return json_object_object_get_ex(t->parameters, key, &v) ? json_object_get_string(v) : NULL;
}

const char *tool_call_lost(const ToolCall *t) {
        switch (t->action) {
        case TOOL_RUN:
                return "sandboxd went away while the code ran, so its output and exit code are unknown, and "
                       "it was not run again. The session's state may be lost: check it before you go on "
                       "(the session tool's action list shows what is there).";

        case TOOL_INTERRUPT:
        case TOOL_ROLLBACK:
        case TOOL_KILL:
        case TOOL_RESET:
        case TOOL_RESTORE:
                return "sandboxd went away before it answered, so the session may or may not have been "
                       "changed. The session tool's action list shows what is there; then try again.";

        case TOOL_LIST:
        case TOOL_ENVIRONMENTS:
        case TOOL_HISTORY:
        case TOOL_WAIT:
        case TOOL_SAVE:
        case TOOL_SNAPSHOTS:
        case TOOL_VARIABLES:
                return "sandboxd went away before it answered, again and again. Try again; if it stays so, its "
                       "log says why.";

        case _TOOL_ACTION_MAX:
        case _TOOL_ACTION_INVALID:
                break;
        }
        assert(false);
        return NULL;
}
