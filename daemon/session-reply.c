/* SPDX-License-Identifier: MIT */

/*
 * What a session looks like to List and Show. Written as text at once, and with what the kernel says through
 * descriptors that are open: all sessions of a machine are listed in one go, and turns wait meanwhile.
 */

#include "daemon/session-reply.h"

#include <math.h>

#include "daemon/manager.h"
#include "daemon/session-network.h"

/*
 * What is frozen uses no CPU and starts nothing, and its memory changes only as the kernel reclaims it: so long
 * the last reading is good enough. Reading costs more than all the rest of a listed session.
 */
#define FROZEN_USAGE_USEC (5 * USEC_PER_SEC)

static bool usage_is_fresh(const Session *s, uint64_t now) {
        return (s->state == SESSION_STANDBY || s->state == SESSION_FROZEN) && s->usage_at > 0 &&
               now - s->usage_at < FROZEN_USAGE_USEC;
}

static bool session_read_usage(Session *s, uint64_t now) {
        if (!s->cgroup)
                return false;
        if (usage_is_fresh(s, now))
                return true;
        if (cgroup_read_usage(s->cgroup, &s->usage) < 0)
                return false;

        s->usage_at = now;
        return true;
}

/* Unknown is null, not 0. */
static void write_known(JsonWriter *w, const char *key, bool known, uint64_t value) {
        if (known)
                json_write_uint(w, key, value);
        else
                json_write_null(w, key);
}

/* What costs more to read, and nobody watches all the time. */
static void write_details(JsonWriter *w, Session *s, bool wanted) {
        CgroupDetails d = {};
        unsigned known = wanted && s->cgroup ? cgroup_read_details(s->cgroup, &d) : 0;

        write_known(w, "throttled_usec", known & CGROUP_CPU, d.throttled_usec);
        write_known(w, "memory_peak_bytes", known & CGROUP_MEMORY, d.memory_peak_bytes);
        write_known(w, "io_read_bytes", known & CGROUP_IO, d.io_read_bytes);
        write_known(w, "io_write_bytes", known & CGROUP_IO, d.io_write_bytes);
}

static void write_usage(JsonWriter *w, Session *s, uint64_t now) {
        const CgroupTree *t = s->manager->cgroups;
        bool known = session_read_usage(s, now);

        write_known(w, "cpu_usec", known, s->usage.cpu_usec);
        write_known(w, "memory_bytes", known && cgroup_tree_has(t, CGROUP_MEMORY), s->usage.memory_bytes);
        write_known(w, "processes", known && cgroup_tree_has(t, CGROUP_PIDS), s->usage.processes);
        write_known(w, "oom_kills", known && cgroup_tree_has(t, CGROUP_MEMORY), s->counters.oom_kills);
        write_known(w, "process_hits", known && cgroup_tree_has(t, CGROUP_PIDS), s->counters.process_hits);
}

static void write_frozen(JsonWriter *w, const Session *s) {
        bool by_hand = s->state == SESSION_FROZEN;

        write_known(w, "frozen_by", by_hand, s->frozen_by);
        write_known(w, "frozen_usec", by_hand, s->frozen_realtime);
}

static void write_left(JsonWriter *w, const char *key, const Session *s, Bound which, uint64_t now) {
        const BoundsUse use = session_bounds_use(s);
        uint64_t left = bounds_left(&s->bounds, &use, which, now);

        write_known(w, key, left != USEC_INFINITY, left);
}

/* No bound is 0. */
static void write_rate(JsonWriter *w, const char *key, double mbps) {
        json_write_number(w, key, isinf(mbps) ? 0 : mbps);
}

static void write_limits(JsonWriter *w, const Session *s) {
        const Limits *l = &s->limits;

        json_write_uint(w, "memory_mb", l->memory_mb);
        json_write_number(w, "cpus", l->cpus);
        json_write_uint(w, "cpu_weight", l->cpu_weight);
        json_write_uint(w, "processes_max", l->processes);
        write_rate(w, "io_read_mbps", l->io_read_mbps);
        write_rate(w, "io_write_mbps", l->io_write_mbps);
        json_write_uint(w, "workspace_mb", s->workspace_mb);
        json_write_number(w, "timeout_seconds", (double) l->timeout_usec / USEC_PER_SEC);
}

/* What is not known, or not there, is null. */
static void write_rules(JsonWriter *w, const char *key, const NetworkList *l) {
        char text[NETWORK_RULE_SIZE];

        if (!l) {
                json_write_null(w, key);
                return;
        }
        json_write_array(w, key);
        for (size_t i = 0; i < l->n_rules; i++)
                json_write_string(w, NULL, network_rule_format(l->rules + i, text));
        json_write_array_end(w);
}

static void write_network_usage(JsonWriter *w, const NetworkUsage *u) {
        json_write_uint(w, "connections_open", u->connections_open);
        json_write_uint(w, "connections", u->connections);
        json_write_uint(w, "refused", u->refused);
        json_write_uint(w, "failed", u->failed);
        json_write_uint(w, "bytes_in", u->bytes_in);
        json_write_uint(w, "bytes_out", u->bytes_out);
}

/* As in the configuration: no bound is 0. */
static void write_network_limits(JsonWriter *w, const NetworkLimits *l) {
        json_write_uint(w, "connections_max", l->connections);
        json_write_number(w, "rate_mbps", l->bytes_per_second == UINT64_MAX ? 0 : (double) l->bytes_per_second / MIB);
        json_write_number(w, "transfer_mb", l->bytes == UINT64_MAX ? 0 : (double) l->bytes / MIB);
        json_write_number(w, "idle_seconds", (double) l->idle_usec / USEC_PER_SEC);
        json_write_number(w, "total_seconds", (double) l->total_usec / USEC_PER_SEC);
}

/* The lists may be long: they are for who looks at one session. */
static void write_network(JsonWriter *w, const SessionNetwork *n, bool lists) {
        if (!n) {
                json_write_null(w, "network");
                return;
        }

        json_write_object(w, "network");
        write_rules(w, "allow", lists ? &n->policy.environment : NULL);
        write_rules(w, "narrowed", lists && n->policy.narrowed ? &n->policy.caller : NULL);
        write_rules(w, "granted", lists ? &n->policy.granted : NULL);
        write_network_usage(w, &n->usage);
        write_network_limits(w, &n->limits);
        json_write_object_end(w);
}

static void write_environment(JsonWriter *w, const Environment *e) {
        json_write_string(w, "environment", e->name);
        json_write_array(w, "interpreters");
        for (size_t i = 0; i < e->n_interpreters; i++)
                json_write_string(w, NULL, interpreter_to_string(e->interpreters[i]));
        json_write_array_end(w);
}

void session_reply_write(Session *s, bool details, JsonWriter *w, const char *key) {
        bool busy = session_is_busy(s);
        uint64_t now = now_monotonic();

        json_write_object(w, key);
        json_write_string(w, "id", s->id);
        json_write_string(w, "name", s->name);
        json_write_uint(w, "uid", s->user->uid);
        json_write_string(w, "project", s->project);
        json_write_string(w, "project_mode", project_mode_to_string(s->project_mode));
        write_environment(w, s->environment);
        json_write_string(w, "state", session_state_to_string(s->state));
        json_write_bool(w, "busy", busy);
        json_write_uint(w, "queued", s->n_queued);
        json_write_uint(w, "turns", s->turns);
        json_write_uint(w, "created_usec", s->created_realtime);
        json_write_uint(w, "idle_usec", busy ? 0 : now - s->idle_since);
        json_write_uint(w, "turn_usec", s->turn_usec);
        json_write_array(w, "checkpoints");
        for (size_t i = 0; i < s->n_checkpoints; i++)
                json_write_uint(w, NULL, s->checkpoints[i]);
        json_write_array_end(w);
        write_left(w, "idle_left_usec", s, BOUND_IDLE, now);
        write_left(w, "lifetime_left_usec", s, BOUND_LIFETIME, now);
        write_left(w, "turn_left_usec", s, BOUND_TURN_BUDGET, now);
        write_usage(w, s, now);
        write_details(w, s, details);
        write_frozen(w, s);
        json_write_string(w, "cgroup", s->cgroup ? cgroup_path(s->cgroup) : NULL);
        write_limits(w, s);
        write_network(w, s->network, details);
        json_write_object_end(w);
}
