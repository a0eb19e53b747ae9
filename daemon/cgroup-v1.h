/* SPDX-License-Identifier: MIT */
#pragma once

/* Groups and limits in the v1 hierarchies of the cpu, memory and pids controllers, through libcgroup. */

#include "daemon/limits.h"

typedef enum CgroupController {
        CGROUP_CONTROLLER_CPU,
        CGROUP_CONTROLLER_MEMORY,
        CGROUP_CONTROLLER_PIDS,
        _CGROUP_CONTROLLER_MAX,
} CgroupController;

const char *cgroup_controller_to_string(CgroupController c);

/* Where a controller is mounted as a v1 hierarchy. Allocated; -ENOENT when it is not, or is in the v2
 * hierarchy (which unified names; may be NULL). */
int cgroup_v1_mount(CgroupController c, const char *unified, char **ret);

/*
 * Makes a group, named from the mount point, and its parents; sets the limits of this controller, if any are
 * given, but for those without a bound. The group may be there already. On error it may be left behind,
 * without its limits.
 */
int cgroup_v1_create(CgroupController c, const char *group, const Limits *limits);

/* Changes what differs in the limits of this controller. */
int cgroup_v1_set_limits(CgroupController c, const char *group, const Limits *old, const Limits *limits);

/* Removes an empty group. It being gone is no error; -EBUSY while a process or a group is in it. */
int cgroup_v1_delete(CgroupController c, const char *group);
