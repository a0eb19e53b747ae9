/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The daemon's configuration: JSON with comments, strict. What a file leaves out has its built-in value,
 * so no file at all is a complete configuration.
 */

#include "daemon/bounds.h"
#include "daemon/config-directories.h"
#include "daemon/environment.h"
#include "daemon/limits.h"
#include "daemon/network-sets.h"
#include "lib/json.h"
#include "lib/network-limits.h"

#define CONFIG_SIZE_MAX (256 * KIB)

typedef struct Config {
        Limits defaults;
        Limits max;
        ProjectMode project;                    /* the most that a caller can ask for */
        struct {
                uint64_t standby_usec;          /* in all of these USEC_INFINITY is never ("0" in the file) */
                Bounds bounds;                  /* of sessions that are made from now on */
                uint64_t reclaim_usec;          /* how long a session is frozen before memory is taken back */
                bool end_on_disconnect;
                bool jobs_keep_awake;           /* live background jobs are not idle */
                const char *checkpoints;        /* "auto", "always" or "never"; static */
        } session;
        struct {
                uint64_t sessions_max;
                uint64_t connections_max;
                uint64_t memory_mb_max;         /* these three: UINT64_MAX, INFINITY: no bound ("0" in the file) */
                uint64_t processes_max;
                double cpus_max;
        } user;
        bool require_limits;                    /* the service does not start without memory, pids and cpu */
        struct {
                uint64_t max_mb;        /* of a file of the audit trail */
                uint64_t keep;          /* full files kept */
                bool log_code;          /* the code of turns, too */
        } audit;
        struct {
                bool enabled;           /* saved and restored without being asked */
                uint64_t interval_usec; /* USEC_INFINITY: never */
                uint64_t keep;          /* of one session */
                uint64_t max_mb;        /* of one snapshot */
                uint64_t user_max_mb;   /* of all snapshots of a user */
                double expire_days;     /* INFINITY: never */
        } snapshots;
        struct {
                NetworkSets sets;       /* what @NAME stands for in an environment's list */
                NetworkLimits limits;   /* of a session that has a network */
        } network;
        EnvironmentTable *environments; /* built in, and of the file */
        ConfigDirectories environment_dirs;
        ConfigDirectories user_environment_dirs; /* %h, %u, %U: of each user */
} Config;

/*
 * Reads a file, or takes the built-in values when path is NULL. On error *reterr_why is an allocated
 * sentence that names the file, the place in it and what is wrong, or NULL when memory is short.
 */
int config_load(const char *path, Config **ret, char **reterr_why);

/* Reads the credentials, which are no part of the above: who checks a file need not have them. Errors are the same. */
int config_load_credentials(Config *c, const char *path, char **reterr_why);

/* The same as config_load() from text; name stands for the file in messages. Closures are not read. */
int config_parse(const char *name, const char *data, size_t size, Config **ret, char **reterr_why);

Config *config_free(Config *c);
DEFINE_TRIVIAL_CLEANUP_FUNC(Config *, config_free);

/* The effective configuration in the syntax of the file (for --check-config). NULL on OOM. */
json_object *config_to_json(const Config *c);
