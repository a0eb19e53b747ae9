/* SPDX-License-Identifier: MIT */

/*
 * The process and the operation end in any order, and what they say is put together when both have. The program
 * checks all of a snapshot before it sends the first byte, so its refusal leaves the jail as it was; all other
 * failures may have come half-way.
 */

#include "daemon/session-restore.h"

#include <stdio.h>

#include "daemon/manager.h"
#include "daemon/session-network.h"
#include "daemon/session-operation.h"
#include "daemon/session-private.h"
#include "daemon/snapshot-result.h"
#include "lib/fd-util.h"
#include "lib/log.h"
#include "lib/text.h"

/* From the session's start. */
#define RESTORE_USEC (120 * USEC_PER_SEC)
#define WHY_SHOWN_MAX 300U

struct SessionRestore {
        char key[SNAPSHOT_KEY_LENGTH + 1];
        char id[SNAPSHOT_ID_LENGTH + 1]; /* "": none named */
        bool automatic;
        VarlinkLink *link; /* a reference */
        uint64_t deadline;
        bool begun;
        SnapshotJob *job;
        SessionOperation *operation;
        bool streamed; /* the agent got the channel */
        char *error, *why; /* of the process, or of what became of it */
        bool is_clean;     /* that failure came before the first byte */
        char *operation_why; /* NULL: it went well */
        json_object *result, *report;
};

static SessionRestore *restore_free(SessionRestore *v) {
        if (!v)
                return NULL;

        if (v->job)
                snapshot_job_cancel(v->job);
        if (v->operation)
                session_operation_cancel(v->operation);
        if (v->link)
                (void) varlink_link_unref(v->link);
        free(v->error);
        free(v->why);
        free(v->operation_why);
        json_object_put(v->result);
        json_object_put(v->report);
        return mfree(v);
}

static void session_set_notice(Session *s, char *notice) {
        free(s->notice);
        s->notice = notice;
}

/* ---- the ends ---- */

static int answer_restored(Session *s, SessionRestore *v, const char *notice) {
        _cleanup_json_ json_object *o = json_object_new_object();
        json_object *parts = snapshot_restored_parts(v->report);

        if (!o || json_put_string(o, "id", s->id) < 0 || json_put_string(o, "session", s->name) < 0 ||
            json_put_string(o, "notice", notice) < 0 ||
            json_put_object(o, "parts", parts ? json_object_get(parts) : json_object_new_array()) < 0)
                return -ENOMEM;
        (void) varlink_reply(v->link, o);
        return 0;
}

static void answer_failed(const Session *s, SessionRestore *v, const char *why) {
        _cleanup_json_ json_object *p = json_object_new_object();
        _cleanup_free_ char *message = NULL;

        if (asprintf(&message, "Session '%s' was not made: %s", s->name, why) < 0)
                message = NULL;
        if (!p || json_put_string(p, "snapshot", v->id) < 0 || json_put_string(p, "message", message) < 0)
                log_oom();
        (void) varlink_error(v->link, "io.nixsandbox.SnapshotInvalid", p);
}

static void restore_succeeded(Session *s, SessionRestore *v, const SnapshotInfo *info) {
        const EventField fields[] = {
                { "snapshot", .text = info->id },
                { "bytes", .number = info->bytes },
                {},
        };
        _cleanup_free_ char *notice = NULL;
        json_object *history = NULL;
        static const JsonField table[] = {
                { "history", JSON_KIND_ARRAY, 0 },
                {},
        };

        if (json_dispatch(v->result, table, JSON_UNKNOWN_IGNORE, &history, NULL) >= 0 && history &&
            history_from_json(&s->history, history) < 0)
                log_warning("Session %s: the history in its snapshot cannot be read, in part.", s->id);
        history_set_restored(&s->history);
        if (snapshot_describe_restored(v->result, info, v->report, &notice) < 0)
                log_oom();

        session_event_full(s, "restored", v->automatic ? "automatic" : "by hand", /* by= */ NULL, fields);
        session_save_is(s, info->id, info->bytes);
        s->restored = true;
        if (v->link) {
                if (answer_restored(s, v, notice) < 0)
                        (void) varlink_error(v->link, "io.nixsandbox.Internal", NULL);
        } else
                session_set_notice(s, TAKE_PTR(notice));
        (void) restore_free(v);

        session_keep(s);
        s->idle_since = now_monotonic();
        session_turns_dispatch(s);
        session_arm_timer(s);
}

/* Another session of the same name takes over the turns that wait, since this one may hold half of a state. */
static void session_start_over(Session *s, char *notice) {
        const SessionRequest request = {
                .peer = &s->peer,
                .name = s->name,
                .project = s->project,
                .project_mode = s->project_mode,
                .environment = s->environment,
                .network = s->network && s->network->policy.narrowed ? &s->network->policy.caller : NULL,
                .limits = s->limits,
        };
        _cleanup_free_ char *owned_notice = notice;
        Session *fresh;
        Turn *first;
        int r;

        first = session_turns_take_queue(s);
        session_end(s, "restore-failed");
        (void) obituaries_take(&s->manager->obituaries, s->user->uid, s->project, s->name); /* said here */

        r = session_new(s->manager, &request, &fresh);
        if (r < 0) {
                session_turns_give_queue(s, first);
                session_turns_fail_all(s, "io.nixsandbox.StartFailed", NULL);
                return;
        }
        session_set_notice(fresh, TAKE_PTR(owned_notice));
        session_turns_give_queue(fresh, first);
        session_start(fresh);
}

static void restore_failed(Session *s, SessionRestore *v, const char *why) {
        bool clean = !v->streamed || v->is_clean, by_hand = v->link, closed = v->error && streq(v->error, "closed");
        _cleanup_free_ char *notice = NULL;

        log_warning("Session %s of uid %u was not restored: %s", s->id, (unsigned) s->user->uid, why);
        if (asprintf(&notice, "The saved state of this session could not be restored, so it starts empty: %s",
                     why) < 0)
                notice = NULL;
        if (by_hand)
                answer_failed(s, v, why);
        (void) restore_free(v);

        if (by_hand)
                return session_end(s, "restore-failed");
        if (!clean)
                return session_start_over(s, TAKE_PTR(notice));
        if (!closed)
                session_set_notice(s, TAKE_PTR(notice));
        session_keep(s);
        session_turns_dispatch(s);
        session_arm_timer(s);
}

/* When both are over. */
static void restore_over(Session *s) {
        SessionRestore *v = s->restore;
        SnapshotInfo info;

        if (v->job || v->operation)
                return;
        s->restore = NULL;
        if (v->error)
                restore_failed(s, v, v->why ?: "no reason given.");
        else if (v->operation_why)
                restore_failed(s, v, v->operation_why);
        else if (snapshot_info_parse(v->result, &info) < 0)
                restore_failed(s, v, "The answer of sandbox-snapshot could not be read.");
        else
                restore_succeeded(s, v, &info);
}

static void on_loaded(SnapshotJob *job, const SnapshotResult *result, void *userdata) {
        Session *s = userdata;
        SessionRestore *v = s->restore;
        static const char *const before_first_byte[] = { "none",  "closed", "damaged", "foreign-version",
                                                         "usage", "busy",   "missing" };

        v->job = NULL;
        v->result = json_object_get(result->json);
        if (result->error) {
                v->error = strdup(result->error);
                v->why = strdup(result->why);
                for (size_t i = 0; i < ELEMENTSOF(before_first_byte); i++)
                        v->is_clean |= streq(result->error, before_first_byte[i]);
        }
        restore_over(s);
}

static void on_restore_operated(SessionOperation *op, const char *error, const char *text, json_object *report,
                                void *userdata) {
        Session *s = userdata;
        SessionRestore *v = s->restore;

        v->operation = NULL;
        v->report = json_object_get(report);
        if (error) {
                _cleanup_free_ char *quoted = text_quote(text ?: "no reason given", WHY_SHOWN_MAX);

                if (asprintf(&v->operation_why, "The session did not take it (%s: %s).", error, quoted ?: "") < 0)
                        v->operation_why = NULL;
        }
        restore_over(s);
}

/* ---- the beginning ---- */

static int restore_operate(Session *s, int fd) {
        _cleanup_json_ json_object *request = json_object_new_object();
        SessionOperation *op;
        int r;

        if (!request || json_put_string(request, "operation", "restore") < 0) {
                (void) safe_close(fd);
                return -ENOMEM;
        }
        r = session_operation_new(TAKE_PTR(request), fd, &op);
        if (r < 0)
                return r;
        op->needs_drivers = true;
        op->deadline = s->restore->deadline;
        op->on_done = on_restore_operated;
        op->userdata = s;
        r = session_operate(s, op);
        if (r >= 0)
                s->restore->operation = op;
        return r;
}

static void on_load_started(SnapshotJob *job, int fd, void *userdata) {
        Session *s = userdata;
        SessionRestore *v = s->restore;
        int r;

        r = restore_operate(s, fd);
        v->streamed = r >= 0;
        if (r < 0 && asprintf(&v->operation_why, "The session could not be asked to take it: %s.", strerror(-r)) < 0)
                v->operation_why = NULL;
}

void session_restore_dispatch(Session *s) {
        SessionRestore *v = s->restore;
        int r;

        if (s->state != SESSION_RUNNING || v->begun)
                return;
        v->begun = true;

        r = snapshot_job_new(s->manager->snapshots,
                             &(SnapshotRequest){
                                             .verb = SNAPSHOT_LOAD,
                                             .uid = s->user->uid,
                                             .key = v->key,
                                             .id = *v->id ? v->id : NULL,
                                             .automatic = v->automatic,
                                             .deadline_usec = RESTORE_USEC,
                                             .on_started = on_load_started,
                                             .on_done = on_loaded,
                                             .userdata = s,
                             },
                             &v->job);
        if (r < 0) {
                s->restore = NULL;
                restore_failed(s, v, "Too much is being restored, or memory is short.");
        }
}

int session_restore_begin(Session *s, const SessionRestoreRequest *request) {
        SessionRestore *v;

        v = calloc(1, sizeof(*v));
        if (!v)
                return -ENOMEM;
        v->automatic = request->automatic;
        v->deadline = now_monotonic() + RESTORE_USEC;
        v->link = request->link ? varlink_link_ref(request->link) : NULL;
        (void) snprintf(v->key, sizeof(v->key), "%s", request->key);
        (void) snprintf(v->id, sizeof(v->id), "%s", request->id ?: "");
        s->restore = v;
        session_keep(s); /* another daemon must not take over what is half there */
        return 0;
}

uint64_t session_restore_next_deadline(const Session *s) {
        return s->restore ? s->restore->deadline : USEC_INFINITY;
}

void session_restore_on_time(Session *s, uint64_t now) {
        SessionRestore *v = s->restore;

        if (!v || v->deadline > now)
                return;
        s->restore = NULL;
        restore_failed(s, v, "It took too long.");
}

bool session_restore_on_lost(Session *s, const char *why) {
        SessionRestore *v = TAKE_PTR(s->restore);
        _cleanup_free_ char *sentence = NULL;

        if (!v)
                return false;
        v->streamed = true;
        v->is_clean = false;
        if (asprintf(&sentence, "The session ended while it was restored (%s).", why) < 0)
                sentence = NULL;
        restore_failed(s, v, sentence ?: why);
        return true;
}

void session_restore_cancel(Session *s) {
        SessionRestore *v = TAKE_PTR(s->restore);

        if (v && v->link)
                answer_failed(s, v, "it was ended.");
        (void) restore_free(v);
}
