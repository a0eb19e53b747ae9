/* SPDX-License-Identifier: MIT */

/* The tables of limits, and what a session gets by default. */

#include "daemon/config-limits.h"

#include "daemon/config-environment.h"

/* Of "defaults" and "max". */
#define LIMITS_FIELDS \
        { "timeout_seconds", CONFIG_SECONDS, offsetof(Limits, timeout_usec), LIMITS_TIMEOUT_SECONDS_MIN,      \
          LIMITS_SECONDS_CEILING },                                                                           \
        { "memory_mb", CONFIG_COUNT, offsetof(Limits, memory_mb), LIMITS_MEMORY_MB_MIN,                       \
          LIMITS_MEMORY_MB_CEILING },                                                                         \
        { "cpus", CONFIG_NUMBER, offsetof(Limits, cpus), LIMITS_CPUS_MIN, LIMITS_CPUS_CEILING },              \
        { "disk_mb", CONFIG_COUNT, offsetof(Limits, disk_mb), LIMITS_DISK_MB_MIN, LIMITS_MEMORY_MB_CEILING }, \
        { "processes", CONFIG_COUNT, offsetof(Limits, processes), LIMITS_PROCESSES_MIN,                       \
          LIMITS_PROCESSES_CEILING },                                                                         \
        { "cpu_weight", CONFIG_COUNT, offsetof(Limits, cpu_weight), LIMITS_WEIGHT_MIN, LIMITS_WEIGHT_CEILING }, \
        { "io_weight", CONFIG_COUNT, offsetof(Limits, io_weight), LIMITS_WEIGHT_MIN, LIMITS_WEIGHT_CEILING }, \
        { "io_read_mbps", CONFIG_NUMBER, offsetof(Limits, io_read_mbps), LIMITS_IO_MBPS_MIN,                  \
          LIMITS_IO_MBPS_CEILING, true },                                                                     \
        { "io_write_mbps", CONFIG_NUMBER, offsetof(Limits, io_write_mbps), LIMITS_IO_MBPS_MIN,                \
          LIMITS_IO_MBPS_CEILING, true }

static int read_default_project(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        Config *c = (Config *) ((char *) target - offsetof(Config, defaults));

        return config_read_project_mode(r, place, value, &c->project);
}

const ConfigField config_limits_fields[] = { LIMITS_FIELDS, {} };
const ConfigField config_defaults_fields[] = {
        LIMITS_FIELDS,
        { "project", CONFIG_OTHER, .read = read_default_project },
        {}
};

int config_write_defaults(json_object *o, const Config *c) {
        _cleanup_json_ json_object *defaults = json_object_new_object();
        int r;

        if (!defaults)
                return -ENOMEM;
        r = config_write_fields(defaults, config_limits_fields, &c->defaults);
        if (r >= 0)
                r = json_put_string(defaults, "project", project_mode_to_string(c->project));
        return r < 0 ? r : json_put_object(o, "defaults", TAKE_PTR(defaults));
}
