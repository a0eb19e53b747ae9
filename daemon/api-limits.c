/* SPDX-License-Identifier: MIT */

/* Set: the limits of a living session, and what else it may reach. */

#include <math.h>
#include <unistd.h>

#include "daemon/api-private.h"
#include "daemon/session-network.h"
#include "daemon/session-reply.h"

typedef struct SetParameters {
        SessionParameters whose;
        bool exceed;            /* the administrator's maxima */
        uint64_t memory_mb;     /* these: 0 is not asked */
        uint64_t processes;
        uint64_t cpu_weight;
        double cpus;
        double io_read_mbps;    /* these: negative is not asked, 0 is no bound */
        double io_write_mbps;
        json_object *rules;     /* of "allow" */
        NetworkList allow;      /* they; empty is not asked */
} SetParameters;

static void set_parameters_done(SetParameters *p) {
        network_list_done(&p->allow);
}

static const JsonField set_table[] = {
        { "session", JSON_KIND_STRING, offsetof(SetParameters, whose.session), JSON_MANDATORY },
        { "project", JSON_KIND_STRING, offsetof(SetParameters, whose.project) },
        { "any_user", JSON_KIND_BOOL, offsetof(SetParameters, whose.any_user) },
        { "interactive", JSON_KIND_BOOL, offsetof(SetParameters, whose.interactive) },
        { "exceed", JSON_KIND_BOOL, offsetof(SetParameters, exceed) },
        { "memory_mb", JSON_KIND_UINT, offsetof(SetParameters, memory_mb) },
        { "processes", JSON_KIND_UINT, offsetof(SetParameters, processes) },
        { "cpu_weight", JSON_KIND_UINT, offsetof(SetParameters, cpu_weight) },
        { "cpus", JSON_KIND_NUMBER, offsetof(SetParameters, cpus) },
        { "io_read_mbps", JSON_KIND_NUMBER, offsetof(SetParameters, io_read_mbps) },
        { "io_write_mbps", JSON_KIND_NUMBER, offsetof(SetParameters, io_write_mbps) },
        { "allow", JSON_KIND_ARRAY, offsetof(SetParameters, rules) },
        {},
};

static double asked_rate(double parameter) {
        return parameter < 0 ? 0 : parameter == 0 ? INFINITY : parameter;
}

static LimitsRequest asked_limits(const SetParameters *p) {
        return (LimitsRequest) {
                .memory_mb = p->memory_mb,
                .processes = p->processes,
                .cpu_weight = p->cpu_weight,
                .cpus = p->cpus,
                .io_read_mbps = asked_rate(p->io_read_mbps),
                .io_write_mbps = asked_rate(p->io_write_mbps),
        };
}

/* The controllers that a request needs. */
static unsigned asked_features(const LimitsRequest *ask) {
        return (ask->memory_mb > 0 ? CGROUP_MEMORY : 0) | (ask->processes > 0 ? CGROUP_PIDS : 0) |
               (ask->cpus != 0 || ask->cpu_weight > 0 ? CGROUP_CPU : 0) |
               (ask->io_read_mbps != 0 || ask->io_write_mbps != 0 ? CGROUP_IO : 0);
}

static int refuse_features(VarlinkLink *link, unsigned missing) {
        return api_error(link, API_ERROR("NotSupported"), NULL, NULL,
                         "This sandboxd has no %s controller for its sessions, so that limit cannot be changed; "
                         "'sandboxctl doctor' says why.",
                         missing & CGROUP_MEMORY  ? "memory"
                         : missing & CGROUP_PIDS  ? "pids"
                         : missing & CGROUP_CPU   ? "cpu"
                                                  : "io (cgroup v2)");
}

/* The kernel would kill to get below the new limit. 1: refused, and answered. */
static int check_memory(VarlinkLink *link, Session *s, const Limits *limits) {
        const Manager *m = s->manager;
        CgroupUsage usage = {};
        int r;

        if (limits->memory_mb > s->limits.memory_mb &&
            s->user->memory_mb - s->limits.memory_mb + limits->memory_mb > m->config->user.memory_mb_max)
                r = api_error(link, API_ERROR("LimitExceeded"), "limit", "memory",
                              "The memory limits of all sessions of this user together would pass "
                              "user.max_memory_mb. End one with 'sandboxctl kill', or ask for less.");
        else if (limits->memory_mb < s->limits.memory_mb && cgroup_read_usage(s->cgroup, &usage) >= 0 &&
                 usage.memory_bytes >= limits->memory_mb * MIB)
                r = api_error(link, API_ERROR("LimitExceeded"), "limit", "memory",
                              "Session '%s' uses %" PRIu64 " MB of memory now, files in /workspace included: set more "
                              "than that, or free some first.",
                              s->name ?: s->id, (usage.memory_bytes + MIB - 1) / MIB);
        else
                return 0;
        return r < 0 ? r : 1;
}

static int reply_set(VarlinkLink *link, Session *s, const char *notice) {
        _cleanup_(buffer_done) Buffer reply = {};
        JsonWriter w = JSON_WRITER(&reply);

        json_write_object(&w, NULL);
        session_reply_write(s, /* details= */ true, &w, "session");
        json_write_string(&w, "notice", notice);
        json_write_object_end(&w);
        if (w.error < 0)
                return w.error;
        (void) varlink_reply_text(link, buffer_data(&reply), buffer_size(&reply));
        return 0;
}

/* What the machine has, where that is more than the administrator's maximum. */
static void raise_to_machine(Limits *max) {
        long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE), cpus = sysconf(_SC_NPROCESSORS_ONLN);

        if (pages > 0 && page_size > 0)
                max->memory_mb = MAX(max->memory_mb, (uint64_t) pages * (uint64_t) page_size / MIB);
        max->cpus = fmax(max->cpus, (double) cpus);
        max->processes = LIMITS_PROCESSES_CEILING;
        max->cpu_weight = LIMITS_WEIGHT_CEILING;
        max->io_read_mbps = max->io_write_mbps = INFINITY;
}

/* What a session was granted once is not taken away because another of its limits is set. */
static void raise_to_granted(Limits *max, const Limits *now) {
        max->memory_mb = MAX(max->memory_mb, now->memory_mb);
        max->cpus = fmax(max->cpus, now->cpus);
        max->processes = MAX(max->processes, now->processes);
        max->cpu_weight = MAX(max->cpu_weight, now->cpu_weight);
        max->io_read_mbps = fmax(max->io_read_mbps, now->io_read_mbps);
        max->io_write_mbps = fmax(max->io_write_mbps, now->io_write_mbps);
}

/* 0: done; 1: refused, and answered. */
static int set_limits(VarlinkLink *link, Session *s, const LimitsRequest *ask, bool exceed, char **ret_notice) {
        Limits limits, max = s->manager->config->max;
        int r;

        raise_to_granted(&max, &s->limits);
        if (exceed)
                raise_to_machine(&max);
        r = limits_apply(&s->limits, &max, ask, &limits, ret_notice);
        if (r >= 0)
                r = check_memory(link, s, &limits);
        if (r != 0)
                return r;

        r = session_set_limits(s, &limits, varlink_link_peer(link)->uid);
        if (r == -ENODEV) {
                r = api_error(link, API_ERROR("NotSupported"), NULL, NULL,
                              "No block device of this machine takes a bound on its use (io.max).");
                return r < 0 ? r : 1;
        }
        return r;
}

/* Whether rules can be added to what a session may reach: all of them, or none. 1: refused, and answered. */
static int check_allow(VarlinkLink *link, const Session *s, const NetworkList *rules) {
        int r;

        if (!s->network)
                r = api_error(link, API_ERROR("NotSupported"), NULL, NULL,
                              "Session '%s' has no network: its environment '%s' has no allow list (\"network\" in "
                              "the configuration, which may be empty).",
                              s->name ?: s->id, s->environment->name);
        else if (rules->n_rules > NETWORK_RULES_MAX - s->network->policy.granted.n_rules)
                r = api_error(link, API_ERROR("LimitExceeded"), "limit", "network",
                              "At most %u rules can be added to what a session may reach; this one has %zu of them.",
                              NETWORK_RULES_MAX, s->network->policy.granted.n_rules);
        else
                return 0;
        return r < 0 ? r : 1;
}

static int check_set(VarlinkLink *link, const Session *s, const SetParameters *p, unsigned features) {
        const CgroupTree *t = s->manager->cgroups;
        int r;

        if (features == 0 && p->allow.n_rules == 0)
                r = varlink_error_invalid(link, p->rules ? "allow" : "memory_mb",
                                          "Set needs at least one of memory_mb, cpus, cpu_weight, processes, "
                                          "io_read_mbps, io_write_mbps, or a rule to allow.");
        else if (features != 0 && (!s->cgroup || !cgroup_tree_has(t, features)))
                r = refuse_features(link, s->cgroup ? features & ~cgroup_tree_features(t) : features);
        else
                return p->allow.n_rules > 0 ? check_allow(link, s, &p->allow) : 0;
        return r < 0 ? r : 1;
}

static int authorize_set(VarlinkLink *link, Manager *m, const SetParameters *p) {
        int r = 0;

        if (p->exceed)
                r = api_authorize(link, m, POLICY_EXCEED_LIMITS, "go beyond the configured limits",
                                  p->whose.interactive);
        if (r == 0 && p->allow.n_rules > 0)
                r = api_authorize(link, m, POLICY_ALLOW_NETWORK, "let a session reach more of the network",
                                  p->whose.interactive);
        return r;
}

int vl_method_set(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        _cleanup_(set_parameters_done) SetParameters p = { .io_read_mbps = -1, .io_write_mbps = -1 };
        _cleanup_free_ char *notice = NULL;
        Manager *m = userdata;
        LimitsRequest ask;
        Session *s;
        int r;

        r = api_dispatch(link, parameters, set_table, &p);
        if (r == 0)
                r = api_network_list(link, "allow", p.rules, &p.allow);
        if (r == 0)
                r = api_find_session(link, m, &p.whose, SESSION_VERB_SET, &s);
        if (r != 0)
                return MIN(r, 0);

        ask = asked_limits(&p);
        r = check_set(link, s, &p, asked_features(&ask));
        if (r == 0)
                r = authorize_set(link, m, &p);
        /* Limits are what the kernel may refuse; so they come first. */
        if (r == 0 && asked_features(&ask) != 0)
                r = set_limits(link, s, &ask, p.exceed, &notice);
        if (r == 0 && p.allow.n_rules > 0)
                r = session_network_allow(s, &p.allow, varlink_link_peer(link)->uid);
        if (r == 0)
                r = reply_set(link, s, notice);
        return MIN(r, 0);
}
