/* SPDX-License-Identifier: MIT */

/*
 * The freezer: standby after a while of idleness, freezing and thawing by hand. Freezing is one write that
 * nobody waits for. Whether the kernel did it is looked at later, when the session's timer fires; if not, it is
 * undone and said, and the session stays awake until it has been idle for as long again. Of a session that
 * stays frozen, memory can be taken back; bit by bit, because the kernel works while the daemon waits.
 */

#include "daemon/session-private.h"

#include "daemon/manager.h"
#include "lib/log.h"

/* A process in an uninterruptible sleep freezes when that ends. */
#define FREEZE_CHECK_USEC (2 * USEC_PER_SEC)

#define RECLAIM_STEP_BYTES (2 * MIB)
#define RECLAIM_PAUSE_USEC (20 * USEC_PER_MSEC)

static bool is_frozen(const Session *s) {
        return s->state == SESSION_STANDBY || s->state == SESSION_FROZEN;
}

/* Arms what follows a freeze. */
static void session_frozen(Session *s) {
        const Manager *m = s->manager;
        uint64_t delay = m->config->session.reclaim_usec, now = now_monotonic();

        s->freeze_check_at = now + FREEZE_CHECK_USEC;
        s->reclaim_at = delay != USEC_INFINITY && cgroup_tree_has(m->cgroups, CGROUP_MEMORY) ? now + delay : 0;
}

int session_freeze(Session *s, const uid_t *by) {
        int r;

        if (s->state == SESSION_FROZEN)
                return 0;
        if (session_is_busy(s) || s->attaching || session_save_is_busy(&s->save))
                return -EBUSY;
        if (!s->cgroup)
                return -EOPNOTSUPP;

        r = cgroup_freeze(s->cgroup, true);
        if (r < 0)
                return r;
        s->frozen_by = *by;
        s->frozen_realtime = now_realtime();
        session_set_state(s, SESSION_FROZEN, "by hand", by);
        session_keep(s);
        session_frozen(s);
        session_arm_timer(s);
        return 0;
}

int session_thaw(Session *s, const uid_t *by) {
        bool by_hand = s->state == SESSION_FROZEN;
        int r;

        if (s->state == SESSION_RUNNING)
                return 0;

        r = cgroup_freeze(s->cgroup, false);
        if (r < 0)
                return r;
        session_set_state(s, SESSION_RUNNING, by ? "by hand" : "turn", by);
        s->idle_since = now_monotonic(); /* whoever thaws it wants it awake for a while */
        s->freeze_check_at = s->reclaim_at = 0;
        session_attach_on_thaw(s);
        if (by_hand)
                session_keep(s);
        session_arm_timer(s);
        return 0;
}

/* Undoes a freeze that the kernel refused or did not carry out. */
static void session_freeze_failed(Session *s, int error) {
        (void) log_warning_errno(error, "Session %s: failed to freeze it, it stays awake: %m", s->id);
        (void) cgroup_freeze(s->cgroup, false);
        if (is_frozen(s)) {
                session_set_state(s, SESSION_RUNNING, "freeze failed", /* by= */ NULL);
                session_keep(s);
        }
        s->idle_since = now_monotonic();
        s->freeze_check_at = s->reclaim_at = 0;
}

static void session_standby(Session *s) {
        int r;

        r = cgroup_freeze(s->cgroup, true);
        if (r < 0)
                return session_freeze_failed(s, r);

        session_set_state(s, SESSION_STANDBY, "standby", /* by= */ NULL);
        session_frozen(s);
}

/* Whether something that a turn started lives on. Only asked when the session is about to be frozen. */
static bool session_has_background_jobs(Session *s) {
        /* And monitor, agent; the relay to the network. */
        size_t own = 2 + (size_t) __builtin_popcount(s->interpreters) + s->n_checkpoints + (s->network ? 1 : 0);
        size_t processes;

        if (!s->manager->config->session.jobs_keep_awake)
                return false;
        return cgroup_count_processes(s->cgroup, &processes) >= 0 && processes > own;
}

static bool session_can_standby(const Session *s) {
        return s->state == SESSION_RUNNING && s->cgroup && !session_is_busy(s) && !s->attaching &&
               cgroup_tree_has(s->manager->cgroups, CGROUP_FREEZE);
}

static uint64_t standby_at(const Session *s) {
        uint64_t delay = s->manager->config->session.standby_usec;

        if (!session_can_standby(s) || session_save_is_busy(&s->save) || delay == USEC_INFINITY)
                return USEC_INFINITY;
        return s->idle_since + delay;
}

uint64_t session_standby_next_deadline(const Session *s) {
        uint64_t next = standby_at(s);

        if (s->freeze_check_at > 0)
                next = MIN(next, s->freeze_check_at);
        if (s->reclaim_at > 0)
                next = MIN(next, s->reclaim_at);
        return next;
}

static void session_check_freeze(Session *s) {
        int r = cgroup_is_frozen(s->cgroup);

        s->freeze_check_at = 0;
        if (r <= 0)
                session_freeze_failed(s, r < 0 ? r : -ETIMEDOUT);
}

/* One step; the next one later, until the kernel finds nothing more. */
static void session_reclaim(Session *s, uint64_t now) {
        int r = cgroup_reclaim(s->cgroup, RECLAIM_STEP_BYTES);

        s->reclaim_at = r < 0 ? 0 : now + RECLAIM_PAUSE_USEC;
        s->usage_at = 0;
}

void session_standby_on_time(Session *s, uint64_t now) {
        if (s->freeze_check_at > 0 && s->freeze_check_at <= now)
                session_check_freeze(s);
        if (s->reclaim_at > 0 && s->reclaim_at <= now)
                session_reclaim(s, now);
        if (standby_at(s) > now)
                return;

        if (session_has_background_jobs(s))
                s->idle_since = now;
        else if (!session_save_before_standby(s))
                session_standby(s);
}
