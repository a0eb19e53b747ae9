/* SPDX-License-Identifier: MIT */

/* Limits of a leaf that has processes already, in all hierarchies that have a controller; and taking memory back. */

#include "daemon/cgroup-private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/cgroup-io.h"
#include "daemon/cgroup-v2.h"
#include "lib/fd-util.h"

static int set_v1_limits(Cgroup *g, CgroupController c, const Limits *old, const Limits *limits) {
        const Limits old_own = cgroup_v1_limits(g, old), own = cgroup_v1_limits(g, limits);
        _cleanup_free_ char *group = NULL;
        int r;

        r = cgroup_v1_group(g, c, &group);
        return r < 0 ? r : cgroup_v1_set_limits(c, group, &old_own, &own);
}

static int set_limits(Cgroup *g, const Limits *old, const Limits *limits) {
        _cleanup_close_ int fd = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = 0;

        if (fd < 0)
                return -errno;
        for (CgroupController c = 0; r >= 0 && c < _CGROUP_CONTROLLER_MAX; c++)
                if (g->tree->v1[c].base)
                        r = set_v1_limits(g, c, old, limits);
        return r < 0 ? r : cgroup_v2_set_limits(fd, g->tree->v2_controllers, old, limits);
}

int cgroup_set_limits(Cgroup *g, const Limits *old, const Limits *limits) {
        int r;

        r = set_limits(g, old, limits);
        if (r < 0)
                (void) set_limits(g, limits, old);
        return r;
}

int cgroup_tree_count_disks(const CgroupTree *t) {
        _cleanup_close_ int fd = -EBADF;

        if (!(t->v2_controllers & CGROUP_IO))
                return -EOPNOTSUPP;
        fd = open(t->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : cgroup_io_set_bounds(fd, INFINITY, INFINITY);
}

int cgroup_reclaim(Cgroup *g, uint64_t bytes) {
        _cleanup_close_ int fd = -EBADF;
        char text[32];
        int r;

        if (!(g->tree->v2_controllers & CGROUP_MEMORY))
                return -EOPNOTSUPP;
        fd = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;

        (void) snprintf(text, sizeof(text), "%" PRIu64, bytes);
        r = write_file_at(fd, "memory.reclaim", text);
        return r == -ENOENT ? -EOPNOTSUPP : r;
}
