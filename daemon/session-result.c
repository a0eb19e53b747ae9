/* SPDX-License-Identifier: MIT */

/*
 * What comes from the agent of a session, and what becomes of a turn that is over: told to the event log and the
 * history, answered to who waits for it, or kept until someone does.
 */

#include "daemon/session-private.h"

#include "daemon/manager.h"
#include "daemon/session-network.h"
#include "daemon/turn-reply.h"
#include "lib/log.h"

/* Of a turn that was over before this daemon began, the code may not be known. */
static void session_note_turn(Session *s, const Turn *t) {
        if (!s->name || (t->told && (t->code_size == 0 || history_last_turn(&s->history) >= t->number)))
                return;
        if (history_add(&s->history, &(HistoryRecord){
                                                     .turn = t->number,
                                                     .interpreter = interpreter_to_string(t->interpreter),
                                                     .code = t->code,
                                                     .code_size = t->code_size,
                                                     .exit_code = t->exit_code,
                                                     .duration_usec = t->duration_usec,
                                                     .time_usec = t->started_realtime,
                                     }) < 0)
                log_oom();
}

static void session_record_turn(Session *s, Turn *t) {
        s->turn_usec += MAX(t->duration_usec, BOUND_TURN_USEC_MIN);
        if (t->number > s->save.saved_turns)
                session_save_changed(s);
        session_note_turn(s, t);
        if (t->told)
                return;
        session_event_turn(s, t, t->timed_out ? "timed-out" : t->lost          ? "state-lost"
                                               : t->rolled_back ? "rolled-back"
                                                                : NULL);

        s->interpreters = t->lost ? s->interpreters & ~(1U << t->interpreter) : s->interpreters | 1U << t->interpreter;
        session_hits_after_turn(s, t);
        session_network_after_turn(s, t);
        session_keep_later(s);
}

/* The interpreter could not run at all: that is the caller's error, not a turn that failed. */
static void session_refuse_turn(Session *s, Turn *t, const AgentResult *result) {
        _cleanup_json_ json_object *p = json_object_new_object();
        const char *interpreter = interpreter_to_string(t->interpreter),
                   *error = "io.nixsandbox.StartFailed";
        _cleanup_free_ char *quoted = NULL;
        Buffer message = {};
        int r;

        if (streq(result->error, "missing")) {
                error = "io.nixsandbox.NoSuchInterpreter";
                r = buffer_printf(&message,
                                  environment_origin(s->environment)
                                          ? "The program '%s' is not in the root of environment '%s'. Add it to "
                                            "what the environment is built of, or use another interpreter."
                                          : "The program '%s' is not installed in environment '%s'. Install it on the "
                                            "host, or use another interpreter.",
                                  interpreter_program(t->interpreter), s->environment->name);
        } else {
                quoted = text_quote(result->error_text ?: "no reason given", 512);
                r = buffer_printf(&message,
                                  "%s did not start: %s. Try again, or kill the session to get a fresh one.",
                                  interpreter, quoted ?: "");
        }

        if (!p || r < 0 || json_put_string(p, "interpreter", interpreter) < 0 ||
            json_put_bytes(p, "message", buffer_data(&message), buffer_size(&message)) < 0)
                log_oom();
        turn_fail(t, error, p);
        buffer_done(&message);
}

/* Keeps a turn whose caller was answered early until Wait comes for it. */
static void session_park(Session *s, Turn *t) {
        (void) turn_free(s->parked);
        s->parked = t;
}

static void session_turn_over(Session *s) {
        s->backstop = 0;
        s->idle_since = now_monotonic();

        if (!s->name && !s->parked) {
                session_end(s, "done");
                return;
        }
        session_turns_dispatch(s);
        session_arm_timer(s);
}

/* Whoever has used up all turn time does not get what the last of it was spent for (row L3). */
static void session_withhold_turn(Session *s, Turn *t) {
        _cleanup_json_ json_object *p = json_object_new_object();

        if (!p || json_put_string(p, "session", s->name ?: s->id) < 0 ||
            json_put_string(p, "reason", bound_to_string(BOUND_TURN_BUDGET)) < 0 ||
            json_put_string(p, "message",
                            "This turn used up the time that all turns of the session have together "
                            "(session.turn_budget_seconds), so its result is withheld and the session has ended. "
                            "The next run with this name starts a new one.") < 0)
                log_oom();
        turn_fail(t, "io.nixsandbox.SessionEnded", p);
}

static void session_warn_bounds(Session *s, Turn *t) {
        const BoundsUse use = session_bounds_use(s);
        uint64_t now = now_monotonic();
        Bound near = bounds_near(&s->bounds, &use, now);

        if (near >= 0 && turn_describe_bound(t, near, bounds_left(&s->bounds, &use, near, now)) < 0)
                log_oom();
}

static bool session_is_out_of_turn_time(const Session *s) {
        const BoundsUse use = session_bounds_use(s);

        return bounds_left(&s->bounds, &use, BOUND_TURN_BUDGET, /* now= */ 0) == 0;
}

static void on_result(AgentLink *l, const AgentResult *result, void *userdata) {
        Session *s = userdata;
        Turn *t = TAKE_PTR(s->running);
        uint64_t ended = t->told ? t->started + result->duration_usec : USEC_INFINITY;
        int r;

        if (result->error) {
                if (!t->told)
                        session_event_turn(s, t, "not-run");
                session_refuse_turn(s, t, result);
                (void) turn_free(t);
                session_turn_over(s);
                return;
        }

        r = turn_take_result(t, result);
        if (r >= 0) {
                session_record_turn(s, t);
                if (session_is_out_of_turn_time(s)) {
                        session_withhold_turn(s, t);
                        (void) turn_free(t);
                        s->backstop = 0;
                        session_reap(s, BOUND_TURN_BUDGET);
                        return;
                }
                session_warn_bounds(s, t);
                r = turn_answer(t, 0);
        }
        if (r < 0) {
                turn_fail(t, "io.nixsandbox.Internal", NULL);
                (void) turn_free(t);
                log_oom();
        } else if (r == 0 && !t->abandoned)
                session_park(s, t);
        else
                (void) turn_free(t);
        session_turn_over(s);
        s->idle_since = MIN(s->idle_since, ended);
}

static void on_output(AgentLink *l, OutputStream stream, bool tail, const char *data, size_t size,
                      void *userdata) {
        Session *s = userdata;
        int r;

        r = turn_take_output(s->running, stream, tail, data, size);
        if (r == -EBADMSG)
                session_on_agent_gone(s, "its agent sent more output than it may");
        else if (r < 0)
                session_on_agent_gone(s, "memory is short");
}

static void on_value(AgentLink *l, AgentValueKind kind, const char *data, size_t size, void *userdata) {
        Session *s = userdata;
        int r;

        r = turn_values_take(&s->running->values, kind, data, size);
        if (r == -EBADMSG)
                session_on_agent_gone(s, "its agent sent more values than it may");
        else if (r < 0)
                session_on_agent_gone(s, "memory is short");
}

static void on_hello(AgentLink *l, const AgentHello *hello, void *userdata) {
        Session *s = userdata;

        if (s->attaching)
                session_on_attached(s, hello);
        else
                session_on_hello(s);
}

static void on_operated(AgentLink *l, uint64_t id, const AgentOperated *operated, void *userdata) {
        session_on_operated(userdata, operated);
}

static void on_checkpoints(AgentLink *l, const uint64_t *turns, size_t n, void *userdata) {
        Session *s = userdata;

        memcpy(s->checkpoints, turns, n * sizeof(*turns));
        s->n_checkpoints = n;
}

static void on_lost(AgentLink *l, const char *why, void *userdata) {
        session_turns_lose_agent(userdata, why);
}

const AgentLinkHandlers session_agent_handlers = {
        .on_hello = on_hello,
        .on_output = on_output,
        .on_value = on_value,
        .on_result = on_result,
        .on_operated = on_operated,
        .on_checkpoints = on_checkpoints,
        .on_lost = on_lost,
};
