/* SPDX-License-Identifier: MIT */

/*
 * One save at a time. It is wanted (by hand, by time, before the session sleeps or ends), begins as soon as no turn
 * runs, and ends with the process: that has written all of it, or nothing. What is to follow it, standby or the end of
 * the session, looks again then.
 */

#include "daemon/session-save.h"

#include <stdio.h>

#include "daemon/manager.h"
#include "daemon/session-operation.h"
#include "daemon/session-private.h"
#include "daemon/snapshot-result.h"
#include "lib/fd-util.h"
#include "lib/log.h"
#include "lib/text.h"
#include "lib/version.h"

/* A turn that runs is waited for by hand; then whoever asked may ask again. */
#define HAND_USEC (30 * USEC_PER_SEC)
/* Turns wait this long for a process to start, and no longer. */
#define HOLD_USEC USEC_PER_SEC
/* For a gibibyte on a slow disk. */
#define SAVE_USEC (120 * USEC_PER_SEC)
#define RETRY_MAX_USEC (3600 * USEC_PER_SEC)
#define WHY_SHOWN_MAX 200U

static const char *const reason_names[_SAVE_REASON_MAX] = {
        [SAVE_BY_HAND] = "by-hand", [SAVE_PERIODIC] = "periodic", [SAVE_STANDBY] = "standby",
        [SAVE_IDLE] = "idle",       [SAVE_LIFETIME] = "lifetime", [SAVE_TURN_BUDGET] = "turn_budget",
        [SAVE_SHUTDOWN] = "shutdown",
};

const char *save_reason_to_string(SaveReason r) {
        assert(r >= 0 && r < _SAVE_REASON_MAX);

        return reason_names[r];
}

void session_save_changed(Session *s) {
        SessionSave *v = &s->save;

        if (!session_save_is_changed(v))
                v->changed_at = now_monotonic();
        v->changes++;
        v->gave_up = false;
}

void session_save_is(Session *s, const char *snapshot, uint64_t bytes) {
        SessionSave *v = &s->save;

        v->saved_changes = v->changes;
        v->saved_turns = s->turns;
        v->bytes = bytes;
        (void) snprintf(v->snapshot, sizeof(v->snapshot), "%s", snapshot);
}

void session_save_was(Session *s, const char *snapshot, uint64_t bytes, bool changed) {
        SessionSave *v = &s->save;

        (void) snprintf(v->snapshot, sizeof(v->snapshot), "%s", snapshot ?: "");
        v->bytes = bytes;
        if (changed)
                session_save_changed(s);
}

bool session_save_is_lost(const Session *s) {
        char key[SNAPSHOT_KEY_LENGTH + 1];

        if (!*s->save.snapshot)
                return false;
        snapshot_key(s->project, s->name, key);
        return !snapshot_is_there(s->manager->snapshots, s->user->uid, key, s->save.snapshot);
}

/* ---- the end of a save ---- */

static const char *api_error_of(const char *error) {
        if (streq(error, "busy") || streq(error, "timeout"))
                return "io.nixsandbox.Busy";
        return "io.nixsandbox.SaveFailed";
}

static void save_retry_later(Session *s) {
        SessionSave *v = &s->save;
        uint64_t pause = s->manager->config->snapshots.interval_usec;

        if (pause == USEC_INFINITY)
                return;
        for (unsigned i = 1; i < v->failures && pause < RETRY_MAX_USEC; i++)
                pause *= 2;
        v->retry_at = now_monotonic() + MIN(pause, MAX(RETRY_MAX_USEC, s->manager->config->snapshots.interval_usec));
}

static void save_failed(Session *s, const char *error, const char *why) {
        SessionSave *v = &s->save;

        v->failures++;
        v->gave_up = true;
        save_retry_later(s);
        session_save_answer_failed(s, api_error_of(error), why);
        if (v->told || v->reason == SAVE_BY_HAND)
                return;

        v->told = true;
        log_warning("Session %s of uid %u: its state was not saved (%s): %s", s->id, (unsigned) s->user->uid, error,
                    why);
        v->notice = mfree(v->notice);
        if (asprintf(&v->notice, "State could not be saved: %s It is tried again later.", why) < 0)
                v->notice = NULL;
}

/* Row P3: what is not saved is said, once for as long as it is the same. */
static void save_tell_skipped(SessionSave *v, json_object *parts) {
        _cleanup_free_ char *notice = NULL;

        if (save_skipped_notice(parts, &notice) < 0) {
                log_oom();
                return;
        }
        if (notice && v->reason != SAVE_BY_HAND && !streq_ptr(notice, v->skipped))
                v->notice = strdup(notice);
        free(v->skipped);
        v->skipped = TAKE_PTR(notice);
}

static void save_succeeded(Session *s, const SnapshotInfo *info) {
        SessionSave *v = &s->save;
        const EventField fields[] = {
                { "snapshot", .text = info->id },
                { "bytes", .number = info->bytes },
                {},
        };

        v->saved_changes = v->saving_changes;
        v->saved_turns = v->saving_turns;
        v->changed_at = now_monotonic(); /* of what has changed since, at the latest */
        v->bytes = info->bytes;
        (void) snprintf(v->snapshot, sizeof(v->snapshot), "%s", info->id);
        v->failures = 0;
        v->retry_at = 0;
        v->told = false;
        v->notice = mfree(v->notice);
        save_tell_skipped(v, info->parts);
        session_event_full(s, "saved", save_reason_to_string(v->reason), /* by= */ NULL, fields);
        session_keep(s);
        session_save_answer_done(v, info->parts);
}

/* What was to follow. */
static void save_over(Session *s) {
        SessionSave *v = &s->save;

        if (v->job || v->operation)
                return;
        v->operation_why = mfree(v->operation_why);
        v->hold_until = 0;
        if (v->retire) {
                session_end(s, v->retire);
                return;
        }
        session_turns_dispatch(s);
        session_arm_timer(s);
}

static void on_saved(SnapshotJob *job, const SnapshotResult *result, void *userdata) {
        Session *s = userdata;
        SessionSave *v = &s->save;
        SnapshotInfo info;

        v->job = NULL;
        if (result->error)
                /* An incomplete stream is what the agent's failure looks like from there. */
                save_failed(s, result->error,
                            streq(result->error, "incomplete") && v->operation_why ? v->operation_why : result->why);
        else if (snapshot_saved_parse(result->json, &info) < 0)
                save_failed(s, "bad-answer", "The answer of sandbox-snapshot could not be read.");
        else
                save_succeeded(s, &info);
        save_over(s);
}

static void save_set_why(SessionSave *v, const char *error, const char *text) {
        _cleanup_free_ char *quoted = text_quote(text ?: "no reason given", WHY_SHOWN_MAX);

        free(v->operation_why);
        if (asprintf(&v->operation_why, "The session could not give it (%s: %s).", error, quoted ?: "") < 0)
                v->operation_why = NULL;
}

/* The process sees the end of its channel, and ends as well. */
static void on_save_operated(SessionOperation *op, const char *error, const char *text, json_object *report,
                             void *userdata) {
        Session *s = userdata;
        SessionSave *v = &s->save;

        v->operation = NULL;
        /* Nobody used the session. */
        if (v->reason != SAVE_BY_HAND && s->turns == v->saving_turns)
                s->idle_since = v->idle_since;
        if (error && v->job)
                save_set_why(v, error, text);
        save_over(s);
}

/* ---- its beginning ---- */

static int save_operate(Session *s, int fd) {
        _cleanup_json_ json_object *request = json_object_new_object();
        SessionOperation *op;
        int r;

        if (!request || json_put_string(request, "operation", "save") < 0) {
                (void) safe_close(fd);
                return -ENOMEM;
        }
        r = session_operation_new(TAKE_PTR(request), fd, &op);
        if (r < 0)
                return r;
        op->needs_drivers = op->turns_go_on = true;
        op->deadline = now_monotonic() + SAVE_USEC;
        op->on_done = on_save_operated;
        op->userdata = s;
        r = session_operate(s, op);
        if (r >= 0)
                s->save.operation = op;
        return r;
}

/* Where the operation cannot be begun, the process finds its channel closed. */
static void on_save_started(SnapshotJob *job, int fd, void *userdata) {
        Session *s = userdata;
        SessionSave *v = &s->save;
        int r;

        v->saving_changes = v->changes;
        v->saving_turns = s->turns;
        v->idle_since = s->idle_since;
        r = save_operate(s, fd);
        if (r < 0)
                save_set_why(v, "not begun", strerror(-r));
        v->hold_until = 0;
        session_turns_dispatch(s);
}

/* What is kept about the session beside its state. */
static int save_head_new(const Session *s, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object(), *session = json_object_new_object();
        json_object *history;
        size_t size;
        int r;

        if (!o || !session || json_put_string(session, "id", s->id) < 0 ||
            json_put_string(session, "name", s->name) < 0 || json_put_string(session, "project", s->project) < 0 ||
            json_put_string(session, "environment", s->environment->name) < 0 ||
            json_put_uint(session, "created_usec", s->created_realtime) < 0 ||
            json_put_uint(session, "turns", s->turns) < 0 ||
            json_put_object(o, "session", TAKE_PTR(session)) < 0 ||
            json_put_string(o, "reason", save_reason_to_string(s->save.reason)) < 0 ||
            json_put_string(o, "tool", NIX_SANDBOX_VERSION) < 0)
                return -ENOMEM;
        r = history_to_json(&s->history, &history);
        if (r >= 0)
                r = json_put_object(o, "history", history);
        if (r < 0)
                return r;
        /* Escaped, it can be several times as long; then the oldest turns are left out. */
        while (json_text(o, &size) && size > SNAPSHOT_HEAD_MAX)
                if (json_object_array_del_idx(history, 0, (json_object_array_length(history) + 1) / 2) < 0)
                        return -EFBIG;
        *ret = TAKE_PTR(o);
        return 0;
}

static void save_begin(Session *s) {
        _cleanup_json_ json_object *head = NULL;
        char key[SNAPSHOT_KEY_LENGTH + 1];
        SessionSave *v = &s->save;
        int r;

        v->wanted = false;
        snapshot_key(s->project, s->name, key);
        r = save_head_new(s, &head);
        if (r >= 0)
                r = snapshot_job_new(s->manager->snapshots,
                                     &(SnapshotRequest){
                                                     .verb = SNAPSHOT_SAVE,
                                                     .uid = s->user->uid,
                                                     .key = key,
                                                     .head = head,
                                                     .deadline_usec = SAVE_USEC,
                                                     .on_started = on_save_started,
                                                     .on_done = on_saved,
                                                     .userdata = s,
                                     },
                                     &v->job);
        if (r < 0) {
                save_failed(s, "busy", "Too much is being saved, or memory is short.");
                return save_over(s);
        }
        v->hold_until = now_monotonic() + HOLD_USEC;
        session_arm_timer(s);
}

/* By hand goes before what is by itself; the end of the session before all. */
void session_save_want(Session *s, SaveReason reason, uint64_t until) {
        SessionSave *v = &s->save;

        if (!v->wanted || reason == SAVE_BY_HAND || v->retire)
                v->reason = reason;
        if (!v->wanted || until == USEC_INFINITY)
                v->wanted_until = until;
        v->wanted = true;
        session_turns_dispatch(s);
        session_arm_timer(s);
}

void session_save_too_late(Session *s) {
        s->save.wanted = false;
        session_save_answer_failed(s, "io.nixsandbox.Busy",
                                   "A turn is still running. Wait for its end, or interrupt it.");
}

bool session_save_dispatch(Session *s) {
        SessionSave *v = &s->save;

        if (v->wanted && !v->job && !v->operation &&
            (s->state == SESSION_RUNNING || s->state == SESSION_STANDBY) && !s->attaching)
                save_begin(s);
        return session_retire_is_final(v) || v->hold_until > now_monotonic();
}

/* Nothing goes on but what may be left of a save: the agent's word can come after that of the process. */
static bool session_is_quiet(const Session *s) {
        const SessionSave *v = &s->save;
        const SessionOperation *op = s->operations;

        if (s->running || s->queue_first || s->restore || v->wanted || v->job)
                return false;
        return !op || (op == v->operation && !op->next);
}

int session_save_by_hand(Session *s, VarlinkLink *link) {
        _cleanup_json_ json_object *o = NULL;
        SessionSave *v = &s->save;
        VarlinkLink **p;
        int r;

        if (session_is_quiet(s) && !session_save_is_changed(v) && *v->snapshot && !session_save_is_lost(s)) {
                r = session_save_reply_new(v, /* unchanged= */ true, /* parts= */ NULL, &o);
                if (r < 0)
                        return r;
                (void) varlink_reply(link, o);
                return 0;
        }

        p = reallocarray(v->waiters, v->n_waiters + 1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        v->waiters = p;
        v->waiters[v->n_waiters++] = varlink_link_ref(link);
        /* What is being saved may be older than what was asked for. */
        if (!v->job || session_is_busy(s) || v->saving_changes < v->changes)
                session_save_want(s, SAVE_BY_HAND, now_monotonic() + HAND_USEC);
        return 0;
}

void session_save_cancel(Session *s) {
        SessionSave *v = &s->save;

        v->wanted = false;
        if (v->job)
                snapshot_job_cancel(TAKE_PTR(v->job));
        if (v->operation)
                session_operation_cancel(TAKE_PTR(v->operation));
        session_save_answer_failed(s, "io.nixsandbox.SaveFailed", "The session has ended.");
        v->hold_until = 0;
        v->operation_why = mfree(v->operation_why);
        v->notice = mfree(v->notice);
        v->skipped = mfree(v->skipped);
}
