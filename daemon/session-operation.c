/* SPDX-License-Identifier: MIT */

/* The queue of operations of a session. Only its first one can be with the agent. */

#include "daemon/session-operation.h"

#include "daemon/session-private.h"
#include "lib/fd-util.h"
#include "lib/json.h"

int session_operation_new(json_object *request, int fd, SessionOperation **ret) {
        SessionOperation *op;

        op = malloc(sizeof(*op));
        if (!op) {
                json_object_put(request);
                (void) safe_close(fd);
                return -ENOMEM;
        }

        *op = (SessionOperation){ .request = request, .fd = fd, .deadline = USEC_INFINITY };
        *ret = op;
        return 0;
}

SessionOperation *session_operation_free(SessionOperation *op) {
        if (!op)
                return NULL;

        assert(!op->session);

        json_object_put(op->request);
        (void) safe_close(op->fd);
        return mfree(op);
}

static unsigned session_count_operations(const Session *s) {
        unsigned n = 0;

        for (const SessionOperation *op = s->operations; op; op = op->next)
                n++;
        return n;
}

static void session_unlink_operation(Session *s, SessionOperation *op) {
        if (op == s->operations && s->operation_runs) {
                s->operation_runs = false;
                if (s->agent)
                        agent_link_forget_operation(s->agent);
        }
        for (SessionOperation **p = &s->operations; *p; p = &(*p)->next)
                if (*p == op) {
                        *p = op->next;
                        break;
                }
        op->session = NULL;
        op->next = NULL;
}

/* What it does may change the queue. */
static void session_finish_operation(Session *s, SessionOperation *op, const char *error, const char *text,
                                     json_object *report) {
        session_unlink_operation(s, op);
        s->idle_since = now_monotonic();
        op->on_done(op, error, text, report, op->userdata);
        (void) session_operation_free(op);
}

/* The session's timer fires at once: nobody is called back from inside of calls that users make. */
static void session_operations_look_later(Session *s) {
        s->operations_due = true;
        session_arm_timer(s);
}

void session_operations_dispatch(Session *s) {
        SessionOperation *op = s->operations;

        if (!op || !s->agent || s->operation_runs || (op->needs_drivers && s->running))
                return;
        if (s->state == SESSION_STANDBY && session_thaw(s, /* by= */ NULL) < 0)
                s->operation_fault = "it cannot be thawed";
        if (s->state != SESSION_RUNNING || s->attaching)
                return;

        s->operation_runs = true;
        if (agent_link_operate(s->agent, ++s->operation_id, op->request, TAKE_FD(op->fd)) < 0)
                s->operation_fault = "it does not take requests";
}

int session_operate(Session *s, SessionOperation *op) {
        _cleanup_(session_operation_freep) SessionOperation *owned_op = op;
        SessionOperation **end = &s->operations;
        size_t size;

        if (!session_verb_allowed(s->state, SESSION_VERB_OPERATE))
                return -EHOSTDOWN;
        if (session_count_operations(s) > SESSION_OPERATIONS_MAX)
                return -EBUSY;
        if (!json_text(op->request, &size))
                return -ENOMEM;
        if (size > AGENT_OPERATE_MAX)
                return -EMSGSIZE;

        while (*end)
                end = &(*end)->next;
        *end = TAKE_PTR(owned_op);
        op->session = s;

        session_operations_dispatch(s);
        session_arm_timer(s);
        return 0;
}

void session_operation_cancel(SessionOperation *op) {
        Session *s = op->session;

        if (s) {
                session_unlink_operation(s, op);
                s->idle_since = now_monotonic();
                session_operations_look_later(s);
        }
        (void) session_operation_free(op);
}

void session_on_operated(Session *s, const AgentOperated *operated) {
        SessionOperation *op = s->operations;

        assert(op && s->operation_runs);

        session_finish_operation(s, op, operated->error, operated->error_text, operated->report);
        session_turns_dispatch(s);
        session_arm_timer(s);
}

void session_operations_fail_all(Session *s, const char *error, const char *text) {
        while (s->operations)
                session_finish_operation(s, s->operations, error, text, /* report= */ NULL);
}

/* From the first again after each, since an end may change the queue. */
static void session_expire_operations(Session *s, uint64_t now) {
        for (SessionOperation *op = s->operations; op;) {
                if (op->deadline > now) {
                        op = op->next;
                        continue;
                }
                session_finish_operation(s, op, SESSION_OPERATION_TIMED_OUT,
                                         "The session did not get it done in time.", /* report= */ NULL);
                op = s->operations;
        }
}

void session_operations_on_time(Session *s, uint64_t now) {
        s->operations_due = false;
        if (s->operation_fault) {
                session_on_agent_gone(s, s->operation_fault);
                return;
        }

        session_expire_operations(s, now);
        if (session_is_live(s))
                session_turns_dispatch(s);
}

uint64_t session_operations_next_deadline(const Session *s) {
        uint64_t next = s->operations_due || s->operation_fault ? 0 : USEC_INFINITY;

        for (const SessionOperation *op = s->operations; op; op = op->next)
                next = MIN(next, op->deadline);
        return next;
}

bool session_operations_hold_turns(const Session *s) {
        const SessionOperation *op = s->operations;

        return op && op->needs_drivers && !(s->operation_runs && op->turns_go_on);
}

void session_operations_abandon(Session *s) {
        session_operations_fail_all(s, SESSION_OPERATION_RELOADED, "sandboxd is being reloaded.");
}
