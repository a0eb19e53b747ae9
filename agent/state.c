/* SPDX-License-Identifier: MIT */

/*
 * save, restore, variables, variable: the part of them that is the agent's own. A child moves the bytes
 * (state-work.h); it asks for one driver after the other, and here the driver is sent its command, is listened
 * to, and is bounded.
 *
 * A save never ends what it is to keep: a driver that does not answer in time is left alone, its FIFOs vanish, and
 * turns go on. Who restores too long is killed, because a session that is half restored helps nobody.
 */

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/children.h"
#include "agent/operation.h"
#include "agent/state-talk.h"
#include "agent/state-work.h"
#include "lib/fd-util.h"
#include "lib/json.h"
#include "lib/text.h"

#define SAVE_USEC (10 * USEC_PER_SEC)   /* for how long drivers may hold up turns */

typedef struct State {
        const char *verb;               /* the drivers' command */
        bool restores;
        StateWork work;                 /* of the child, too */
        int talk;
        char variable[DRIVER_NAME_MAX + 1];

        Interpreter *asked;             /* the last one; NULL: none yet */
        unsigned asked_index;
        char token[DRIVER_TOKEN_LENGTH + 1];
        pid_t session;                  /* its pid then */
        uint64_t asked_ticks, answered_ticks;   /* by children_clock(); 0: not answered */
        Children copies;                /* of itself that it has left to write */
} State;

static int state_append_payload(const State *s, Buffer *b) {
        FifoPath state = fifo_path(s->work.fifos, s->asked, FIFO_STATE);
        FifoPath report = fifo_path(s->work.fifos, s->asked, FIFO_REPORT);

        if (streq(s->verb, "list"))
                return buffer_printf(b, "%s\n", report.text);
        if (streq(s->verb, "show"))
                return buffer_printf(b, "%s\n%s\n", report.text, s->variable);
        return buffer_printf(b, "%s\n%s\n", state.text, report.text);
}

/* Its command may wait in the socket. -ESRCH: there is none. */
static int state_provide_interpreter(const State *s, Interpreter *i) {
        if (interpreter_is_live(i))
                return 0;
        if (i->pid > 0)
                return -ESRCH;
        return s->restores ? interpreter_start(i) : interpreter_revive(i);
}

/* Negative errno: it cannot be asked. */
static int state_ask(Operation *o, State *s, unsigned k) {
        _cleanup_(buffer_done) Buffer payload = {};
        Interpreter *i = &o->interpreters[k];
        int r;

        s->asked = i;
        s->asked_index = k;
        s->answered_ticks = 0;
        s->copies.n = 0;

        if (o->turn->stage != TURN_IDLE)
                return -EBUSY;
        r = state_provide_interpreter(s, i);
        if (r >= 0)
                r = interpreter_make_token(s->token);
        if (r >= 0)
                r = state_append_payload(s, &payload);
        if (r < 0)
                return r;

        s->session = i->pid;
        s->asked_ticks = children_clock();
        o->deadline_usec = now_monotonic() + (s->restores ? AGENT_START_USEC : SAVE_USEC);
        return interpreter_command(i, s->verb, s->token, buffer_data(&payload), buffer_size(&payload));
}

static bool state_is_waiting(const State *s) {
        return s->asked && s->session > 0 && s->answered_ticks == 0;
}

/* Whoever still works for the driver that was asked last. In a restore it is the driver, whatever it says: the end of
 * a stream that broke off looks to it like the end of its state. */
static void state_stop(State *s) {
        if (!s->asked || s->session == 0)
                return;

        if (s->restores) {
                if (s->asked->pid == s->session)
                        interpreter_kill(s->asked);
        } else if (s->answered_ticks > 0)
                children_kill_of(&s->copies, s->session, s->asked_ticks, s->answered_ticks);
        else
                children_kill(s->session, s->asked_ticks);
}

/* Nothing more is waited for of the driver that was asked. In a save they are asked from the last to the first. */
static void state_settled(Operation *o, unsigned k) {
        const State *s = o->state;

        o->deadline_usec = 0;
        while (k > 0)
                if (interpreter_has_begun(&o->interpreters[--k]))
                        return;
        o->holds_turns = s->restores;
}

static int state_on_talk(Operation *o) {
        State *s = o->state;
        TalkMessage m;
        int r;

        while (talk_receive(s->talk, &m) > 0)
                switch (m.verb) {
                case TALK_ASK:
                        s->session = 0;
                        if (m.interpreter >= INTERPRETERS_MAX)
                                return -EPROTO;
                        r = state_ask(o, s, m.interpreter);
                        if (r == -ENOMEM)
                                return r;
                        if (r < 0) {
                                (void) talk_send(s->talk, TALK_REFUSED, m.interpreter, -r);
                                state_settled(o, m.interpreter);
                        }
                        break;
                case TALK_GIVE_UP:
                        state_stop(s);
                        break;
                case TALK_DONE:
                case TALK_ENDED:
                case TALK_REFUSED:
                case TALK_LATE:
                case _TALK_MAX:
                default:
                        break;
                }
        return 0;
}

/* What it has started since it was asked is its copies: no turn has run meanwhile. */
static int state_on_report(Operation *o, Interpreter *i, const Report *report) {
        State *s = o->state;

        if (!state_is_waiting(s) || s->asked != i || !streq(report->token, s->token))
                return 0;

        children_find(s->session, s->asked_ticks, &s->copies);
        s->answered_ticks = children_clock();
        state_settled(o, s->asked_index);
        (void) talk_send(s->talk, TALK_DONE, s->asked_index, 0);
        return 0;
}

static int state_on_interpreter_ended(Operation *o, Interpreter *i) {
        State *s = o->state;

        if (s->asked != i || s->session == 0)
                return 0;

        (void) talk_send(s->talk, TALK_ENDED, s->asked_index, 0);
        state_settled(o, s->asked_index);
        return 0;
}

static int state_on_deadline(Operation *o) {
        State *s = o->state;

        o->deadline_usec = 0;
        if (!state_is_waiting(s))
                return 0;

        if (!s->restores) {
                (void) talk_send(s->talk, TALK_LATE, s->asked_index, 0);
                o->holds_turns = false;
                /* A copy that does not wake up is none; a shell may still be making its state of a text. */
                if (s->asked->revival.token[0] && !s->asked->checkpoints.texts)
                        interpreter_kill(s->asked);
        } else if (!s->asked->ready)
                state_stop(s);
        return 0;
}

static int state_on_child(Operation *o, const OperationResult *result) {
        int r;

        /* What it said last may not have been looked at. */
        r = state_on_talk(o);
        if (r < 0)
                return r;
        if (!result->error)
                return operation_end(o, result->report, result->report_size);

        state_stop(o->state);
        return operation_fail(o, result->error, "%s", result->error_text);
}

/* While the child still runs the operation is given up. */
static void state_done(Operation *o) {
        State *s = o->state;

        if (!s)
                return;

        if (o->child.pid > 0) {
                operation_child_done(&o->child);
                state_stop(s);
        }
        fifo_directory_remove(s->work.fifos, o->interpreters);
        o->talk = s->talk = safe_close(s->talk);
        free(s);
}

static int state_start_child(Operation *o, State *s, OperationWork work) {
        _cleanup_close_ int theirs = -EBADF;
        int fds[2], r;

        r = fifo_directory_choose(s->work.fifos);
        if (r < 0)
                return r;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        s->talk = o->talk = fds[0];
        s->work.talk = theirs = fds[1];
        return operation_start_child(o, work, &s->work, &theirs, 1);
}

static int state_begin(Operation *o, const char *verb, OperationWork work, unsigned interpreter,
                       const char *variable) {
        State *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        *s = (State) {
                .verb = verb,
                .restores = streq(verb, "restore"),
                .work = { .interpreters = o->interpreters, .talk = -EBADF, .interpreter = interpreter },
                .talk = -EBADF,
        };
        (void) snprintf(s->variable, sizeof(s->variable), "%s", variable);
        o->state = s;

        r = state_start_child(o, s, work);
        return r >= 0 ? 0 : operation_fail(o, "failed", "cannot start a process for it: %s", strerrordesc_np(-r));
}

static int save_begin(Operation *o, json_object *request) {
        int r;

        r = state_begin(o, "save", state_save, 0, "");
        if (r >= 0 && o->type)
                state_settled(o, INTERPRETERS_MAX);
        return r;
}

static int restore_begin(Operation *o, json_object *request) {
        return state_begin(o, "restore", state_restore, 0, "");
}

static bool variable_is_valid(const char *name) {
        if (!*name || strlen(name) > DRIVER_NAME_MAX)
                return false;
        for (; *name; name++)
                if ((unsigned char) *name < ' ')
                        return false;
        return true;
}

/* -EINVAL: not such a request; *ret_name is "" when it has none. */
static int parse_question(Operation *o, json_object *request, Interpreter **ret, const char **ret_name) {
        struct {
                const char *interpreter, *name;
        } p = { .name = "" };
        static const JsonField table[] = {
                { "interpreter", JSON_KIND_STRING, offsetof(typeof(p), interpreter), JSON_MANDATORY },
                { "name", JSON_KIND_STRING, offsetof(typeof(p), name) },
                {},
        };
        int r;

        r = json_dispatch(request, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;
        *ret = interpreter_find(o->interpreters, p.interpreter);
        *ret_name = p.name;
        return *ret ? 0 : -EINVAL;
}

static int variables_begin(Operation *o, json_object *request) {
        const char *name;
        Interpreter *i;

        if (parse_question(o, request, &i, &name) < 0 || *name)
                return operation_fail(o, "failed", "the request cannot be understood");
        if (interpreter_has_begun(i))
                return state_begin(o, "list", state_answer, (unsigned) (i - o->interpreters), "");

        /* One that has never run has none. An empty pipe takes so much at once. */
        (void) !write(o->channel, "[]", 2);
        return operation_end(o, NULL, 0);
}

static int variable_begin(Operation *o, json_object *request) {
        const char *name;
        Interpreter *i;

        if (parse_question(o, request, &i, &name) < 0 || !variable_is_valid(name))
                return operation_fail(o, "failed", "the request cannot be understood");
        if (!interpreter_has_begun(i))
                return operation_fail(o, "no-file", "%s has no variables: it has not run", interpreter_name(i));
        return state_begin(o, "show", state_answer, (unsigned) (i - o->interpreters), name);
}

#define STATE_TYPE(n, c, b)                                             \
        const OperationType operation_##n = {                           \
                .name = #n,                                             \
                .channel = c,                                           \
                .drivers = true,                                        \
                .begin = b,                                             \
                .on_child = state_on_child,                             \
                .on_talk = state_on_talk,                               \
                .on_report = state_on_report,                           \
                .on_interpreter_ended = state_on_interpreter_ended,     \
                .on_deadline = state_on_deadline,                       \
                .done = state_done,                                     \
        }

STATE_TYPE(save, OPERATION_WRITES, save_begin);
STATE_TYPE(restore, OPERATION_READS, restore_begin);
STATE_TYPE(variables, OPERATION_WRITES, variables_begin);
STATE_TYPE(variable, OPERATION_WRITES, variable_begin);
