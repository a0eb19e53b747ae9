/* SPDX-License-Identifier: MIT */
#pragma once

/* The inside of a Cgroup, for cgroup.c, cgroup-usage.c and cgroup-limits.c. */

#include "daemon/cgroup-tree.h"

struct Cgroup {
        CgroupTree *tree;                               /* borrowed */
        uid_t uid;
        char *name;                                     /* below the base: "u1000/id" */
        char *path;                                     /* in the v2 hierarchy */
        bool made;                                      /* its groups exist, and are its own */
        int join_fds[1 + _CGROUP_CONTROLLER_MAX];
        size_t n_join_fds;
        int events_fd;
        int freeze_fd;
        int oom_fd;                                     /* memory.events, or v1 memory.oom_control */
        int pids_fd;                                    /* pids.events */
        int cpu_usage_fd;                               /* cpu.stat */
        int memory_usage_fd;                            /* memory.current, or v1 memory.usage_in_bytes */
        int pids_usage_fd;                              /* pids.current */
};

/* The leaf's directory in the hierarchy where a controller is. -EOPNOTSUPP when there is none. */
int cgroup_open_controller(const Cgroup *g, CgroupController c);

/* The leaf's name for libcgroup in the v1 hierarchy of a controller. Allocated. */
int cgroup_v1_group(const Cgroup *g, CgroupController c, char **ret);

/* Limits as v1 takes them: the CPU limit of a group must not be above its parent's, the user's. */
Limits cgroup_v1_limits(const Cgroup *g, const Limits *limits);
