/* SPDX-License-Identifier: MIT */
#pragma once

/* The part of the configuration that describes environments. */

#include "daemon/config-reader.h"
#include "daemon/environment.h"
#include "daemon/limits.h"
#include "daemon/network-sets.h"

/*
 * What an environment says of itself wherever it is described: rows of a table whose target is an Environment. "root"
 * is beside them, because only an artifact must have one.
 */
#define CONFIG_ENVIRONMENT_FIELDS                                                                             \
        { "interpreters", CONFIG_OTHER, .read = config_read_interpreters },                                   \
        { "description", CONFIG_OTHER, .read = config_read_description },                                     \
        { "timeout_seconds", CONFIG_SECONDS, offsetof(Environment, timeout_usec), LIMITS_TIMEOUT_SECONDS_MIN, \
          LIMITS_SECONDS_CEILING },                                                                           \
        { "memory_mb", CONFIG_COUNT, offsetof(Environment, memory_mb), LIMITS_MEMORY_MB_MIN,                  \
          LIMITS_MEMORY_MB_CEILING },                                                                         \
        { "cpus", CONFIG_NUMBER, offsetof(Environment, cpus), LIMITS_CPUS_MIN, LIMITS_CPUS_CEILING },         \
        { "disk_mb", CONFIG_COUNT, offsetof(Environment, disk_mb), LIMITS_DISK_MB_MIN, LIMITS_MEMORY_MB_CEILING }, \
        { "project", CONFIG_OTHER, .read = config_read_project },                                             \
        /* Read after them, with what its sets are: config_read_allow_list(). */                              \
        { "network", CONFIG_OTHER, .read = config_read_nothing }

int config_read_nothing(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);
int config_read_interpreters(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);
int config_read_description(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);
int config_read_project(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);
int config_read_root(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);

/* An absolute path, in the place of the string that target has. */
int config_read_path(const ConfigReader *r, const ConfigPlace *place, json_object *value, char **target);

/* Adds what the section describes to a table that has the built-in environments. */
int config_read_environments(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                             const NetworkSets *sets, EnvironmentTable *t);

/* Reads the closures of those that have one: what is wrong with a list is an error of the key. */
int config_load_environments(const ConfigReader *r, EnvironmentTable *t);

/* Reads the files of credentials. */
int config_load_environment_credentials(const ConfigReader *r, EnvironmentTable *t);

/* "none", "read-only" or "read-write". */
int config_read_project_mode(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                             ProjectMode *ret);

/* Adds the section to the object of the whole. */
int config_write_environments(json_object *o, const EnvironmentTable *t);
