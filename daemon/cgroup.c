/* SPDX-License-Identifier: MIT */

/*
 * The object a session's limits hang on. A leaf is one group in the v2 hierarchy, which can freeze, kill and
 * tell of its end, and one more for each controller that the machine still has in a v1 hierarchy; processes
 * join all of them. What is asked on every turn (freeze, counters), or of a thousand sessions at once (usage),
 * is done on descriptors that are kept open, seven a session; the rest opens what it needs. CgroupTree
 * (cgroup-tree.c) knows where the leaves go.
 */

#include "daemon/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/cgroup-private.h"
#include "daemon/cgroup-sweep.h"
#include "daemon/cgroup-v2.h"
#include "lib/fd-util.h"
#include "lib/text.h"

/* One pass can miss a child of a process that was killed after its fork. */
#define KILL_PASSES_MAX 16U
/* At the start of a daemon, for one leaf. */
#define SWEEP_USEC (2 * USEC_PER_SEC)

static int open_directory(const char *path) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

int cgroup_open_controller(const Cgroup *g, CgroupController c) {
        _cleanup_free_ char *path = NULL;
        const char *base = g->tree->v1[c].base;

        if (!cgroup_tree_has(g->tree, cgroup_controller_feature(c)))
                return -EOPNOTSUPP;
        if (!base)
                return open_directory(g->path);
        if (asprintf(&path, "%s/%s", base, g->name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return open_directory(path);
}

static int open_at(int dir_fd, const char *file, int flags, int *ret) {
        int fd = openat(dir_fd, file, flags | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret = fd;
        return 0;
}

/* The node of the user: made by its first session, removed after its last. */
static int make_user_group(CgroupTree *t, uid_t uid) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (asprintf(&path, "%s/u%u", t->base, uid) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (mkdir(path, 0755) < 0)
                return errno == EEXIST ? 0 : -errno;

        fd = open_directory(path);
        r = fd < 0 ? fd : cgroup_v2_set_limits(fd, t->v2_controllers, /* old= */ NULL, &t->user_limits);
        if (r >= 0 && cgroup_v2_enable(fd, t->v2_controllers) != t->v2_controllers)
                r = -EIO;
        if (r < 0)
                (void) rmdir(path); /* or the next session would find it there, without limits */
        return r;
}

static int open_v2_files(Cgroup *g, int fd) {
        int r;

        r = open_at(fd, "cgroup.events", O_RDONLY, &g->events_fd);
        if (r >= 0)
                /* The v2 hierarchy accounts time in every group, with the controller or without. */
                r = open_at(fd, "cpu.stat", O_RDONLY, &g->cpu_usage_fd);
        if (r >= 0 && cgroup_tree_has(g->tree, CGROUP_FREEZE))
                r = open_at(fd, "cgroup.freeze", O_RDWR, &g->freeze_fd);
        return r;
}

static int make_v2_leaf(Cgroup *g, uid_t uid, const Limits *limits) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        r = make_user_group(g->tree, uid);
        if (r < 0)
                return r;
        if (mkdir(g->path, 0755) < 0)
                return -errno;
        g->made = true;

        fd = open_directory(g->path);
        if (fd < 0)
                return fd;
        r = cgroup_v2_set_limits(fd, g->tree->v2_controllers, /* old= */ NULL, limits);
        if (r < 0 && r != -ENODEV) /* without a device that takes a bound, the doctor says so */
                return r;

        r = open_v2_files(g, fd);
        if (r >= 0)
                r = open_at(fd, "cgroup.procs", O_WRONLY, &g->join_fds[g->n_join_fds]);
        if (r >= 0)
                g->n_join_fds++;
        return r;
}

static int make_v1_user_group(CgroupTree *t, CgroupController c, uid_t uid) {
        _cleanup_free_ char *group = NULL;

        if (asprintf(&group, "%s/u%u", t->v1[c].group, uid) < 0) {
                group = NULL;
                return -ENOMEM;
        }
        return cgroup_v1_create(c, group, &t->user_limits);
}

int cgroup_v1_group(const Cgroup *g, CgroupController c, char **ret) {
        if (asprintf(ret, "%s/%s", g->tree->v1[c].group, g->name) < 0) {
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

Limits cgroup_v1_limits(const Cgroup *g, const Limits *limits) {
        Limits l = *limits;

        l.cpus = MIN(l.cpus, g->tree->user_limits.cpus);
        return l;
}

static int make_v1_leaf(Cgroup *g, CgroupController c, const Limits *limits) {
        const Limits own = cgroup_v1_limits(g, limits);
        _cleanup_free_ char *group = NULL;
        _cleanup_close_ int fd = -EBADF;
        int r;

        r = make_v1_user_group(g->tree, c, g->uid);
        if (r >= 0)
                r = cgroup_v1_group(g, c, &group);
        if (r >= 0)
                r = cgroup_v1_create(c, group, &own);
        if (r < 0)
                return r;

        fd = cgroup_open_controller(g, c);
        if (fd < 0)
                return fd;
        r = open_at(fd, "cgroup.procs", O_WRONLY, &g->join_fds[g->n_join_fds]);
        if (r >= 0)
                g->n_join_fds++;
        return r;
}

/* Those of a kernel too old to have one are left out, and read as 0. */
static void open_counters(Cgroup *g) {
        _cleanup_close_ int memory = cgroup_open_controller(g, CGROUP_CONTROLLER_MEMORY);
        _cleanup_close_ int pids = cgroup_open_controller(g, CGROUP_CONTROLLER_PIDS);
        bool v1 = g->tree->v1[CGROUP_CONTROLLER_MEMORY].base;

        if (memory >= 0) {
                (void) open_at(memory, v1 ? "memory.oom_control" : "memory.events", O_RDONLY, &g->oom_fd);
                (void) open_at(memory, v1 ? "memory.usage_in_bytes" : "memory.current", O_RDONLY,
                               &g->memory_usage_fd);
        }
        if (pids >= 0) {
                (void) open_at(pids, "pids.events", O_RDONLY, &g->pids_fd);
                (void) open_at(pids, "pids.current", O_RDONLY, &g->pids_usage_fd);
        }
}

static int make_leaf(Cgroup *g, uid_t uid, const Limits *limits) {
        int r;

        r = make_v2_leaf(g, uid, limits);
        for (CgroupController c = 0; r >= 0 && c < _CGROUP_CONTROLLER_MAX; c++)
                if (g->tree->v1[c].base)
                        r = make_v1_leaf(g, c, limits);
        if (r >= 0)
                open_counters(g);

        return r;
}

/* One without any group. */
static int cgroup_alloc(CgroupTree *t, uid_t uid, const char *id, Cgroup **ret) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;

        if (t->layout == CGROUP_LAYOUT_NONE)
                return -EOPNOTSUPP;
        if (!name_is_valid(id))
                return -EINVAL;

        g = malloc(sizeof(*g));
        if (!g)
                return -ENOMEM;
        *g = (Cgroup) {
                .tree = t,
                .uid = uid,
                .events_fd = -EBADF,
                .freeze_fd = -EBADF,
                .oom_fd = -EBADF,
                .pids_fd = -EBADF,
                .cpu_usage_fd = -EBADF,
                .memory_usage_fd = -EBADF,
                .pids_usage_fd = -EBADF,
        };
        if (asprintf(&g->name, "u%u/%s", uid, id) < 0) {
                g->name = NULL;
                return -ENOMEM;
        }
        if (asprintf(&g->path, "%s/%s", t->base, g->name) < 0) {
                g->path = NULL;
                return -ENOMEM;
        }

        *ret = TAKE_PTR(g);
        return 0;
}

int cgroup_new(CgroupTree *t, uid_t uid, const char *id, const Limits *limits, Cgroup **ret) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        int r;

        r = cgroup_alloc(t, uid, id, &g);
        if (r >= 0)
                r = make_leaf(g, uid, limits);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(g);
        return 0;
}

int cgroup_open(CgroupTree *t, uid_t uid, const char *id, Cgroup **ret) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        _cleanup_close_ int fd = -EBADF;
        int r;

        r = cgroup_alloc(t, uid, id, &g);
        if (r < 0)
                return r;
        fd = open_directory(g->path);
        if (fd < 0)
                return fd;

        g->made = true;
        r = open_v2_files(g, fd);
        if (r < 0)
                return r;
        open_counters(g);

        *ret = TAKE_PTR(g);
        return 0;
}

void cgroup_sweep_leaf(CgroupTree *t, uid_t uid, const char *id) {
        Cgroup *g;

        if (cgroup_open(t, uid, id, &g) < 0)
                return;
        cgroup_sweep_kill(g->path, /* spare= */ NULL, SWEEP_USEC);
        (void) cgroup_release(g);
}

void cgroup_join_done(Cgroup *g) {
        for (; g->n_join_fds > 0; g->n_join_fds--)
                (void) safe_close(g->join_fds[g->n_join_fds - 1]);
}

Cgroup *cgroup_release(Cgroup *g) {
        if (!g)
                return NULL;

        (void) cgroup_remove(g);
        cgroup_join_done(g);
        (void) safe_close(g->events_fd);
        (void) safe_close(g->freeze_fd);
        (void) safe_close(g->oom_fd);
        (void) safe_close(g->pids_fd);
        (void) safe_close(g->cpu_usage_fd);
        (void) safe_close(g->memory_usage_fd);
        (void) safe_close(g->pids_usage_fd);
        free(g->path);
        free(g->name);
        return mfree(g);
}

const char *cgroup_path(const Cgroup *g) {
        return g->path;
}

size_t cgroup_join_fds(const Cgroup *g, const int **ret) {
        *ret = g->join_fds;
        return g->n_join_fds;
}

int cgroup_freeze(Cgroup *g, bool freeze) {
        if (g->freeze_fd < 0)
                return -EOPNOTSUPP;
        return pwrite(g->freeze_fd, freeze ? "1" : "0", 1, 0) < 0 ? -errno : 0;
}

int cgroup_kill(Cgroup *g) {
        _cleanup_close_ int fd = open_directory(g->path);
        int r;

        if (fd < 0)
                return fd;
        if (cgroup_tree_has(g->tree, CGROUP_KILL))
                return write_file_at(fd, "cgroup.kill", "1");

        for (unsigned i = 0; i < KILL_PASSES_MAX; i++) {
                r = cgroup_kill_processes(fd);
                if (r < 0)
                        return r == -ENOENT ? 0 : r;
        }
        return 0;
}

/* Fails, as it should, while another session of the user is there. */
static void remove_user_group(Cgroup *g) {
        char *slash = strrchr(g->path, '/');

        *slash = '\0';
        (void) rmdir(g->path);
        *slash = '/';
        for (CgroupController c = 0; c < _CGROUP_CONTROLLER_MAX; c++)
                if (g->tree->v1[c].base) {
                        _cleanup_free_ char *group = NULL;

                        if (asprintf(&group, "%s/u%u", g->tree->v1[c].group, g->uid) >= 0)
                                (void) cgroup_v1_delete(c, group);
                }
}

int cgroup_remove(Cgroup *g) {
        int r;

        if (!g->made)
                return 0;

        if (rmdir(g->path) < 0 && errno != ENOENT)
                return -errno;
        for (CgroupController c = 0; c < _CGROUP_CONTROLLER_MAX; c++) {
                _cleanup_free_ char *group = NULL;

                if (!g->tree->v1[c].base)
                        continue;
                r = cgroup_v1_group(g, c, &group);
                if (r >= 0)
                        r = cgroup_v1_delete(c, group);
                if (r < 0)
                        return r;
        }

        g->made = false;
        remove_user_group(g);
        return 0;
}
