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
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/cgroup-io.h"
#include "daemon/cgroup-place.h"
#include "lib/fd-util.h"
#include "lib/log.h"

#define SUPERVISOR "supervisor"
#define PROCS_MAX (64 * KIB)
#define BFQ_WEIGHT_MAX 1000
#define CPU_PERIOD_USEC 100000
#define CPU_PERIOD_TEXT " 100000"

static const struct {
        const char *name;
        unsigned feature;
} controller_table[] = {
        { "cpu", CGROUP_CPU },
        { "memory", CGROUP_MEMORY },
        { "pids", CGROUP_PIDS },
        { "io", CGROUP_IO },
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
        cgroup_v2_disable(fd, CGROUP_V2_CONTROLLERS);
        if (write_file_at(fd, "cgroup.procs", "0") >= 0)
                (void) unlinkat(fd, SUPERVISOR, AT_REMOVEDIR);
}

/* "max" is what cgroupfs calls no bound. */
static int write_bound(int dir_fd, const char *file, uint64_t value, const char *rest) {
        char text[64];

        if (value == UINT64_MAX)
                (void) snprintf(text, sizeof(text), "max%s", rest);
        else
                (void) snprintf(text, sizeof(text), "%" PRIu64 "%s", value, rest);
        return write_file_at(dir_fd, file, text);
}

static int set_cpu(int dir_fd, const Limits *old, const Limits *limits) {
        int r = 0;

        if (limits->cpus != old->cpus)
                r = write_bound(dir_fd, "cpu.max",
                                isinf(limits->cpus) ? UINT64_MAX : (uint64_t) (limits->cpus * CPU_PERIOD_USEC),
                                CPU_PERIOD_TEXT);
        if (r >= 0 && limits->cpu_weight != old->cpu_weight)
                r = write_bound(dir_fd, "cpu.weight", limits->cpu_weight, "");
        return r;
}

static int set_memory(int dir_fd, const Limits *old, const Limits *limits) {
        int r;

        if (limits->memory_mb == old->memory_mb)
                return 0;

        r = write_bound(dir_fd, "memory.max", limits->memory_mb == UINT64_MAX ? UINT64_MAX : limits->memory_mb * MIB,
                        "");
        if (r < 0)
                return r;
        /* These files are missing on some kernels. A session at its limit must not thrash; and of its processes
         * the kernel shall kill the largest, not all: the agent lives on and tells. */
        (void) write_file_at(dir_fd, "memory.swap.max", "0");
        (void) write_file_at(dir_fd, "memory.oom.group", "0");
        return 0;
}

/* Each of the two files is there when the kernel has that way to share disks; a disk that uses neither is shared
 * evenly. BFQ's weights end at 1000: mapped as systemd does, so that 100 stays 100. */
static void set_io_weight(int dir_fd, uint64_t weight) {
        uint64_t bfq = weight <= LIMITS_WEIGHT_DEFAULT ? weight : LIMITS_WEIGHT_DEFAULT +
                       (weight - LIMITS_WEIGHT_DEFAULT) * (BFQ_WEIGHT_MAX - LIMITS_WEIGHT_DEFAULT) /
                               (LIMITS_WEIGHT_CEILING - LIMITS_WEIGHT_DEFAULT);

        (void) write_bound(dir_fd, "io.weight", weight, "");
        (void) write_bound(dir_fd, "io.bfq.weight", bfq, "");
}

static int set_io(int dir_fd, const Limits *old, const Limits *limits) {
        if (limits->io_weight != old->io_weight)
                set_io_weight(dir_fd, limits->io_weight);
        if (limits->io_read_mbps == old->io_read_mbps && limits->io_write_mbps == old->io_write_mbps)
                return 0;
        return MIN(cgroup_io_set_bounds(dir_fd, limits->io_read_mbps, limits->io_write_mbps), 0);
}

int cgroup_v2_set_limits(int dir_fd, unsigned controllers, const Limits *old, const Limits *limits) {
        int r = 0;

        old = old ?: &limits_unbounded; /* what the kernel gives a new group */
        if (controllers & CGROUP_CPU)
                r = set_cpu(dir_fd, old, limits);
        if (r >= 0 && controllers & CGROUP_MEMORY)
                r = set_memory(dir_fd, old, limits);
        if (r >= 0 && controllers & CGROUP_PIDS && limits->processes != old->processes)
                r = write_bound(dir_fd, "pids.max", limits->processes, "");
        if (r >= 0 && controllers & CGROUP_IO)
                r = set_io(dir_fd, old, limits);
        return r;
}
