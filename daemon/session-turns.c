/* SPDX-License-Identifier: MIT */

/*
 * The turns of a session: a queue in order of arrival, and one running (session-result.c: how it ends). The next is
 * handed to the agent as soon as the last one's result is there; the first one goes out before the agent has
 * even started, since its socket keeps it.
 */

#include "daemon/session-private.h"

#include "daemon/manager.h"
#include "lib/log.h"

/* How long a jail whose agent is of no use may take to end by itself. */
#define SESSION_FAULT_USEC USEC_PER_SEC

/* What copies of python may take of the session's memory: one part in so many. */
#define CHECKPOINT_SHARE 4U

static void session_queue_push(Session *s, Turn *t) {
        t->next = NULL;
        if (s->queue_last)
                s->queue_last->next = t;
        else
                s->queue_first = t;
        s->queue_last = t;
        s->n_queued++;
}

static Turn *session_queue_pop(Session *s) {
        Turn *t = s->queue_first;

        if (!t)
                return NULL;
        s->queue_first = TAKE_PTR(t->next);
        if (!s->queue_first)
                s->queue_last = NULL;
        s->n_queued--;
        return t;
}

static void session_queue_remove(Session *s, Turn *t) {
        Turn *previous = NULL;

        for (Turn **p = &s->queue_first; *p; previous = *p, p = &(*p)->next)
                if (*p == t) {
                        *p = t->next;
                        if (s->queue_last == t)
                                s->queue_last = previous;
                        s->n_queued--;
                        return;
                }
}

/* Time that is not the turn's: the agent counts from when it has the turn and its interpreter is ready. */
static uint64_t session_start_allowance(const Session *s) {
        return s->state == SESSION_STARTING ? SESSION_START_USEC * SESSION_START_TRIES : 0;
}

static void session_set_backstop(Session *s, const Turn *t) {
        s->backstop = now_monotonic() + session_start_allowance(s) + AGENT_START_USEC + t->timeout_usec +
                      AGENT_BACKSTOP_USEC;
        session_arm_timer(s);
}

/* While it starts, the end of the jail's process tells more; it follows at once, or is made to. */
void session_turns_lose_agent(Session *s, const char *why) {
        if (s->state != SESSION_STARTING)
                return session_on_agent_gone(s, why);

        s->agent = agent_link_free(s->agent);
        s->agent_fault = why;
        s->start_deadline = MIN(s->start_deadline, now_monotonic() + SESSION_FAULT_USEC);
        session_arm_timer(s);
}

void session_turns_on_hello(Session *s) {
        if (s->running)
                session_set_backstop(s, s->running); /* the start is over, and its allowance with it */
        session_turns_dispatch(s);
}

/* No turn gets more time than is left for all of them. */
static uint64_t session_turn_timeout(const Session *s, const Turn *t) {
        const BoundsUse use = session_bounds_use(s);
        uint64_t left = bounds_left(&s->bounds, &use, BOUND_TURN_BUDGET, /* now= */ 0);

        return MIN(t->timeout_usec, MAX(left, BOUND_TURN_USEC_MIN));
}

/* A turn without a session is the only one: there is nothing to go back for. Node has none. */
static const char *session_checkpoint_mode(const Session *s, const Turn *t) {
        return s->name && t->interpreter != INTERPRETER_NODE ? s->manager->config->session.checkpoints : NULL;
}

/* What its caller has to know of the session. */
static void session_tell_turn(Session *s, Turn *t) {
        if (s->restored && t->number == 1)
                t->origin = SESSION_ORIGIN_RESTORED;
        if ((s->notice && turn_add_notice(t, "%s", s->notice) < 0) ||
            (s->save.notice && turn_add_notice(t, "%s", s->save.notice) < 0))
                log_oom();
        s->notice = mfree(s->notice);
        s->save.notice = mfree(s->save.notice);
}

void session_turns_dispatch(Session *s) {
        Turn *t;
        int r;

        session_operations_dispatch(s);
        if (s->restore)
                return session_restore_dispatch(s);
        if (!s->agent || s->running || session_save_dispatch(s) || !s->queue_first || session_operations_hold_turns(s))
                return;
        if (s->state == SESSION_STANDBY && session_thaw(s, /* by= */ NULL) < 0)
                return session_end(s, "freezer-failed");
        if (s->state != SESSION_STARTING && s->state != SESSION_RUNNING)
                return;
        if (s->attaching)
                return; /* session_on_attached() comes back */

        t = s->running = session_queue_pop(s);
        if (t->number == 0)
                t->number = ++s->turns;
        session_tell_turn(s, t);
        t->started = now_monotonic();
        t->started_realtime = now_realtime();
        session_hits_before_turn(s, t->started);

        r = agent_link_execute(s->agent, &(AgentRequest){
                                                         .turn = t->number,
                                                         .interpreter = t->interpreter,
                                                         .timeout_usec = session_turn_timeout(s, t),
                                                         .origin = session_origin_to_string(t->origin),
                                                         .tag = t->tag,
                                                         .checkpoints = session_checkpoint_mode(s, t),
                                                         .checkpoint_mb = s->limits.memory_mb / CHECKPOINT_SHARE,
                                                         .code = t->code,
                                                         .size = t->code_size,
                                         });
        if (r < 0)
                return session_turns_lose_agent(s, "it does not take requests");
        session_set_backstop(s, t);
        session_keep_later(s);
}

void session_enqueue(Session *s, Turn *t) {
        session_unretire_idle(s);
        session_queue_push(s, t);
        session_turns_dispatch(s);
        session_arm_timer(s);
}

/* Before another try to start: the turn that was sent ahead was never run. */
void session_turns_on_agent_lost(Session *s) {
        Turn *t = TAKE_PTR(s->running);

        s->backstop = 0;
        if (!t)
                return;
        if (t->abandoned) {
                (void) turn_free(t);
                return;
        }

        t->interrupt_sent = false;
        t->next = s->queue_first;
        s->queue_first = t;
        if (!s->queue_last)
                s->queue_last = t;
        s->n_queued++;
}

void session_turns_fail_waiting(Session *s, const char *error, json_object *parameters) {
        Turn *t;

        if (s->running) {
                turn_fail(s->running, error, parameters);
                s->running->abandoned = true;
        }
        while ((t = session_queue_pop(s))) {
                turn_fail(t, error, parameters);
                (void) turn_free(t);
        }
}

void session_turns_fail_all(Session *s, const char *error, json_object *parameters) {
        session_turns_fail_waiting(s, error, parameters);
        s->backstop = 0;
        s->running = turn_free(s->running);
}

Turn *session_turns_take_queue(Session *s) {
        s->queue_last = NULL;
        s->n_queued = 0;
        return TAKE_PTR(s->queue_first);
}

void session_turns_give_queue(Session *s, Turn *first) {
        while (first) {
                Turn *t = first;

                first = t->next;
                t->context = &s->turn_context;
                session_queue_push(s, t);
        }
}

/* ---- waiting, stopping, time ---- */

/* A parked turn is answered at once, and then it is gone. */
static int session_wait_turn(Session *s, Turn *t, VarlinkLink *link, bool owner, bool stream, uint64_t answer_at) {
        int r;

        r = turn_add_waiter(t, link, owner, stream, answer_at);
        if (t != s->parked) {
                if (r >= 0)
                        session_arm_timer(s);
                return r;
        }

        s->parked = NULL;
        if (r >= 0)
                r = turn_answer(t, 0);
        (void) turn_free(t);
        if (!s->name)
                session_end(s, "done");
        return MIN(r, 0);
}

int session_wait(Session *s, VarlinkLink *link, bool stream, uint64_t answer_at) {
        Turn *t = s->parked ?: s->running ?: s->queue_first;

        return t ? session_wait_turn(s, t, link, /* owner= */ false, stream, answer_at) : -ENOENT;
}

static Turn *session_find_tagged(const Session *s, const char *tag) {
        if (s->running && streq_ptr(s->running->tag, tag))
                return s->running;
        if (s->parked && streq_ptr(s->parked->tag, tag))
                return s->parked;
        for (Turn *t = s->queue_first; t; t = t->next)
                if (streq_ptr(t->tag, tag))
                        return t;
        return NULL;
}

int session_wait_tagged(Manager *m, uid_t uid, const char *tag, VarlinkLink *link, bool stream, uint64_t answer_at) {
        for (Session *s = m->sessions; s; s = s->next) {
                Turn *t = s->user->uid == uid && session_is_live(s) ? session_find_tagged(s, tag) : NULL;

                if (t)
                        return session_wait_turn(s, t, link, /* owner= */ true, stream, answer_at);
        }
        return -ENOENT;
}

bool session_interrupt(Session *s) {
        Turn *t = s->running;

        if (!t || !s->agent)
                return false;
        if (t->interrupt_sent)
                return true;

        t->interrupt_sent = true;
        if (agent_link_interrupt(s->agent) < 0)
                session_turns_lose_agent(s, "it does not take requests");
        else
                s->backstop = MIN(s->backstop, now_monotonic() + session_start_allowance(s) +
                                                       AGENT_BACKSTOP_USEC);
        session_arm_timer(s);
        return true;
}

void session_turn_abandoned(Session *s, Turn *t) {
        if (t == s->running) {
                t->abandoned = true;
                if (s->name)
                        (void) session_interrupt(s);
                else
                        session_end(s, "client-gone");
                return;
        }

        session_queue_remove(s, t);
        (void) turn_free(t);
        if (!s->name)
                session_end(s, "client-gone");
}

void session_turns_on_time(Session *s, uint64_t now) {
        if (s->backstop > 0 && s->backstop <= now) {
                session_on_agent_gone(s, "its agent did not stop a turn in time");
                return;
        }

        if (s->running)
                (void) turn_answer(s->running, now);
        for (Turn *t = s->queue_first; t; t = t->next)
                (void) turn_answer(t, now);
}

uint64_t session_turns_next_deadline(const Session *s) {
        uint64_t next = s->backstop > 0 ? s->backstop : USEC_INFINITY;

        if (s->running)
                next = MIN(next, turn_next_answer(s->running));
        for (const Turn *t = s->queue_first; t; t = t->next)
                next = MIN(next, turn_next_answer(t));
        return next;
}
