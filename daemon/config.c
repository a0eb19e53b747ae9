/* SPDX-License-Identifier: MIT */

/*
 * What can be configured, as tables: the same ones read the file and write the effective configuration. A
 * Config owns its table of environments and does not change after it is read.
 */

#include "daemon/config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>

#include "daemon/config-environment.h"
#include "daemon/config-limits.h"
#include "daemon/config-network.h"
#include "daemon/config-reader.h"
#include "lib/fd-util.h"

#define SESSIONS_CEILING 65536

static int read_on_disconnect(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                              void *target);

static int read_background_jobs(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                                void *target);

static int read_checkpoints(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);

static const ConfigField session_fields[] = {
        { "idle_timeout_seconds", CONFIG_SECONDS, offsetof(Config, session.bounds.idle_usec), 0.01,
          LIMITS_SECONDS_CEILING, true },
        { "max_lifetime_seconds", CONFIG_SECONDS, offsetof(Config, session.bounds.lifetime_usec), 0.01,
          LIMITS_SECONDS_CEILING, true },
        { "turn_budget_seconds", CONFIG_SECONDS, offsetof(Config, session.bounds.turn_budget_usec), 0.01,
          LIMITS_SECONDS_CEILING, true },
        { "standby_after_seconds", CONFIG_SECONDS, offsetof(Config, session.standby_usec), 0.01,
          LIMITS_SECONDS_CEILING, true },
        { "reclaim_after_seconds", CONFIG_SECONDS, offsetof(Config, session.reclaim_usec), 0.01,
          LIMITS_SECONDS_CEILING, true },
        { "on_disconnect", CONFIG_OTHER, .read = read_on_disconnect },
        { "background_jobs", CONFIG_OTHER, .read = read_background_jobs },
        { "checkpoints", CONFIG_OTHER, .read = read_checkpoints },
        {}
};

static const ConfigField user_fields[] = {
        { "max_sessions", CONFIG_COUNT, offsetof(Config, user.sessions_max), 1, SESSIONS_CEILING },
        { "max_connections", CONFIG_COUNT, offsetof(Config, user.connections_max), 1, SESSIONS_CEILING },
        { "max_memory_mb", CONFIG_COUNT, offsetof(Config, user.memory_mb_max), LIMITS_MEMORY_MB_MIN,
          LIMITS_MEMORY_MB_CEILING, true },
        { "max_processes", CONFIG_COUNT, offsetof(Config, user.processes_max), LIMITS_PROCESSES_MIN,
          LIMITS_PROCESSES_CEILING, true },
        { "max_cpus", CONFIG_NUMBER, offsetof(Config, user.cpus_max), LIMITS_CPUS_MIN, LIMITS_CPUS_CEILING, true },
        {}
};

static int read_log_code(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);

static const ConfigField audit_fields[] = {
        { "max_mb", CONFIG_COUNT, offsetof(Config, audit.max_mb), 1, 4096 },
        { "keep", CONFIG_COUNT, offsetof(Config, audit.keep), 1, 10000 },
        { "log_code", CONFIG_OTHER, .read = read_log_code },
        {}
};

static int read_enabled(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);

static const ConfigField snapshots_fields[] = {
        { "enabled", CONFIG_OTHER, .read = read_enabled },
        { "interval_seconds", CONFIG_SECONDS, offsetof(Config, snapshots.interval_usec), 0.01, LIMITS_SECONDS_CEILING,
          true },
        { "keep", CONFIG_COUNT, offsetof(Config, snapshots.keep), 1, 1000 },
        { "max_mb", CONFIG_COUNT, offsetof(Config, snapshots.max_mb), 1, LIMITS_MEMORY_MB_CEILING },
        { "user_max_mb", CONFIG_COUNT, offsetof(Config, snapshots.user_max_mb), 1, LIMITS_MEMORY_MB_CEILING },
        { "expire_days", CONFIG_NUMBER, offsetof(Config, snapshots.expire_days), 0.0001, 36500, true },
        {}
};

static int read_bool(const ConfigReader *r, const ConfigPlace *place, json_object *value, bool *ret) {
        if (!json_object_is_type(value, json_type_boolean))
                return config_error(r, place, "must be true or false");

        *ret = json_object_get_boolean(value);
        return 0;
}

static int read_log_code(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return read_bool(r, place, value, &((Config *) target)->audit.log_code);
}

static int read_enabled(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return read_bool(r, place, value, &((Config *) target)->snapshots.enabled);
}

/* One of two words; *ret says whether it is the second. */
static int read_choice(const ConfigReader *r, const ConfigPlace *place, json_object *value, const char *first,
                       const char *second, bool *ret) {
        const char *s;
        int e;

        e = config_read_string(r, place, value, &s);
        if (e < 0)
                return e;
        if (!streq(s, first) && !streq(s, second))
                return config_error(r, place, "must be \"%s\" or \"%s\"", first, second);

        *ret = streq(s, second);
        return 0;
}

static int read_on_disconnect(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                              void *target) {
        return read_choice(r, place, value, "keep", "end", &((Config *) target)->session.end_on_disconnect);
}

static int read_background_jobs(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                                void *target) {
        return read_choice(r, place, value, "freeze", "keep-awake", &((Config *) target)->session.jobs_keep_awake);
}

static int read_checkpoints(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        static const char *const modes[] = { "auto", "always", "never" };
        const char *s;
        int e;

        e = config_read_string(r, place, value, &s);
        if (e < 0)
                return e;
        for (size_t i = 0; i < ELEMENTSOF(modes); i++)
                if (streq(s, modes[i])) {
                        ((Config *) target)->session.checkpoints = modes[i];
                        return 0;
                }
        return config_error(r, place, "must be \"auto\", \"always\" or \"never\"");
}

static int read_require_limits(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                               void *target) {
        return read_bool(r, place, value, &((Config *) target)->require_limits);
}

static int read_defaults(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return config_read_object(r, place, value, config_defaults_fields, &((Config *) target)->defaults);
}

static int read_max(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return config_read_object(r, place, value, config_limits_fields, &((Config *) target)->max);
}

static int read_session(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return config_read_object(r, place, value, session_fields, target);
}

static int read_user(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return config_read_object(r, place, value, user_fields, target);
}

static int read_audit(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return config_read_object(r, place, value, audit_fields, target);
}

static int read_snapshots(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return config_read_object(r, place, value, snapshots_fields, target);
}

static int read_environments(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                             void *target) {
        Config *c = target;

        return config_read_environments(r, place, value, &c->network.sets, c->environments);
}

static int read_environment_dirs(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                                 void *target) {
        return config_read_directories(r, place, value, /* of_user= */ false, &((Config *) target)->environment_dirs);
}

static int read_user_environment_dirs(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                                      void *target) {
        return config_read_directories(r, place, value, /* of_user= */ true,
                                       &((Config *) target)->user_environment_dirs);
}

static const ConfigField config_fields[] = {
        { "defaults", CONFIG_OTHER, .read = read_defaults },
        { "max", CONFIG_OTHER, .read = read_max },
        { "session", CONFIG_OTHER, .read = read_session },
        { "user", CONFIG_OTHER, .read = read_user },
        { "audit", CONFIG_OTHER, .read = read_audit },
        { "snapshots", CONFIG_OTHER, .read = read_snapshots },
        /* Read before the others, because environments name its sets. */
        { "network", CONFIG_OTHER, .read = config_read_nothing },
        { "environments", CONFIG_OTHER, .read = read_environments },
        { "environment_dirs", CONFIG_OTHER, .read = read_environment_dirs },
        { "user_environment_dirs", CONFIG_OTHER, .read = read_user_environment_dirs },
        { "require_limits", CONFIG_OTHER, .read = read_require_limits },
        {}
};

static int config_new(Config **ret) {
        _cleanup_(config_freep) Config *c = NULL;
        int r;

        c = malloc(sizeof(*c));
        if (!c)
                return -ENOMEM;
        *c = (Config) {
                .defaults = limits_builtin_defaults,
                .max = limits_builtin_max,
                .project = PROJECT_READ_ONLY,
                .session = {
                        .standby_usec = 900 * USEC_PER_SEC,
                        .checkpoints = "auto",
                        .bounds = {
                                .idle_usec = 8 * 3600 * USEC_PER_SEC,
                                .lifetime_usec = 24 * 3600 * USEC_PER_SEC,
                                .turn_budget_usec = 8 * 3600 * USEC_PER_SEC,
                        },
                        .reclaim_usec = 300 * USEC_PER_SEC,
                },
                .user = {
                        .sessions_max = 256,
                        .connections_max = 256,
                        .memory_mb_max = UINT64_MAX,
                        .processes_max = UINT64_MAX,
                        .cpus_max = INFINITY,
                },
                .audit = { .max_mb = 16, .keep = 8 },
                .snapshots = {
                        .enabled = true,
                        .interval_usec = 300 * USEC_PER_SEC,
                        .keep = 5,
                        .max_mb = 1024,
                        .user_max_mb = 4096,
                        .expire_days = 7,
                },
                .require_limits = true,
                .network = { .limits = network_limits_default },
        };
        r = environment_table_new(&c->environments);
        if (r >= 0)
                r = environment_table_add_builtin(c->environments);
        if (r >= 0)
                r = config_directories_set(&c->environment_dirs, CONFIG_ENVIRONMENT_DIRECTORY);
        if (r >= 0)
                r = config_directories_set(&c->user_environment_dirs, CONFIG_USER_ENVIRONMENT_DIRECTORY);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}

int config_parse(const char *name, const char *data, size_t size, Config **ret, char **reterr_why) {
        _cleanup_(config_freep) Config *c = NULL;
        _cleanup_free_ char *notice = NULL;
        _cleanup_json_ json_object *o = NULL;
        const ConfigReader reader = { name, reterr_why };
        size_t offset = 0;
        int r;

        *reterr_why = NULL;
        r = json_parse_with_comments(data, size, &o, &offset);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return config_syntax_error(&reader, data, MIN(offset, size));

        r = config_new(&c);
        if (r >= 0)
                r = config_read_network(&reader, o, &c->network.sets, &c->network.limits);
        if (r >= 0)
                r = config_read_object(&reader, /* place= */ NULL, o, config_fields, c);
        /* A file that only lowers a maximum lowers the default with it. */
        if (r >= 0)
                r = limits_apply(&c->defaults, &c->max, /* ask= */ NULL, &c->defaults, &notice);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}

int config_load(const char *path, Config **ret, char **reterr_why) {
        _cleanup_(config_freep) Config *c = NULL;
        _cleanup_free_ char *data = NULL;
        size_t size;
        int r;

        if (!path)
                return config_parse("built-in", "{}", 2, ret, reterr_why);

        r = read_file_at(AT_FDCWD, path, CONFIG_SIZE_MAX, &data, &size);
        if (r < 0) {
                if (asprintf(reterr_why, "%s: %s", path, strerror(-r)) < 0)
                        *reterr_why = NULL;
                return r;
        }

        r = config_parse(path, data, size, &c, reterr_why);
        if (r >= 0)
                r = config_load_environments(&(ConfigReader) { path, reterr_why }, c->environments);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}

int config_load_credentials(Config *c, const char *path, char **reterr_why) {
        const ConfigReader reader = { path ?: "built-in", reterr_why };

        return config_load_environment_credentials(&reader, c->environments);
}

Config *config_free(Config *c) {
        if (!c)
                return NULL;

        (void) environment_table_free(c->environments);
        network_sets_done(&c->network.sets);
        config_directories_done(&c->environment_dirs);
        config_directories_done(&c->user_environment_dirs);
        return mfree(c);
}

static int write_session(json_object *o, const Config *c) {
        _cleanup_json_ json_object *session = json_object_new_object();
        int r;

        if (!session)
                return -ENOMEM;
        r = config_write_fields(session, session_fields, c);
        if (r >= 0)
                r = json_put_string(session, "on_disconnect", c->session.end_on_disconnect ? "end" : "keep");
        if (r >= 0)
                r = json_put_string(session, "background_jobs",
                                    c->session.jobs_keep_awake ? "keep-awake" : "freeze");
        if (r >= 0)
                r = json_put_string(session, "checkpoints", c->session.checkpoints);
        return r < 0 ? r : json_put_object(o, "session", TAKE_PTR(session));
}

static int write_audit(json_object *o, const Config *c) {
        _cleanup_json_ json_object *audit = json_object_new_object();
        int r;

        if (!audit)
                return -ENOMEM;
        r = config_write_fields(audit, audit_fields, c);
        if (r >= 0)
                r = json_put_bool(audit, "log_code", c->audit.log_code);
        return r < 0 ? r : json_put_object(o, "audit", TAKE_PTR(audit));
}

static int write_snapshots(json_object *o, const Config *c) {
        _cleanup_json_ json_object *snapshots = json_object_new_object();
        int r;

        if (!snapshots)
                return -ENOMEM;
        r = json_put_bool(snapshots, "enabled", c->snapshots.enabled);
        if (r >= 0)
                r = config_write_fields(snapshots, snapshots_fields, c);
        return r < 0 ? r : json_put_object(o, "snapshots", TAKE_PTR(snapshots));
}

json_object *config_to_json(const Config *c) {
        _cleanup_json_ json_object *o = json_object_new_object();
        int r;

        if (!o)
                return NULL;
        r = config_write_defaults(o, c);
        if (r >= 0)
                r = config_write_object(o, "max", config_limits_fields, &c->max);
        if (r >= 0)
                r = write_session(o, c);
        if (r >= 0)
                r = config_write_object(o, "user", user_fields, c);
        if (r >= 0)
                r = write_audit(o, c);
        if (r >= 0)
                r = write_snapshots(o, c);
        if (r >= 0)
                r = json_put_bool(o, "require_limits", c->require_limits);
        if (r >= 0)
                r = config_write_network(o, &c->network.sets, &c->network.limits);
        if (r >= 0)
                r = config_write_environments(o, c->environments);
        if (r >= 0)
                r = config_write_directories(o, "environment_dirs", &c->environment_dirs);
        if (r >= 0)
                r = config_write_directories(o, "user_environment_dirs", &c->user_environment_dirs);

        return r < 0 ? NULL : TAKE_PTR(o);
}
