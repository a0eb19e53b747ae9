/* SPDX-License-Identifier: MIT */

/*
 * Variables and Variable: the session's interpreters are asked one after the other, each by an operation of its own.
 * One that has never run is not started for it: the agent says that it has none. In a list, what one cannot tell does
 * not spoil the others.
 */

#include "daemon/api-private.h"

#include <fcntl.h>
#include <unistd.h>

#include "daemon/session-operation.h"
#include "daemon/variables.h"
#include "lib/fd-util.h"
#include "lib/text.h"

/* All of it, with the end of a turn that runs. */
#define VARIABLES_USEC (30 * USEC_PER_SEC)
#define VARIABLES_TEXT_MAX 256U

typedef struct VariablesParameters {
        const char *session, *project, *name, *interpreter;
} VariablesParameters;

typedef struct VariablesCall {
        VarlinkLink *link;
        Session *session;               /* borrowed, valid while there is an operation */
        SessionOperation *op;           /* NULL: none is under way */
        char *label;                    /* of the session */
        char *name;                     /* of the variable; NULL: all are asked for */
        unsigned left;                  /* bits: interpreters that are still to be asked */
        Interpreter interpreter;        /* that is being asked */
        uint64_t deadline;
        int fd;
        sd_event_source *source;
        Buffer answer;
        Buffer reply, notice;
        JsonWriter writer;
        uint64_t more;
        bool found;
} VariablesCall;

static VariablesCall *variables_call_free(VariablesCall *c) {
        if (!c)
                return NULL;

        if (c->op)
                session_operation_cancel(c->op);
        c->source = sd_event_source_disable_unref(c->source);
        (void) safe_close(c->fd);
        (void) varlink_link_unref(c->link);
        buffer_done(&c->answer);
        buffer_done(&c->reply);
        buffer_done(&c->notice);
        free(c->label);
        free(c->name);
        return mfree(c);
}
DEFINE_TRIVIAL_CLEANUP_FUNC(VariablesCall *, variables_call_free);

/* An answered call is not told of its peer's end any more. */
static void variables_call_abort(VariablesCall *c) {
        (void) varlink_error(c->link, API_ERROR("Internal"), NULL);
        (void) variables_call_free(c);
}

static int variables_call_next(VariablesCall *c);

static int answer_list(VariablesCall *c) {
        json_write_array_end(&c->writer);
        json_write_uint(&c->writer, "more", MIN(c->more, (uint64_t) INT64_MAX));
        if (buffer_size(&c->notice) > 0)
                json_write_bytes(&c->writer, "notice", buffer_data(&c->notice), buffer_size(&c->notice));
        json_write_object_end(&c->writer);
        if (c->writer.error < 0)
                return c->writer.error;
        (void) varlink_reply_text(c->link, buffer_data(&c->reply), buffer_size(&c->reply));
        return 0;
}

static int answer_one(VariablesCall *c) {
        _cleanup_free_ char *quoted = NULL;

        if (c->found) {
                json_write_object_end(&c->writer);
                if (c->writer.error < 0)
                        return c->writer.error;
                (void) varlink_reply_text(c->link, buffer_data(&c->reply), buffer_size(&c->reply));
                return 0;
        }
        quoted = text_quote(c->name, VARIABLE_NAME_MAX);
        if (!quoted)
                return -ENOMEM;
        return api_error(c->link, API_ERROR("NoSuchVariable"), "name", c->name,
                         "There is no variable %s in session '%s'%s%.*s. 'sandboxctl vars' lists them; an interpreter "
                         "that has not run yet has none.",
                         quoted, c->label, buffer_size(&c->notice) > 0 ? ": " : "", (int) buffer_size(&c->notice),
                         buffer_data(&c->notice));
}

static void variables_call_finish(VariablesCall *c) {
        if ((c->name ? answer_one(c) : answer_list(c)) < 0)
                return variables_call_abort(c);
        (void) variables_call_free(c);
}

/* What one of the interpreters could not tell, and why: its words. */
static int add_notice(VariablesCall *c, const char *text) {
        _cleanup_free_ char *quoted = text_quote(text, VARIABLES_TEXT_MAX);

        if (!quoted)
                return -ENOMEM;
        return buffer_printf(&c->notice, "%s%s: %s", buffer_size(&c->notice) > 0 ? "; " : "",
                             interpreter_to_string(c->interpreter), quoted);
}

static int take_answer(VariablesCall *c) {
        const char *interpreter = interpreter_to_string(c->interpreter), *data = buffer_data(&c->answer);
        _cleanup_free_ char *error = NULL;
        uint64_t more = 0;
        int r;

        if (c->name)
                r = variable_write(&c->writer, "variable", interpreter, data, buffer_size(&c->answer), &error);
        else
                r = variables_write(&c->writer, interpreter, data, buffer_size(&c->answer), &more);
        c->more += more;
        if (r == -EINVAL)
                return add_notice(c, "what it says of its variables cannot be read");
        if (error)
                return add_notice(c, error);
        c->found = r >= 0;
        return r;
}

/* One piece. 1: there may be more; 0: that was all, or more than is allowed; negative errno. */
static int variables_call_read(VariablesCall *c) {
        ssize_t n;
        char *p;
        int r;

        if (buffer_size(&c->answer) > VARIABLES_ANSWER_MAX)
                return 0;
        r = buffer_reserve(&c->answer, 64 * KIB, &p);
        if (r < 0)
                return r;
        n = read(c->fd, p, 64 * KIB);
        buffer_commit(&c->answer, n > 0 ? (size_t) n : 0);
        return n < 0 ? -errno : n > 0;
}

static int on_pipe(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        VariablesCall *c = userdata;
        int r = variables_call_read(c);

        /* An answer that is too long is cut off by closing the pipe, which its operation then tells. */
        if (r == -ENOMEM || r == 0) {
                c->source = sd_event_source_disable_unref(c->source);
                if (r < 0 || buffer_size(&c->answer) > VARIABLES_ANSWER_MAX)
                        c->fd = safe_close(c->fd);
        }
        return 0;
}

/* Errors of the session are the call's, those of an interpreter its own. */
static bool is_final(const char *error) {
        return streq(error, SESSION_OPERATION_ENDED) || streq(error, SESSION_OPERATION_TIMED_OUT) ||
               streq(error, SESSION_OPERATION_RELOADED);
}

static void on_operated(SessionOperation *op, const char *error, const char *text, json_object *report,
                        void *userdata) {
        VariablesCall *c = userdata;
        int r = 0;

        c->op = NULL;
        if (error && is_final(error)) {
                if (api_refuse_operation(c->link, c->label, error, text) < 0)
                        return variables_call_abort(c);
                (void) variables_call_free(c);
                return;
        }

        /* The agent has closed its end, so this has an end. */
        while (!error && c->fd >= 0 && (r = variables_call_read(c)) > 0)
                ;
        if (r == -ENOMEM)
                return variables_call_abort(c);
        if (!error)
                r = take_answer(c);
        else if (streq(error, "no-file"))
                r = 0;
        else
                r = add_notice(c, text ?: error);
        if (r >= 0)
                r = variables_call_next(c);
        if (r < 0)
                variables_call_abort(c);
}

static int variables_call_request(const VariablesCall *c, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || json_put_string(o, "operation", c->name ? "variable" : "variables") < 0 ||
            json_put_string(o, "interpreter", interpreter_to_string(c->interpreter)) < 0 ||
            (c->name && json_put_string(o, "name", c->name) < 0))
                return -ENOMEM;
        *ret = TAKE_PTR(o);
        return 0;
}

/* Asks the interpreter that is set. */
static int variables_call_ask(VariablesCall *c) {
        _cleanup_(session_operation_freep) SessionOperation *op = NULL;
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        json_object *request;
        int fds[2], r;

        c->source = sd_event_source_disable_unref(c->source);
        c->fd = safe_close(c->fd);
        buffer_consume(&c->answer, buffer_size(&c->answer));

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        ours = fds[0];
        theirs = fds[1];
        r = fd_set_nonblock(ours, true);
        if (r >= 0)
                r = variables_call_request(c, &request);
        if (r >= 0)
                r = session_operation_new(request, TAKE_FD(theirs), &op);
        if (r >= 0)
                r = sd_event_add_io(c->session->manager->event, &c->source, ours, EPOLLIN, on_pipe, c);
        if (r < 0)
                return r;

        (void) sd_event_source_set_description(c->source, "variables");
        c->fd = TAKE_FD(ours);
        op->needs_drivers = true;
        op->deadline = c->deadline;
        op->on_done = on_operated;
        op->userdata = c;
        c->op = op;
        r = session_operate(c->session, TAKE_PTR(op));
        if (r < 0)
                c->op = NULL;
        return r;
}

/* May free it. */
static int variables_call_next(VariablesCall *c) {
        if (c->left == 0 || (c->name && c->found)) {
                variables_call_finish(c);
                return 0;
        }
        c->interpreter = (Interpreter) __builtin_ctz(c->left);
        c->left &= ~(1U << c->interpreter);
        return variables_call_ask(c);
}

static void on_disconnect(VarlinkLink *link, void *userdata) {
        (void) variables_call_free(userdata);
}

static int refuse_interpreter(VarlinkLink *link, const Session *s, const char *interpreter) {
        _cleanup_free_ char *quoted = text_quote(interpreter, NAME_MAX_LENGTH);
        int r;

        r = api_error(link, API_ERROR("NoSuchInterpreter"), "interpreter", interpreter,
                      "Environment '%s' of session '%s' has no interpreter %s.", s->environment->name,
                      s->name ?: s->id, quoted ?: "");
        return r < 0 ? r : 1;
}

/* 0; 1: refused, and answered; negative errno. */
static int choose_interpreters(VarlinkLink *link, const Session *s, const char *interpreter, unsigned *ret) {
        Interpreter i;

        *ret = 0;
        for (size_t k = 0; !interpreter && k < s->environment->n_interpreters; k++)
                *ret |= 1U << s->environment->interpreters[k];
        if (!interpreter)
                return 0;
        i = interpreter_from_string(interpreter);
        if (i < 0 || !environment_has(s->environment, i))
                return refuse_interpreter(link, s, interpreter);
        *ret = 1U << i;
        return 0;
}

static int variables_call_new(VarlinkLink *link, Session *s, const char *name, VariablesCall **ret) {
        _cleanup_(variables_call_freep) VariablesCall *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        c->link = varlink_link_ref(link);
        c->session = s;
        c->fd = -EBADF;
        c->deadline = now_monotonic() + VARIABLES_USEC;
        c->writer = JSON_WRITER(&c->reply);
        c->label = strdup(s->name ?: s->id);
        c->name = name ? strdup(name) : NULL;
        if (!c->label || (name && !c->name))
                return -ENOMEM;

        json_write_object(&c->writer, NULL);
        if (!name)
                json_write_array(&c->writer, "variables");
        *ret = TAKE_PTR(c);
        return 0;
}

static int variables_begin(VarlinkLink *link, Manager *m, const VariablesParameters *p) {
        const SessionParameters session = { .session = p->session, .project = p->project };
        _cleanup_(variables_call_freep) VariablesCall *c = NULL;
        unsigned left;
        Session *s;
        int r;

        if (p->name && (!*p->name || strlen(p->name) > VARIABLE_NAME_MAX)) {
                (void) varlink_error_invalid(link, "name", "Names of variables have 1 to 256 bytes.");
                return 0;
        }
        r = api_find_session(link, m, &session, SESSION_VERB_OPERATE, &s);
        if (r == 0)
                r = choose_interpreters(link, s, p->interpreter, &left);
        if (r == 0)
                r = variables_call_new(link, s, p->name, &c);
        if (r != 0)
                return MIN(r, 0);

        c->left = left;
        r = variables_call_next(c);
        if (r == -EBUSY || r == -EHOSTDOWN)
                return api_refuse_operate(link, s, r);
        if (r < 0)
                return r;
        if (left > 0)
                varlink_link_on_disconnect(link, on_disconnect, c);
        TAKE_PTR(c);
        return 0;
}

int vl_method_variables(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        static const JsonField table[] = {
                { "session", JSON_KIND_STRING, offsetof(VariablesParameters, session), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(VariablesParameters, project) },
                { "interpreter", JSON_KIND_STRING, offsetof(VariablesParameters, interpreter) },
                {},
        };
        VariablesParameters p = {};
        int r;

        r = api_dispatch(link, parameters, table, &p);
        return r != 0 ? MIN(r, 0) : variables_begin(link, userdata, &p);
}

int vl_method_variable(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        static const JsonField table[] = {
                { "session", JSON_KIND_STRING, offsetof(VariablesParameters, session), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(VariablesParameters, project) },
                { "name", JSON_KIND_STRING, offsetof(VariablesParameters, name), JSON_MANDATORY },
                { "interpreter", JSON_KIND_STRING, offsetof(VariablesParameters, interpreter) },
                {},
        };
        VariablesParameters p = {};
        int r;

        r = api_dispatch(link, parameters, table, &p);
        return r != 0 ? MIN(r, 0) : variables_begin(link, userdata, &p);
}
