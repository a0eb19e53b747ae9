/* SPDX-License-Identifier: MIT */

/* Rollback: a session's python goes back to a checkpoint, which its agent does as an operation. */

#include "daemon/api-private.h"
#include "daemon/session-operation.h"

/* With the time that it waits for turns to end. */
#define ROLLBACK_USEC (60 * USEC_PER_SEC)
#define ROLLBACK_STEPS_MAX 1000U

typedef struct Rollback {
        VarlinkLink *link;
        Session *target;      /* borrowed, until the operation is over */
        SessionOperation *op; /* NULL: it is over */
        char *session;        /* name or id */
        const char *mode;     /* of checkpoints; static */
} Rollback;

static Rollback *rollback_free(Rollback *b) {
        if (!b)
                return NULL;

        if (b->op)
                session_operation_cancel(b->op);
        (void) varlink_link_unref(b->link);
        free(b->session);
        return mfree(b);
}
DEFINE_TRIVIAL_CLEANUP_FUNC(Rollback *, rollback_free);

static int refuse_rollback(const Rollback *b) {
        if (streq(b->mode, "auto"))
                return api_error(b->link, API_ERROR("NoCheckpoint"), "session", b->session,
                                 "Session '%s' has no checkpoint to go back so far: short turns get none. With "
                                 "\"checkpoints\": \"always\" in the configuration there is one after each turn of "
                                 "python.",
                                 b->session);
        return api_error(b->link, API_ERROR("NoCheckpoint"), "session", b->session,
                         "Session '%s' has no checkpoint to go back so far: the mode is \"%s\", and the last %u "
                         "states of its python are all that is ever kept.",
                         b->session, b->mode, AGENT_CHECKPOINTS_MAX);
}

static int answer_rollback(const Rollback *b, json_object *report) {
        struct {
                uint64_t turn;
                bool pipes_gone, children_gone, threads_gone;
        } p = {};
        static const JsonField table[] = {
                { "turn", JSON_KIND_UINT, offsetof(typeof(p), turn), JSON_MANDATORY },
                { "pipes_gone", JSON_KIND_BOOL, offsetof(typeof(p), pipes_gone), JSON_MANDATORY },
                { "children_gone", JSON_KIND_BOOL, offsetof(typeof(p), children_gone), JSON_MANDATORY },
                { "threads_gone", JSON_KIND_BOOL, offsetof(typeof(p), threads_gone), JSON_MANDATORY },
                {},
        };
        _cleanup_json_ json_object *reply = json_object_new_object();
        _cleanup_(buffer_done) Buffer notice = {};
        int r;

        if (!report || json_dispatch(report, table, JSON_UNKNOWN_REFUSE, &p, NULL) < 0 || p.turn > INT64_MAX)
                return api_refuse_operation(b->link, b->session, "failed", "its agent gave no proper report");

        session_save_changed(b->target);
        session_event_rolled_back(b->target, p.turn, varlink_link_peer(b->link)->uid);
        r = buffer_printf(&notice, "Variables are as they were after turn %" PRIu64 ". Files are not changed.%s%s%s",
                          p.turn, p.pipes_gone ? " Pipes and sockets that were open then are closed." : "",
                          p.children_gone ? " Processes that it had started can no longer be waited for." : "",
                          p.threads_gone ? " Its threads are gone." : "");
        if (!reply || r < 0 || json_put_uint(reply, "turn", p.turn) < 0 ||
            json_put_bytes(reply, "notice", buffer_data(&notice), buffer_size(&notice)) < 0)
                return -ENOMEM;
        return varlink_reply(b->link, reply);
}

static void on_done(SessionOperation *op, const char *error, const char *text, json_object *report, void *userdata) {
        _cleanup_(rollback_freep) Rollback *b = userdata;
        int r;

        b->op = NULL;
        if (error && streq(error, "refused"))
                r = refuse_rollback(b);
        else if (error)
                r = api_refuse_operation(b->link, b->session, error, text);
        else
                r = answer_rollback(b, report);
        if (r < 0)
                (void) varlink_error(b->link, API_ERROR("Internal"), NULL);
}

/* What has begun goes on: nobody is told how it ended. */
static void on_disconnect(VarlinkLink *link, void *userdata) {
        Rollback *b = userdata;

        session_save_changed(b->target);
        (void) rollback_free(b);
}

static int rollback_new(VarlinkLink *link, Session *s, uint64_t steps, Rollback **ret) {
        _cleanup_json_ json_object *request = json_object_new_object();
        _cleanup_(rollback_freep) Rollback *b = malloc(sizeof(*b));
        int r;

        if (!b)
                return -ENOMEM;
        *b = (Rollback){
                .link = varlink_link_ref(link),
                .target = s,
                .session = strdup(s->name ?: s->id),
                .mode = s->manager->config->session.checkpoints,
        };
        if (!b->session || !request || json_put_string(request, "operation", "rollback") < 0 ||
            json_put_string(request, "interpreter", "python") < 0 || json_put_uint(request, "turns", steps) < 0)
                return -ENOMEM;

        r = session_operation_new(TAKE_PTR(request), /* fd= */ -EBADF, &b->op);
        if (r < 0)
                return r;
        b->op->needs_drivers = true;
        b->op->deadline = now_monotonic() + ROLLBACK_USEC;
        b->op->on_done = on_done;
        b->op->userdata = b;

        *ret = TAKE_PTR(b);
        return 0;
}

int vl_method_rollback(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        struct {
                SessionParameters session;
                uint64_t steps;
        } p = { .steps = 1 };
        static const JsonField table[] = {
                { "session", JSON_KIND_STRING, offsetof(typeof(p), session.session), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(typeof(p), session.project) },
                { "steps", JSON_KIND_UINT, offsetof(typeof(p), steps) },
                {},
        };
        _cleanup_(rollback_freep) Rollback *b = NULL;
        SessionOperation *op;
        Session *s;
        int r;

        r = api_dispatch(link, parameters, table, &p);
        if (r != 0)
                return MIN(r, 0);
        if (p.steps < 1 || p.steps > ROLLBACK_STEPS_MAX)
                return varlink_error_invalid(link, "steps", "It must be between 1 and 1000.");
        r = api_find_session(link, userdata, &p.session, SESSION_VERB_OPERATE, &s);
        if (r == 0)
                r = rollback_new(link, s, p.steps, &b);
        if (r != 0)
                return MIN(r, 0);

        op = TAKE_PTR(b->op);
        r = session_operate(s, op);
        if (r < 0)
                return api_refuse_operate(link, s, r);
        b->op = op;
        varlink_link_on_disconnect(link, on_disconnect, TAKE_PTR(b));
        return 0;
}
