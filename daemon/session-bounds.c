/* SPDX-License-Identifier: MIT */

/*
 * What time does to a session: standby after a while, the ends of its life, retries, and the removal of what
 * a killed one leaves. All of it hangs on one timer, which is only ever moved to an earlier time; when it
 * fires it looks at every deadline and is armed for the next. So a turn costs no timer system calls.
 */

#include "daemon/session-private.h"

#include "daemon/manager.h"
#include "daemon/session-network.h"
#include "lib/log.h"

/* How long the cgroup of a killed session is waited for, and how often it is looked at. */
#define SESSION_REMOVE_FIRST_USEC (1 * USEC_PER_MSEC)
#define SESSION_REMOVE_PAUSE_MAX_USEC (100 * USEC_PER_MSEC)
#define SESSION_REMOVE_USEC (10 * USEC_PER_SEC)

/* One that has to be saved first ends after this long in any case. */
#define SESSION_REAP_USEC (60 * USEC_PER_SEC)

/* A sandbox without a name whose caller was answered early stays this long for Wait. */
#define SESSION_PARKED_USEC (10 * 60 * USEC_PER_SEC)

/* The jail's monitor is gone: wait until the kernel has let go of the rest, then the session is over. */
static void session_remove_on_time(Session *s, uint64_t now) {
        CgroupDetails details;
        uint64_t waited = now - s->ended;
        int r;

        if (s->pid > 0 || s->retry_at == 0 || s->retry_at > now) {
                if (s->pid > 0 && waited > SESSION_REMOVE_USEC) {
                        log_error("Session %s: its jail (pid %d) does not end after SIGKILL; left alone.",
                                  s->id, (int) s->pid);
                        session_drop_jail(s);
                        s->retry_at = now;
                }
                return;
        }

        /* The last moment: with the group the kernel forgets what was used in it. */
        if (s->cgroup && cgroup_read_usage(s->cgroup, &s->usage) < 0)
                s->usage = (CgroupUsage){};
        if (s->cgroup) {
                (void) cgroup_read_details(s->cgroup, &details);
                s->memory_peak_bytes = details.memory_peak_bytes;
        }
        r = s->cgroup ? cgroup_remove(s->cgroup) : 0;
        /* Most reasons pass: a process that is not gone yet, or that there was no descriptor to look at it. */
        if (r < 0 && waited < SESSION_REMOVE_USEC) {
                (void) cgroup_kill(s->cgroup);
                s->retry_at = now +
                              MIN(MAX(waited, SESSION_REMOVE_FIRST_USEC), SESSION_REMOVE_PAUSE_MAX_USEC);
                return;
        }
        if (r < 0)
                (void) log_error_errno(r, "Session %s: failed to remove its cgroup %s: %m", s->id,
                                       cgroup_path(s->cgroup));

        s->retry_at = 0;
        session_network_receive(s);
        session_event_usage(s);
        session_set_state(s, SESSION_DEAD, /* detail= */ NULL, /* by= */ NULL);
        manager_queue_gc(s->manager);
}

/* ---- bounds ---- */

void session_arm_bounds(Session *s) {
        s->bounds = s->manager->config->session.bounds;
        if (!s->name)
                s->bounds.idle_usec = SESSION_PARKED_USEC;
}

BoundsUse session_bounds_use(const Session *s) {
        return (BoundsUse){
                .created = s->created,
                .idle_since = s->idle_since,
                .busy = session_is_busy(s),
                .turn_usec = s->turn_usec,
        };
}

void session_reap(Session *s, Bound b) {
        static const SaveReason reasons[_BOUND_MAX] = {
                [BOUND_IDLE] = SAVE_IDLE,
                [BOUND_LIFETIME] = SAVE_LIFETIME,
                [BOUND_TURN_BUDGET] = SAVE_TURN_BUDGET,
        };

        session_retire(s, bound_to_string(b), reasons[b], SESSION_REAP_USEC);
}

static uint64_t session_next_deadline(const Session *s) {
        const BoundsUse use = session_bounds_use(s);
        uint64_t next = USEC_INFINITY;

        if (s->state == SESSION_DEAD)
                return USEC_INFINITY;
        if (s->retry_at > 0)
                next = MIN(next, s->retry_at);
        if (s->state == SESSION_STOPPING)
                return MIN(next, s->ended + SESSION_REMOVE_USEC + USEC_PER_SEC);

        if (s->state == SESSION_STARTING || s->attaching)
                next = MIN(next, s->start_deadline);
        next = MIN(next, session_turns_next_deadline(s));
        next = MIN(next, session_operations_next_deadline(s));
        next = MIN(next, session_save_next_deadline(s));
        next = MIN(next, session_restore_next_deadline(s));
        if (s->keep_at > 0)
                next = MIN(next, s->keep_at);
        if (s->save.retire)
                return next; /* no bound is looked at any more */
        next = MIN(next, bounds_next(&s->bounds, &use));
        return MIN(next, session_standby_next_deadline(s));
}

static void session_bounds_on_time(Session *s, uint64_t now) {
        const BoundsUse use = session_bounds_use(s);
        Bound hit = bounds_hit(&s->bounds, &use, now);

        if (s->save.retire)
                return;
        if (hit >= 0)
                session_reap(s, hit);
        else
                session_standby_on_time(s, now);
}

int session_on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Session *s = userdata;
        uint64_t now = now_monotonic();

        s->timer_at = USEC_INFINITY;
        if (s->state == SESSION_STARTING)
                session_start_on_time(s, now);
        if (session_is_live(s))
                session_keep_on_time(s, now);
        if (session_is_live(s))
                session_attach_on_time(s, now);
        if (session_is_live(s))
                session_turns_on_time(s, now);
        if (session_is_live(s))
                session_operations_on_time(s, now);
        if (session_is_live(s))
                session_restore_on_time(s, now);
        if (session_is_live(s))
                session_save_on_time(s, now);
        if (session_is_live(s))
                session_bounds_on_time(s, now);
        if (s->state == SESSION_STOPPING)
                session_remove_on_time(s, now);

        session_arm_timer(s);
        return 0;
}

void session_arm_timer(Session *s) {
        uint64_t next = session_next_deadline(s);
        int r;

        if (next >= s->timer_at)
                return;

        r = sd_event_source_set_time(s->timer, next);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
        if (r < 0) {
                (void) log_error_errno(r, "Session %s: failed to arm its timer: %m", s->id);
                return;
        }
        s->timer_at = next;
}
