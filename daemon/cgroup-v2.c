/* SPDX-License-Identifier: MIT */

/*
 * What the v2 hierarchy asks of whoever divides a group: a group other than the root may have processes or
 * children with controllers, but not both, and a controller is in a group only if every ancestor passes it
 * on through cgroup.subtree_control. So the daemon first goes into a child of its own, unless the service
 * manager put it into one.
 */

#include "daemon/cgroup-v2.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/cgroup-place.h"
#include "lib/fd-util.h"
#include "lib/log.h"

#define SUPERVISOR "supervisor"
#define PROCS_MAX (64 * KIB)
#define CPU_PERIOD_USEC 100000

static const struct {
        const char *name;
        unsigned feature;
} controller_table[] = {
        { "cpu", CGROUP_CPU },
        { "memory", CGROUP_MEMORY },
        { "pids", CGROUP_PIDS },
};

unsigned cgroup_v2_controllers(int dir_fd) {
        _cleanup_free_ char *list = NULL;
        unsigned found = 0;

        if (read_file_at(dir_fd, "cgroup.controllers", 4 * KIB, &list, /* ret_size= */ NULL) < 0)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(controller_table); i++)
                if (cgroup_list_contains(list, controller_table[i].name))
                        found |= controller_table[i].feature;

        return found;
}

/* One write each: a write of several changes nothing when one of them cannot be. */
static unsigned switch_controllers(int dir_fd, unsigned controllers, char sign) {
        unsigned done = 0;

        for (size_t i = 0; i < ELEMENTSOF(controller_table); i++) {
                char value[16];
                int r;

                if (!(controllers & controller_table[i].feature))
                        continue;
                (void) snprintf(value, sizeof(value), "%c%s", sign, controller_table[i].name);
                r = write_file_at(dir_fd, "cgroup.subtree_control", value);
                if (r < 0)
                        (void) log_debug_errno(r,
                                               "Failed to write %s to cgroup.subtree_control, ignoring: %m",
                                               value);
                else
                        done |= controller_table[i].feature;
        }

        return done;
}

unsigned cgroup_v2_enable(int dir_fd, unsigned controllers) {
        return switch_controllers(dir_fd, controllers, '+');
}

void cgroup_v2_disable(int dir_fd, unsigned controllers) {
        (void) switch_controllers(dir_fd, controllers, '-');
}

/* Whether this process is the only one directly in a group. */
static bool is_alone(int dir_fd) {
        _cleanup_free_ char *procs = NULL;
        char own[16];

        (void) snprintf(own, sizeof(own), "%d\n", getpid());
        return read_file_at(dir_fd, "cgroup.procs", PROCS_MAX, &procs, /* ret_size= */ NULL) >= 0 &&
                streq(procs, own);
}

static int move_to_supervisor(int dir_fd) {
        _cleanup_close_ int fd = -EBADF;

        if (mkdirat(dir_fd, SUPERVISOR, 0755) < 0 && errno != EEXIST)
                return -errno;
        fd = openat(dir_fd, SUPERVISOR, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;

        return write_file_at(fd, "cgroup.procs", "0");
}

/* Only the root of all groups has no cgroup.type, and there processes are in nobody's way. */
static int make_room(int dir_fd, unsigned wanted) {
        int r;

        if (!(cgroup_v2_controllers(dir_fd) & wanted) || faccessat(dir_fd, "cgroup.type", F_OK, 0) < 0)
                return CGROUP_PARENT_FREE;
        if (!is_alone(dir_fd))
                return CGROUP_PARENT_SHARED;

        r = move_to_supervisor(dir_fd);
        return r < 0 ? r : CGROUP_PARENT_MOVED;
}

int cgroup_v2_find_parent(const char *own, unsigned wanted, char **ret_parent) {
        _cleanup_free_ char *parent = NULL;
        _cleanup_close_ int fd = -EBADF;
        char *name;
        int r;

        parent = strdup(own);
        if (!parent)
                return -ENOMEM;

        name = strrchr(parent, '/');
        if (name && name != parent && streq(name + 1, SUPERVISOR)) {
                *name = '\0';
                *ret_parent = TAKE_PTR(parent);
                return CGROUP_PARENT_FREE;
        }

        fd = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = make_room(fd, wanted);
        if (r < 0)
                return r;

        *ret_parent = TAKE_PTR(parent);
        return r;
}

void cgroup_v2_leave_supervisor(const char *parent) {
        _cleanup_close_ int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return;
        cgroup_v2_disable(fd, CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
        if (write_file_at(fd, "cgroup.procs", "0") >= 0)
                (void) unlinkat(fd, SUPERVISOR, AT_REMOVEDIR);
}

int cgroup_v2_set_limits(int dir_fd, unsigned controllers, const Limits *limits) {
        char value[64];
        int r;

        if (controllers & CGROUP_CPU) {
                (void) snprintf(value, sizeof(value), "%" PRIu64 " %d",
                                (uint64_t) (limits->cpus * CPU_PERIOD_USEC), CPU_PERIOD_USEC);
                r = write_file_at(dir_fd, "cpu.max", value);
                if (r < 0)
                        return r;
        }
        if (controllers & CGROUP_MEMORY) {
                (void) snprintf(value, sizeof(value), "%" PRIu64, limits->memory_mb * MIB);
                r = write_file_at(dir_fd, "memory.max", value);
                if (r < 0)
                        return r;
                /* The file is missing where the kernel has no swap; a session at its limit must not
                 * thrash. */
                (void) write_file_at(dir_fd, "memory.swap.max", "0");
        }
        if (controllers & CGROUP_PIDS) {
                (void) snprintf(value, sizeof(value), "%" PRIu64, limits->processes);
                r = write_file_at(dir_fd, "pids.max", value);
                if (r < 0)
                        return r;
        }

        return 0;
}
