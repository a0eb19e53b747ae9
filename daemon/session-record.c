/* SPDX-License-Identifier: MIT */

/* Sessions as JSON and back. Unknown members are ignored: a newer daemon may have written them. */

#include "daemon/session-record.h"

#include <math.h>

#include "daemon/snapshot-result.h"
#include "lib/text.h"

static const JsonField limits_table[] = {
        { "cpus", JSON_KIND_NUMBER, offsetof(Limits, cpus), JSON_MANDATORY },
        { "memory_mb", JSON_KIND_UINT, offsetof(Limits, memory_mb), JSON_MANDATORY },
        { "disk_mb", JSON_KIND_UINT, offsetof(Limits, disk_mb), JSON_MANDATORY },
        { "processes", JSON_KIND_UINT, offsetof(Limits, processes), JSON_MANDATORY },
        { "timeout_usec", JSON_KIND_UINT, offsetof(Limits, timeout_usec), JSON_MANDATORY },
        { "cpu_weight", JSON_KIND_UINT, offsetof(Limits, cpu_weight) },
        { "io_weight", JSON_KIND_UINT, offsetof(Limits, io_weight) },
        /* Left out where there is no bound. */
        { "io_read_mbps", JSON_KIND_NUMBER, offsetof(Limits, io_read_mbps) },
        { "io_write_mbps", JSON_KIND_NUMBER, offsetof(Limits, io_write_mbps) },
        {},
};

/* Left out where there is no bound. */
static const JsonField bounds_table[] = {
        { "idle_usec", JSON_KIND_UINT, offsetof(Bounds, idle_usec) },
        { "lifetime_usec", JSON_KIND_UINT, offsetof(Bounds, lifetime_usec) },
        { "turn_budget_usec", JSON_KIND_UINT, offsetof(Bounds, turn_budget_usec) },
        {},
};

static const JsonField turn_table[] = {
        { "number", JSON_KIND_UINT, offsetof(SessionRecordTurn, number), JSON_MANDATORY },
        { "code", JSON_KIND_BYTES, offsetof(SessionRecordTurn, code), JSON_MANDATORY },
        { "notice", JSON_KIND_BYTES, offsetof(SessionRecordTurn, notice), JSON_MANDATORY },
        {},
};

bool session_id_is_valid(const char *id) {
        return strlen(id) == SESSION_ID_LENGTH && strspn(id, "0123456789abcdef") == SESSION_ID_LENGTH;
}

/* ---- writing ---- */

/* Adds what a table names. */
static int put_table(json_object *o, const JsonField *table, const void *from) {
        int r = 0;

        for (const JsonField *f = table; r >= 0 && f->name; f++) {
                const void *p = (const char *) from + f->offset;

                if ((f->kind == JSON_KIND_NUMBER && isinf(*(const double *) p)) ||
                    (f->kind == JSON_KIND_UINT && *(const uint64_t *) p == USEC_INFINITY))
                        continue;
                if (f->kind == JSON_KIND_NUMBER)
                        r = json_put_number(o, f->name, *(const double *) p);
                else if (f->kind == JSON_KIND_BYTES)
                        r = json_put_bytes(o, f->name, ((const JsonBytes *) p)->data ?: "",
                                           ((const JsonBytes *) p)->size);
                else
                        r = json_put_uint(o, f->name, *(const uint64_t *) p);
        }
        return r;
}

static int put_object(json_object *o, const char *key, const JsonField *table, const void *from) {
        _cleanup_json_ json_object *member = json_object_new_object();

        if (!member || put_table(member, table, from) < 0)
                return -ENOMEM;
        return json_put_object(o, key, TAKE_PTR(member));
}

static int put_groups(json_object *o, const SessionRecord *r) {
        _cleanup_json_ json_object *array = json_object_new_array();

        if (!array)
                return -ENOMEM;
        for (size_t i = 0; i < r->n_groups; i++)
                if (json_array_put(array, json_object_new_uint64(r->groups[i])) < 0)
                        return -ENOMEM;
        return json_put_object(o, "groups", TAKE_PTR(array));
}

static int put_artifact(json_object *o, const SessionRecordArtifact *a) {
        _cleanup_json_ json_object *member = json_object_new_object(), *array = json_object_new_array();

        if (!member || !array)
                return -ENOMEM;
        for (size_t i = 0; i < a->n_interpreters; i++)
                if (json_array_put_string(array, interpreter_to_string(a->interpreters[i])) < 0)
                        return -ENOMEM;
        if (json_put_string(member, "source", a->source) < 0 || json_put_bool(member, "is_users", a->is_users) < 0 ||
            json_put_object(member, "interpreters", TAKE_PTR(array)) < 0)
                return -ENOMEM;
        return json_put_object(o, "artifact", TAKE_PTR(member));
}

static int put_history(json_object *o, const SessionRecord *r) {
        json_object *array;
        int k;

        k = history_to_json(&r->history, &array);
        return k < 0 ? k : json_put_object(o, "history", array);
}

int session_record_to_json(const SessionRecord *r, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || json_put_string(o, "id", r->id) < 0 || json_put_uint(o, "uid", r->uid) < 0 ||
            json_put_uint(o, "gid", r->gid) < 0 || put_groups(o, r) < 0 ||
            json_put_string(o, "project", r->project) < 0 ||
            json_put_string(o, "project_mode", project_mode_to_string(r->project_mode)) < 0 ||
            json_put_string(o, "name", r->name) < 0 ||
            json_put_string(o, "environment", r->environment) < 0 ||
            (r->artifact.n_interpreters > 0 && put_artifact(o, &r->artifact) < 0) ||
            put_object(o, "limits", limits_table, &r->limits) < 0 ||
            (r->bounds.lifetime_usec > 0 && put_object(o, "bounds", bounds_table, &r->bounds) < 0) ||
            json_put_uint(o, "workspace_mb", r->workspace_mb) < 0 ||
            json_put_uint(o, "created_usec", r->created) < 0 ||
            json_put_uint(o, "created_realtime_usec", r->created_realtime) < 0 ||
            json_put_uint(o, "idle_since_usec", r->idle_since) < 0 ||
            json_put_string(o, "state", session_state_to_string(r->state)) < 0 ||
            json_put_uint(o, "frozen_realtime_usec", r->frozen_realtime) < 0 ||
            json_put_uint(o, "frozen_by", r->frozen_by) < 0 ||
            json_put_uint(o, "interpreters", r->interpreters) < 0 || json_put_uint(o, "pid", r->pid) < 0 ||
            json_put_string(o, "snapshot", r->snapshot) < 0 ||
            json_put_uint(o, "snapshot_bytes", r->snapshot_bytes) < 0 ||
            json_put_uint(o, "saved_turns", r->saved_turns) < 0 || json_put_bool(o, "changed", r->changed) < 0 ||
            json_put_bool(o, "restoring", r->restoring) < 0 || json_put_bool(o, "restored", r->restored) < 0 ||
            json_put_uint(o, "turns", r->turns) < 0 || json_put_uint(o, "turn_usec", r->turn_usec) < 0 ||
            (r->turn.number > 0 && put_object(o, "turn", turn_table, &r->turn) < 0) ||
            (r->network && json_put_object(o, "network", json_object_get(r->network)) < 0) || put_history(o, r) < 0)
                return -ENOMEM;

        *ret = TAKE_PTR(o);
        return 0;
}

/* ---- reading ---- */

static bool weight_is_sane(uint64_t weight) {
        return weight >= LIMITS_WEIGHT_MIN && weight <= LIMITS_WEIGHT_CEILING;
}

static bool rate_is_sane(double mbps) {
        return isinf(mbps) || (mbps >= LIMITS_IO_MBPS_MIN && mbps <= LIMITS_IO_MBPS_CEILING);
}

static bool limits_are_sane(const Limits *l) {
        return isfinite(l->cpus) && l->cpus >= LIMITS_CPUS_MIN && l->cpus <= LIMITS_CPUS_CEILING &&
               l->memory_mb >= LIMITS_MEMORY_MB_MIN && l->memory_mb <= LIMITS_MEMORY_MB_CEILING &&
               l->disk_mb >= LIMITS_DISK_MB_MIN && l->disk_mb <= LIMITS_MEMORY_MB_CEILING &&
               l->processes >= LIMITS_PROCESSES_MIN && l->processes <= LIMITS_PROCESSES_CEILING &&
               l->timeout_usec > 0 && l->timeout_usec <= LIMITS_SECONDS_CEILING * USEC_PER_SEC &&
               weight_is_sane(l->cpu_weight) && weight_is_sane(l->io_weight) &&
               rate_is_sane(l->io_read_mbps) && rate_is_sane(l->io_write_mbps);
}

/* (uid_t) -1 is nobody's. */
static bool id_is_sane(uint64_t id) {
        return id < UINT32_MAX;
}

static int parse_groups(json_object *array, SessionRecord *r) {
        size_t n = json_object_array_length(array);

        if (n > SESSION_RECORD_GROUPS_MAX)
                return -EINVAL;
        if (n == 0)
                return 0;
        r->groups = calloc(n, sizeof(gid_t));
        if (!r->groups)
                return -ENOMEM;

        for (size_t i = 0; i < n; i++) {
                json_object *o = json_object_array_get_idx(array, i);

                if (!json_object_is_type(o, json_type_int) || !id_is_sane(json_object_get_uint64(o)) ||
                    json_object_get_int64(o) < 0)
                        return -EINVAL;
                r->groups[r->n_groups++] = (gid_t) json_object_get_uint64(o);
        }
        return 0;
}

static int parse_bounds(json_object *o, Bounds *ret) {
        Bounds b = { USEC_INFINITY, USEC_INFINITY, USEC_INFINITY };
        int r;

        r = json_dispatch(o, bounds_table, JSON_UNKNOWN_IGNORE, &b, NULL);
        if (r < 0)
                return r;
        if (b.idle_usec == 0 || b.lifetime_usec == 0 || b.turn_budget_usec == 0)
                return -EINVAL;
        *ret = b;
        return 0;
}

static int parse_artifact(json_object *o, SessionRecordArtifact *ret) {
        struct {
                SessionRecordArtifact artifact;
                json_object *interpreters;
        } p = {};
        static const JsonField table[] = {
                { "source", JSON_KIND_STRING, offsetof(typeof(p), artifact.source) },
                { "is_users", JSON_KIND_BOOL, offsetof(typeof(p), artifact.is_users), JSON_MANDATORY },
                { "interpreters", JSON_KIND_ARRAY, offsetof(typeof(p), interpreters), JSON_MANDATORY },
                {},
        };
        size_t n;
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (r < 0)
                return r;
        n = json_object_array_length(p.interpreters);
        if (n == 0 || n > _INTERPRETER_MAX)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                Interpreter k = interpreter_from_string(
                                json_object_get_string(json_object_array_get_idx(p.interpreters, i)));

                if (k < 0)
                        return -EINVAL;
                p.artifact.interpreters[p.artifact.n_interpreters++] = k;
        }
        *ret = p.artifact;
        return 0;
}

static int parse_state(const char *s, SessionState *ret) {
        for (SessionState k = 0; k < SESSION_DEAD; k++)
                if (streq(s, session_state_to_string(k))) {
                        *ret = k;
                        return 0;
                }
        return -EINVAL;
}

typedef struct Parsed {
        SessionRecord record;
        const char *state, *project_mode;
        uint64_t uid, gid, frozen_by;
        json_object *groups, *limits, *bounds, *turn, *history, *artifact;
} Parsed;

static const JsonField record_table[] = {
        { "id", JSON_KIND_STRING, offsetof(Parsed, record.id), JSON_MANDATORY },
        { "uid", JSON_KIND_UINT, offsetof(Parsed, uid), JSON_MANDATORY },
        { "gid", JSON_KIND_UINT, offsetof(Parsed, gid), JSON_MANDATORY },
        { "groups", JSON_KIND_ARRAY, offsetof(Parsed, groups), JSON_MANDATORY },
        { "project", JSON_KIND_STRING, offsetof(Parsed, record.project), JSON_MANDATORY },
        { "project_mode", JSON_KIND_STRING, offsetof(Parsed, project_mode) },
        { "name", JSON_KIND_STRING, offsetof(Parsed, record.name) },
        { "environment", JSON_KIND_STRING, offsetof(Parsed, record.environment), JSON_MANDATORY },
        { "artifact", JSON_KIND_OBJECT, offsetof(Parsed, artifact) },
        { "limits", JSON_KIND_OBJECT, offsetof(Parsed, limits), JSON_MANDATORY },
        { "bounds", JSON_KIND_OBJECT, offsetof(Parsed, bounds) },
        { "workspace_mb", JSON_KIND_UINT, offsetof(Parsed, record.workspace_mb), JSON_MANDATORY },
        { "created_usec", JSON_KIND_UINT, offsetof(Parsed, record.created), JSON_MANDATORY },
        { "created_realtime_usec", JSON_KIND_UINT, offsetof(Parsed, record.created_realtime), JSON_MANDATORY },
        { "idle_since_usec", JSON_KIND_UINT, offsetof(Parsed, record.idle_since), JSON_MANDATORY },
        { "state", JSON_KIND_STRING, offsetof(Parsed, state), JSON_MANDATORY },
        { "frozen_realtime_usec", JSON_KIND_UINT, offsetof(Parsed, record.frozen_realtime), JSON_MANDATORY },
        { "frozen_by", JSON_KIND_UINT, offsetof(Parsed, frozen_by), JSON_MANDATORY },
        { "interpreters", JSON_KIND_UINT, offsetof(Parsed, record.interpreters), JSON_MANDATORY },
        { "pid", JSON_KIND_UINT, offsetof(Parsed, record.pid), JSON_MANDATORY },
        { "turns", JSON_KIND_UINT, offsetof(Parsed, record.turns), JSON_MANDATORY },
        { "turn_usec", JSON_KIND_UINT, offsetof(Parsed, record.turn_usec), JSON_MANDATORY },
        { "turn", JSON_KIND_OBJECT, offsetof(Parsed, turn) },
        { "snapshot", JSON_KIND_STRING, offsetof(Parsed, record.snapshot) },
        { "snapshot_bytes", JSON_KIND_UINT, offsetof(Parsed, record.snapshot_bytes) },
        { "saved_turns", JSON_KIND_UINT, offsetof(Parsed, record.saved_turns) },
        { "changed", JSON_KIND_BOOL, offsetof(Parsed, record.changed) },
        { "restoring", JSON_KIND_BOOL, offsetof(Parsed, record.restoring) },
        { "restored", JSON_KIND_BOOL, offsetof(Parsed, record.restored) },
        { "network", JSON_KIND_OBJECT, offsetof(Parsed, record.network) },
        { "history", JSON_KIND_ARRAY, offsetof(Parsed, history), JSON_MANDATORY },
        {},
};

static bool record_is_sane(const char *id, const Parsed *p) {
        const SessionRecord *r = &p->record;

        return streq(r->id, id) && name_is_valid(r->environment) && id_is_sane(p->uid) &&
               id_is_sane(p->gid) && id_is_sane(p->frozen_by) &&
               r->workspace_mb > 0 && r->workspace_mb <= LIMITS_MEMORY_MB_CEILING &&
               r->interpreters < 1U << _INTERPRETER_MAX && r->project[0] == '/' &&
               strlen(r->project) <= SESSION_PROJECT_MAX && (!r->name || name_is_valid(r->name)) &&
               (!r->snapshot || !*r->snapshot || snapshot_id_is_valid(r->snapshot)) &&
               r->snapshot_bytes <= INT64_MAX && r->saved_turns <= INT64_MAX && r->pid <= INT32_MAX &&
               r->turns <= INT64_MAX && r->turn_usec <= INT64_MAX &&
               r->created <= INT64_MAX && r->idle_since <= INT64_MAX;
}

static int parse_members(const char *id, Parsed *p) {
        SessionRecord *r = &p->record;
        int k;

        k = json_dispatch(r->json, record_table, JSON_UNKNOWN_IGNORE, p, NULL);
        if (k >= 0 && !record_is_sane(id, p))
                k = -EINVAL;
        if (k >= 0)
                k = parse_state(p->state, &r->state);
        if (k >= 0 && p->project_mode) {
                r->project_mode = project_mode_from_string(p->project_mode);
                k = r->project_mode < 0 ? -EINVAL : 0;
        }
        r->limits = limits_builtin_defaults;
        if (k >= 0)
                k = json_dispatch(p->limits, limits_table, JSON_UNKNOWN_IGNORE, &r->limits, NULL);
        if (k >= 0 && !limits_are_sane(&r->limits))
                k = -EINVAL;
        if (k >= 0 && p->bounds)
                k = parse_bounds(p->bounds, &r->bounds);
        if (k >= 0 && p->artifact)
                k = parse_artifact(p->artifact, &r->artifact);
        if (k >= 0 && p->turn)
                k = json_dispatch(p->turn, turn_table, JSON_UNKNOWN_IGNORE, &r->turn, NULL);
        if (k >= 0)
                k = parse_groups(p->groups, r);
        if (k >= 0)
                k = history_from_json(&r->history, p->history);

        r->uid = (uid_t) p->uid;
        r->gid = (gid_t) p->gid;
        r->frozen_by = (uid_t) p->frozen_by;
        return k;
}

int session_record_parse(const char *id, const char *data, size_t size, SessionRecord *ret) {
        Parsed p = {};
        int r;

        if (size > SESSION_RECORD_SIZE_MAX)
                return -EINVAL;
        r = json_parse(data, size, &p.record.json, NULL);
        if (r >= 0)
                r = parse_members(id, &p);
        if (r < 0) {
                session_record_done(&p.record);
                return r;
        }

        *ret = p.record;
        return 0;
}

void session_record_done(SessionRecord *r) {
        json_object_putp(&r->json);
        free(r->groups);
        history_done(&r->history);
        *r = (SessionRecord) {};
}
