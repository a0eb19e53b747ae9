/* SPDX-License-Identifier: MIT */
#pragma once

/* The inside of a CgroupTree, for cgroup*.c alone. */

#include "daemon/cgroup-v1.h"
#include "daemon/cgroup.h"

struct CgroupTree {
        char *name;
        CgroupLayout layout;
        unsigned features;
        unsigned v2_controllers;        /* those of CPU, MEMORY, PIDS, IO that are in the v2 hierarchy */
        Limits user_limits;             /* of the group of each user */
        char *reason;
        char *base;                     /* of the v2 hierarchy, a directory; NULL with layout NONE */
        const char *const *spare;       /* borrowed, while it is made: leaves that are not swept away; NULL: none */
        char *left;                     /* the group that this process left for its child "supervisor" */
        struct {
                char *base;             /* the directory; NULL when the controller is not on v1 */
                char *group;            /* the same for libcgroup, from the mount point */
        } v1[_CGROUP_CONTROLLER_MAX];
};

unsigned cgroup_controller_feature(CgroupController c);

/* The whole of cgroup_tree_new() given the texts and an own group, so that it can be tested against a
 * made-up machine: unified is where the v2 hierarchy is mounted, or NULL. */
int cgroup_tree_new_at(const char *name, const char *const *spare, const char *unified, const char *self_cgroup,
                       CgroupTree **ret);
