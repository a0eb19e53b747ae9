/* SPDX-License-Identifier: MIT */

/*
 * The one file that uses libcgroup (2.0): where the v1 controllers are, and making, limiting and removing
 * groups there. What it cannot do is done with plain writes elsewhere: it attaches only one thread of a
 * process on v1, does not know cgroup.freeze, cgroup.kill and cgroup.events, cannot make a group in a v2
 * hierarchy without controllers, and on one with controllers turns them on in every ancestor without regard
 * to processes there. It keeps a mount table of the process, read once; it does not check group names, so
 * callers pass only names that they have checked.
 */

#include "daemon/cgroup-v1.h"

#include <errno.h>
#include <libcgroup.h>
#include <stdio.h>
#include <unistd.h>

#define CPU_PERIOD_USEC UINT64_C(100000)
#define CPU_SHARES_DEFAULT UINT64_C(1024)

static const char *const controller_table[_CGROUP_CONTROLLER_MAX] = {
        [CGROUP_CONTROLLER_CPU] = "cpu",
        [CGROUP_CONTROLLER_MEMORY] = "memory",
        [CGROUP_CONTROLLER_PIDS] = "pids",
};

const char *cgroup_controller_to_string(CgroupController c) {
        assert(c >= 0 && c < _CGROUP_CONTROLLER_MAX);
        return controller_table[c];
}

static int error_to_errno(int e) {
        int saved;

        switch (e) {
        case 0:
                return 0;
        case ECGROUPNOTOWNER:
        case ECGROUPNOTALLOWED:
                return -EACCES;
        case ECGNONEMPTY:
                return -EBUSY;
        case ECGROUPNOTEXIST:
        case ECGROUPSUBSYSNOTMOUNTED:
        case ECGROUPVALUENOTEXIST:
        case ECGROUPNOTMOUNTED:
                return -ENOENT;
        case ECGOTHER:
                saved = cgroup_get_last_errno();
                return saved > 0 ? -saved : -EIO;
        default:
                return -EIO;
        }
}

int cgroup_v1_mount(CgroupController c, const char *unified, char **ret) {
        _cleanup_free_ char *mount = NULL;

        if (cgroup_init() != 0)
                return -ENOENT;
        if (cgroup_get_subsys_mount_point(cgroup_controller_to_string(c), &mount) != 0)
                return -ENOENT;
        if (streq_ptr(mount, unified))
                return -ENOENT;

        *ret = TAKE_PTR(mount);
        return 0;
}

/* libcgroup gives up at a file that is missing, and not every kernel accounts swap. */
static bool swap_is_accounted(void) {
        _cleanup_free_ char *mount = NULL, *path = NULL;

        if (cgroup_v1_mount(CGROUP_CONTROLLER_MEMORY, /* unified= */ NULL, &mount) < 0)
                return false;
        if (asprintf(&path, "%s/memory.memsw.limit_in_bytes", mount) < 0) {
                path = NULL;
                return false;
        }
        return access(path, F_OK) == 0;
}

/* Values are written in the order they are added: the limit of memory and swap together must not be below
 * that of memory alone at any time. Together they leave no swap, so a session at its limit does not
 * thrash. */
static int add_memory_limit(struct cgroup_controller *controller, uint64_t old_mb, uint64_t memory_mb) {
        static const char *const files[] = { "memory.limit_in_bytes", "memory.memsw.limit_in_bytes" };
        uint64_t bytes = memory_mb * MIB;
        bool raised = memory_mb > old_mb;       /* then the sum goes first */
        int e;

        if (!swap_is_accounted()) {
                e = cgroup_add_value_uint64(controller, files[0], bytes);
                return e != 0 ? e : cgroup_add_value_uint64(controller, "memory.swappiness", 0);
        }
        e = cgroup_add_value_uint64(controller, files[raised ? 1 : 0], bytes);
        return e != 0 ? e : cgroup_add_value_uint64(controller, files[raised ? 0 : 1], bytes);
}

static int add_cpu_limits(struct cgroup_controller *controller, const Limits *old, const Limits *limits) {
        int e = 0;

        if (limits->cpus != old->cpus) {
                e = cgroup_add_value_uint64(controller, "cpu.cfs_period_us", CPU_PERIOD_USEC);
                if (e == 0)
                        e = cgroup_add_value_uint64(controller, "cpu.cfs_quota_us",
                                                    (uint64_t) (limits->cpus * CPU_PERIOD_USEC));
        }
        if (e == 0 && limits->cpu_weight != old->cpu_weight)
                e = cgroup_add_value_uint64(controller, "cpu.shares",
                                            limits->cpu_weight * CPU_SHARES_DEFAULT / LIMITS_WEIGHT_DEFAULT);
        return e;
}

static int add_limits(struct cgroup_controller *controller, CgroupController c, const Limits *old,
                      const Limits *limits) {
        switch (c) {
        case CGROUP_CONTROLLER_CPU:
                return add_cpu_limits(controller, old, limits);
        case CGROUP_CONTROLLER_MEMORY:
                return limits->memory_mb == old->memory_mb
                               ? 0
                               : add_memory_limit(controller, old->memory_mb, limits->memory_mb);
        case CGROUP_CONTROLLER_PIDS:
                return limits->processes == old->processes
                               ? 0
                               : cgroup_add_value_uint64(controller, "pids.max", limits->processes);
        case _CGROUP_CONTROLLER_MAX:
        default:
                return ECGINVAL;
        }
}

static void group_freep(struct cgroup **g) {
        if (*g)
                cgroup_free(g);
}

/* A group as libcgroup has it before it writes: with one controller and what is to be changed there. */
static int describe_group(CgroupController c, const char *group, const Limits *old, const Limits *limits,
                          struct cgroup **ret) {
        _cleanup_(group_freep) struct cgroup *g = NULL;
        struct cgroup_controller *controller;
        int e;

        g = cgroup_new_cgroup(group);
        if (!g)
                return -ENOMEM;
        controller = cgroup_add_controller(g, cgroup_controller_to_string(c));
        if (!controller)
                return -ENOMEM;
        e = add_limits(controller, c, old, limits);
        if (e != 0)
                return error_to_errno(e);

        *ret = TAKE_PTR(g);
        return 0;
}

int cgroup_v1_create(CgroupController c, const char *group, const Limits *limits) {
        _cleanup_(group_freep) struct cgroup *g = NULL;
        int r;

        /* A group that was just made has no bounds. */
        r = describe_group(c, group, &limits_unbounded, limits ?: &limits_unbounded, &g);
        return r < 0 ? r : error_to_errno(cgroup_create_cgroup(g, /* ignore_ownership= */ 1));
}

int cgroup_v1_set_limits(CgroupController c, const char *group, const Limits *old, const Limits *limits) {
        _cleanup_(group_freep) struct cgroup *g = NULL;
        int r;

        r = describe_group(c, group, old, limits, &g);
        return r < 0 ? r : error_to_errno(cgroup_modify_cgroup(g));
}

int cgroup_v1_delete(CgroupController c, const char *group) {
        _cleanup_(group_freep) struct cgroup *g = NULL;
        int r;

        g = cgroup_new_cgroup(group);
        if (!g || !cgroup_add_controller(g, cgroup_controller_to_string(c)))
                return -ENOMEM;

        /* Without this flag it would move the group's processes to the parent, that is, free them. */
        r = error_to_errno(cgroup_delete_cgroup_ext(g, CGFLAG_DELETE_EMPTY_ONLY));
        return r == -ENOENT ? 0 : r;
}
