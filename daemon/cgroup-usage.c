/* SPDX-License-Identifier: MIT */

/* What the kernel says of a leaf: through descriptors that stay open where it is asked often. */

#include "daemon/cgroup-private.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/cgroup-place.h"
#include "lib/fd-util.h"

static int read_text_fd(int fd, char *text, size_t size) {
        ssize_t n = pread(fd, text, size - 1, 0);

        if (n < 0)
                return -errno;
        text[n] = '\0';
        return 0;
}

/* The value of a key in a small cgroupfs file, through a descriptor that stays open. 0 without the file. */
static int read_value_fd(int fd, const char *key, uint64_t *ret) {
        char text[1024];
        int r;

        if (fd < 0) {
                *ret = 0;
                return 0;
        }

        r = read_text_fd(fd, text, sizeof(text));
        return r < 0 ? r : cgroup_parse_value(text, key, ret);
}

/* The same through the name of the file. */
static int read_value_at(int dir_fd, const char *file, const char *key, uint64_t *ret) {
        _cleanup_close_ int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -errno : read_value_fd(fd, key, ret);
}

static int read_event(Cgroup *g, const char *key) {
        uint64_t value;
        int r;

        r = read_value_fd(g->events_fd, key, &value);
        return r < 0 ? r : value != 0;
}

int cgroup_is_frozen(Cgroup *g) {
        return cgroup_tree_has(g->tree, CGROUP_FREEZE) ? read_event(g, "frozen") : 0;
}

int cgroup_is_populated(Cgroup *g) {
        return read_event(g, "populated");
}

int cgroup_wants_frozen(Cgroup *g) {
        uint64_t value;
        int r;

        r = read_value_fd(g->freeze_fd, NULL, &value);
        return r < 0 ? r : value != 0;
}

static int read_oom(Cgroup *g, CgroupCounters *ret) {
        char text[1024];
        int r;

        ret->oom_kills = ret->oom_hits = 0;
        if (g->oom_fd < 0)
                return 0;

        r = read_text_fd(g->oom_fd, text, sizeof(text));
        if (r >= 0)
                r = cgroup_parse_value(text, "oom_kill", &ret->oom_kills);
        if (r < 0)
                return r;
        /* v1: the file has under_oom, which is something else. */
        if (cgroup_parse_value(text, "oom", &ret->oom_hits) < 0)
                ret->oom_hits = ret->oom_kills;
        return 0;
}

int cgroup_read_counters(Cgroup *g, CgroupCounters *ret) {
        CgroupCounters c;
        int r;

        r = read_oom(g, &c);
        if (r >= 0)
                r = read_value_fd(g->pids_fd, "max", &c.process_hits);
        if (r < 0)
                return r;

        *ret = c;
        return 0;
}

int cgroup_read_usage(Cgroup *g, CgroupUsage *ret) {
        CgroupUsage u = {};
        int r;

        r = read_value_fd(g->cpu_usage_fd, "usage_usec", &u.cpu_usec);
        if (r >= 0)
                r = read_value_fd(g->memory_usage_fd, NULL, &u.memory_bytes);
        if (r >= 0)
                r = read_value_fd(g->pids_usage_fd, NULL, &u.processes);
        if (r < 0)
                return r;

        *ret = u;
        return 0;
}

int cgroup_count_processes(Cgroup *g, size_t *ret) {
        _cleanup_close_ int fd = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *procs = NULL;
        size_t n = 0;
        int r;

        if (fd < 0)
                return -errno;
        r = read_file_at(fd, "cgroup.procs", MIB, &procs, /* ret_size= */ NULL);
        if (r < 0)
                return r;

        for (const char *p = strchr(procs, '\n'); p; p = strchr(p + 1, '\n'))
                n++;
        *ret = n;
        return 0;
}

/* ---- details ---- */

int cgroup_read_throttled(Cgroup *g, uint64_t *ret_usec) {
        _cleanup_close_ int fd = -EBADF;
        uint64_t nsec;
        int r;

        if (!cgroup_tree_has(g->tree, CGROUP_CPU))
                return -EOPNOTSUPP;
        if (!g->tree->v1[CGROUP_CONTROLLER_CPU].base)
                return read_value_fd(g->cpu_usage_fd, "throttled_usec", ret_usec);

        fd = cgroup_open_controller(g, CGROUP_CONTROLLER_CPU);
        r = fd < 0 ? fd : read_value_at(fd, "cpu.stat", "throttled_time", &nsec);
        if (r < 0)
                return r;
        *ret_usec = nsec / 1000;
        return 0;
}

static int read_memory_peak(Cgroup *g, uint64_t *ret) {
        bool v1 = g->tree->v1[CGROUP_CONTROLLER_MEMORY].base;
        _cleanup_close_ int fd = cgroup_open_controller(g, CGROUP_CONTROLLER_MEMORY);

        return fd < 0 ? fd : read_value_at(fd, v1 ? "memory.max_usage_in_bytes" : "memory.peak", NULL, ret);
}

/* Sums one key over the lines of io.stat: "254:0 rbytes=1 wbytes=2 rios=3 …". */
static uint64_t sum_io(const char *stat, const char *key) {
        uint64_t sum = 0;

        for (const char *p = strstr(stat, key); p; p = strstr(p + 1, key))
                sum += strtoull(p + strlen(key), NULL, 10);
        return sum;
}

static int read_io(Cgroup *g, CgroupDetails *ret) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *stat = NULL;
        int r;

        if (!cgroup_tree_has(g->tree, CGROUP_IO))
                return -EOPNOTSUPP;
        fd = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = read_file_at(fd, "io.stat", 64 * KIB, &stat, /* ret_size= */ NULL);
        if (r < 0)
                return r;

        ret->io_read_bytes = sum_io(stat, " rbytes=");
        ret->io_write_bytes = sum_io(stat, " wbytes=");
        return 0;
}

unsigned cgroup_read_details(Cgroup *g, CgroupDetails *ret) {
        unsigned known = 0;

        *ret = (CgroupDetails){};
        if (cgroup_read_throttled(g, &ret->throttled_usec) >= 0)
                known |= CGROUP_CPU;
        if (read_memory_peak(g, &ret->memory_peak_bytes) >= 0)
                known |= CGROUP_MEMORY;
        if (read_io(g, ret) >= 0)
                known |= CGROUP_IO;
        return known;
}
