/* SPDX-License-Identifier: MIT */

/*
 * Which limits a turn ran into, from the kernel's counters of the session's group before and after it. The CPU's is
 * only looked at for turns that are long enough to be held back, so that short ones pay nothing. The agent tells of
 * a full disk.
 */

#include "daemon/session-private.h"

#include "daemon/manager.h"
#include "daemon/turn-reply.h"
#include "lib/log.h"

/* The kernel hands out CPU time in periods of 100 ms. */
#define THROTTLING_TURN_MIN_USEC (100 * USEC_PER_MSEC)
/* Background jobs may have been held back during a longer pause, which is no matter of the next turn. */
#define THROTTLING_PAUSE_USEC USEC_PER_SEC
/* A turn that was held back for less than one part of its time in so many is not told. */
#define THROTTLING_PARTS 4U

void session_read_throttled(Session *s) {
        if (cgroup_read_throttled(s->cgroup, &s->throttled_usec) < 0)
                s->throttled_usec = 0;
}

void session_hits_before_turn(Session *s, uint64_t now) {
        if (s->cgroup && now - s->idle_since >= THROTTLING_PAUSE_USEC)
                session_read_throttled(s);
}

static bool session_was_throttled(Session *s, const Turn *t) {
        uint64_t before = s->throttled_usec;

        if (t->duration_usec < THROTTLING_TURN_MIN_USEC)
                return false;
        session_read_throttled(s);
        return s->throttled_usec > before && s->throttled_usec - before >= t->duration_usec / THROTTLING_PARTS;
}

static void session_hit(Session *s, Turn *t, TurnHit hit) {
        if (turn_describe_hit(t, &s->limits, s->workspace_mb, hit) < 0)
                log_oom();
        session_event(s, "limit_hit", turn_hit_to_string(hit));
}

void session_hits_after_turn(Session *s, Turn *t) {
        CgroupCounters before = s->counters;

        if (t->full)
                session_hit(s, t, TURN_HIT_DISK);
        if (!s->cgroup || cgroup_read_counters(s->cgroup, &s->counters) < 0)
                return;

        if (s->counters.oom_kills > before.oom_kills)
                session_hit(s, t, s->counters.oom_hits > before.oom_hits ? TURN_HIT_MEMORY : TURN_HIT_USER_MEMORY);
        if (s->counters.process_hits > before.process_hits)
                session_hit(s, t, TURN_HIT_PROCESSES);
        if (session_was_throttled(s, t))
                session_hit(s, t, TURN_HIT_CPU);
}

/* The kernel takes the largest first, but where memory is all taken by files it may come to the agent. */
bool session_hits_memory(Session *s) {
        CgroupCounters now;

        if (!s->cgroup || cgroup_read_counters(s->cgroup, &now) < 0 || now.oom_kills <= s->counters.oom_kills)
                return false;
        session_event(s, "limit_hit", turn_hit_to_string(TURN_HIT_MEMORY));
        s->counters = now;
        return true;
}
