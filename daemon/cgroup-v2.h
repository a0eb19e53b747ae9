/* SPDX-License-Identifier: MIT */
#pragma once

/* The v2 hierarchy by descriptors of directories: controllers, limits, and the way out of an own group. */

#include "daemon/cgroup.h"

#define CGROUP_V2_CONTROLLERS ((unsigned) (CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS | CGROUP_IO))

/* Of CGROUP_V2_CONTROLLERS, those in cgroup.controllers. 0 when it cannot be read. */
unsigned cgroup_v2_controllers(int dir_fd);

/* Turns controllers on for the children of a group, each by itself. Those that could be. */
unsigned cgroup_v2_enable(int dir_fd, unsigned controllers);
void cgroup_v2_disable(int dir_fd, unsigned controllers);

typedef enum CgroupParent {
        CGROUP_PARENT_FREE,     /* groups can be made below it */
        CGROUP_PARENT_MOVED,    /* the same, now that this process moved to the child "supervisor" */
        CGROUP_PARENT_SHARED,   /* other processes are in it: groups below it get no controllers */
} CgroupParent;

/*
 * Finds the group below which the daemon makes its own, given the one it is in: that, or its parent when
 * this is a "supervisor" already (where the service manager puts it with DelegateSubgroup=). A CgroupParent,
 * or negative errno. It moves only if one of the wanted controllers can be had by it.
 */
int cgroup_v2_find_parent(const char *own, unsigned wanted, char **ret_parent);

/* Undoes the move. Best effort. */
void cgroup_v2_leave_supervisor(const char *parent);

/* Writes what differs from old (NULL: from a group just made). -ENODEV: an IO bound, and no device that takes
 * it; said after all else is done. */
int cgroup_v2_set_limits(int dir_fd, unsigned controllers, const Limits *old, const Limits *limits);
