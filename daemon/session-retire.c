/* SPDX-License-Identifier: MIT */

/* What time does to saves: the interval, and the state that is kept before a session sleeps or ends. */

#include "daemon/manager.h"
#include "daemon/session-private.h"
#include "lib/log.h"

/* Whether it would be saved by itself at all. One that is frozen by hand would have to run for it. */
static bool session_is_saved(const Session *s) {
        return s->name && s->manager->config->snapshots.enabled && !s->restore && !s->attaching &&
               (s->state == SESSION_RUNNING || s->state == SESSION_STANDBY);
}

static bool session_needs_save(const Session *s) {
        return session_is_saved(s) && !s->save.gave_up &&
               (session_save_is_changed(&s->save) || s->running || session_save_is_lost(s));
}

bool session_save_before_standby(Session *s) {
        if (session_save_is_busy(&s->save))
                return true;
        if (!session_needs_save(s))
                return false;
        session_save_want(s, SAVE_STANDBY, USEC_INFINITY);
        return session_save_is_busy(&s->save);
}

/* Those who wait for turns are told now; what runs is stopped, so that its interpreter can be saved. */
static void session_stop_turns(Session *s, const char *reason) {
        session_fail_turns_ended(s, reason, /* keep_running= */ true);
        (void) session_interrupt(s);
}

void session_retire(Session *s, const char *reason, SaveReason why, uint64_t patience_usec) {
        SessionSave *v = &s->save;
        bool final;

        if (!session_is_live(s))
                return;
        if (!v->retire && !session_needs_save(s))
                return session_end(s, reason);

        final = !streq(reason, SESSION_END_IDLE);
        if (v->retire && (session_retire_is_final(v) || !final))
                return;
        v->retire = reason;
        v->retire_at = now_monotonic() + patience_usec;
        if (final)
                session_stop_turns(s, reason);
        if (!v->job || v->saving_changes < v->changes || s->running)
                session_save_want(s, why, USEC_INFINITY);
        session_arm_timer(s);
}

void session_unretire_idle(Session *s) {
        if (!session_retire_is_final(&s->save))
                s->save.retire = NULL;
}

/* ---- time ---- */

static uint64_t periodic_at(const Session *s) {
        const SessionSave *v = &s->save;
        uint64_t interval = s->manager->config->snapshots.interval_usec;

        if (!session_is_saved(s) || s->state != SESSION_RUNNING || !session_save_is_changed(v) ||
            session_save_is_busy(v))
                return USEC_INFINITY;
        return MAX(usec_add(v->changed_at, interval), v->retry_at);
}

uint64_t session_save_next_deadline(const Session *s) {
        const SessionSave *v = &s->save;
        uint64_t next = periodic_at(s);

        if (v->retire)
                next = MIN(next, v->retire_at);
        if (v->wanted)
                next = MIN(next, v->wanted_until);
        if (v->hold_until > 0)
                next = MIN(next, v->hold_until);
        return next;
}

void session_save_on_time(Session *s, uint64_t now) {
        SessionSave *v = &s->save;

        if (v->retire && v->retire_at <= now) {
                log_warning("Session %s of uid %u ends (%s) before its state is saved.", s->id,
                            (unsigned) s->user->uid, v->retire);
                session_end(s, v->retire);
                return;
        }
        if (v->wanted && v->wanted_until <= now)
                session_save_too_late(s);
        if (v->hold_until > 0 && v->hold_until <= now) {
                v->hold_until = 0;
                session_turns_dispatch(s);
        }
        if (periodic_at(s) <= now)
                session_save_want(s, SAVE_PERIODIC, USEC_INFINITY);
}

/* ---- ended by hand ---- */

static void on_closed(SnapshotJob *job, const SnapshotResult *result, void *userdata) {
        Manager *m = userdata;

        if (result->error && !streq(result->error, "none"))
                log_warning("A session that was ended by hand may be restored when its name is used: %s", result->why);
        m->n_closing--;
        manager_queue_gc(m);
}

void session_close_snapshots(Manager *m, uid_t uid, const char *project, const char *name) {
        char key[SNAPSHOT_KEY_LENGTH + 1];
        bool closed;
        int r;

        snapshot_key(project, name, key);
        if (!snapshot_exists(m->snapshots, uid, key, &closed) || closed)
                return;
        r = snapshot_job_new(m->snapshots,
                             &(SnapshotRequest){
                                             .verb = SNAPSHOT_CLOSE,
                                             .uid = uid,
                                             .key = key,
                                             .deadline_usec = 20 * USEC_PER_SEC,
                                             .on_done = on_closed,
                                             .userdata = m,
                             },
                             /* ret= */ NULL);
        if (r < 0)
                (void) log_warning_errno(r, "The snapshots of session '%s' could not be closed: %m", name);
        else
                m->n_closing++;
}
