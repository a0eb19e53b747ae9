/* SPDX-License-Identifier: MIT */

/*
 * Finds out what this machine and this daemon's rights allow: which hierarchy has which controller, and
 * where groups can be made. Nothing that is missing is an error; each lack takes a feature away and adds a
 * sentence to the reason, which "sandboxctl doctor" shows. The base group belongs to the tree.
 */

#include "daemon/cgroup-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/cgroup-place.h"
#include "daemon/cgroup-sweep.h"
#include "daemon/cgroup-v2.h"
#include "lib/fd-util.h"
#include "lib/log.h"
#include "lib/text.h"

#define PROC_TEXT_MAX MIB
#define SWEEP_USEC (2 * USEC_PER_SEC)

static const char *const layout_table[_CGROUP_LAYOUT_MAX] = {
        [CGROUP_LAYOUT_NONE] = "none",
        [CGROUP_LAYOUT_HYBRID] = "hybrid",
        [CGROUP_LAYOUT_V2] = "v2",
};

/* The file without which a controller cannot do what we want of it; in every group but the root. */
static const struct {
        unsigned feature;
        const char *v1_file;
} controller_table[_CGROUP_CONTROLLER_MAX] = {
        [CGROUP_CONTROLLER_CPU] = { CGROUP_CPU, "cpu.cfs_quota_us" },
        [CGROUP_CONTROLLER_MEMORY] = { CGROUP_MEMORY, "memory.limit_in_bytes" },
        [CGROUP_CONTROLLER_PIDS] = { CGROUP_PIDS, "pids.max" },
};

const char *cgroup_layout_to_string(CgroupLayout l) {
        return l >= 0 && l < _CGROUP_LAYOUT_MAX ? layout_table[l] : NULL;
}

unsigned cgroup_controller_feature(CgroupController c) {
        return controller_table[c].feature;
}

CgroupLayout cgroup_tree_layout(const CgroupTree *t) {
        return t->layout;
}

unsigned cgroup_tree_features(const CgroupTree *t) {
        return t->features;
}

bool cgroup_tree_has(const CgroupTree *t, unsigned features) {
        return (t->features & features) == features;
}

const char *cgroup_tree_reason(const CgroupTree *t) {
        return t->reason ?: "";
}

void cgroup_tree_set_user_limits(CgroupTree *t, const Limits *limits) {
        t->user_limits = *limits;
}

/* Adds a sentence to the reason. */
static int add_reason(CgroupTree *t, const char *format, ...) _printf_(2, 3);
static int add_reason(CgroupTree *t, const char *format, ...) {
        _cleanup_free_ char *sentence = NULL;
        char *reason;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&sentence, format, ap);
        va_end(ap);
        if (r < 0) {
                sentence = NULL;
                return -ENOMEM;
        }
        if (asprintf(&reason, "%s%s%s.", cgroup_tree_reason(t), t->reason ? " " : "", sentence) < 0)
                return -ENOMEM;

        free(t->reason);
        t->reason = reason;
        return 0;
}

static int format_path(char **ret, const char *format, ...) _printf_(2, 3);
static int format_path(char **ret, const char *format, ...) {
        va_list ap;
        char *path;
        int r;

        va_start(ap, format);
        r = vasprintf(&path, format, ap);
        va_end(ap);
        if (r < 0)
                return -ENOMEM;

        free(*ret);
        *ret = path;
        return 0;
}

/* Paths in /proc/self/cgroup start with a slash, and the root is just that. */
static const char *trim_root(const char *own) {
        return streq(own, "/") ? "" : own;
}

static int make_v2_base(CgroupTree *t, const char *parent) {
        _cleanup_free_ char *base = NULL;
        int r;

        r = format_path(&base, "%s/%s", parent, t->name);
        if (r < 0)
                return r;

        cgroup_sweep_kill(base, t->spare, SWEEP_USEC);
        cgroup_sweep_remove(base);
        if (mkdir(base, 0755) < 0 && errno != EEXIST)
                return add_reason(t, "No group can be made in %s: %s", parent, strerror(errno));

        t->base = TAKE_PTR(base);
        t->layout = CGROUP_LAYOUT_V2;
        return 0;
}

static bool file_exists(const char *directory, const char *file) {
        _cleanup_close_ int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

        return fd >= 0 && faccessat(fd, file, F_OK, 0) >= 0;
}

static int note_core_features(CgroupTree *t) {
        if (file_exists(t->base, "cgroup.kill"))
                t->features |= CGROUP_KILL;
        if (!file_exists(t->base, "cgroup.freeze"))
                return add_reason(t, "This kernel cannot freeze groups of the v2 hierarchy");

        t->features |= CGROUP_FREEZE;
        return 0;
}

/* The v2 hierarchy's own controllers must be passed on twice: by the parent, and by the base. */
static int enable_controllers(CgroupTree *t, const char *parent) {
        _cleanup_close_ int parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_close_ int base_fd = open(t->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        unsigned wanted;

        if (parent_fd < 0 || base_fd < 0)
                return -errno;

        wanted = cgroup_v2_controllers(parent_fd);
        t->v2_controllers = cgroup_v2_enable(base_fd, cgroup_v2_enable(parent_fd, wanted));
        t->features |= t->v2_controllers;
        if (t->v2_controllers != wanted)
                return add_reason(t, "Some controllers could not be turned on in %s", parent);

        return 0;
}

static int setup_v2(CgroupTree *t, const char *unified, const char *self_cgroup) {
        _cleanup_free_ char *own = NULL, *directory = NULL, *parent = NULL;
        int r, kind;

        if (!unified || cgroup_own_path(self_cgroup, /* controller= */ NULL, &own) < 0)
                return add_reason(t, "No cgroup v2 hierarchy is mounted");
        r = format_path(&directory, "%s%s", unified, trim_root(own));
        if (r < 0)
                return r;

        kind = cgroup_v2_find_parent(directory, CGROUP_V2_CONTROLLERS, &parent);
        if (kind == -ENOMEM)
                return kind;
        if (kind < 0)
                return add_reason(t, "The own group %s cannot be used: %s", directory, strerror(-kind));
        if (kind == CGROUP_PARENT_MOVED) {
                t->left = strdup(parent);
                if (!t->left)
                        return -ENOMEM;
        }

        r = make_v2_base(t, parent);
        if (r < 0 || !t->base)
                return r;
        r = note_core_features(t);
        if (r < 0)
                return r;
        if (kind == CGROUP_PARENT_SHARED)
                return add_reason(t, "Other processes are in %s, so groups below it get no controllers",
                                  parent);

        return enable_controllers(t, parent);
}

/* Adds a controller that is in a v1 hierarchy, if a group can be made there. */
static int setup_v1(CgroupTree *t, CgroupController c, const char *unified, const char *self_cgroup) {
        _cleanup_free_ char *mount = NULL, *own = NULL, *base = NULL, *group = NULL;
        const char *name = cgroup_controller_to_string(c);
        int r;

        if (cgroup_v1_mount(c, unified, &mount) < 0 || cgroup_own_path(self_cgroup, name, &own) < 0)
                return add_reason(t, "There is no %s controller", name);

        r = format_path(&group, "%s%s%s", own + 1, own[1] ? "/" : "", t->name);
        if (r >= 0)
                r = format_path(&base, "%s/%s", mount, group);
        if (r < 0)
                return r;

        cgroup_sweep_remove(base);
        r = cgroup_v1_create(c, group, /* limits= */ NULL);
        if (r >= 0 && !file_exists(base, controller_table[c].v1_file))
                r = -ENOENT;
        if (r < 0) {
                cgroup_sweep_remove(base);
                return r == -ENOMEM ? r : add_reason(t, "The %s controller cannot be used in %s: %s", name,
                                                     mount, strerror(-r));
        }

        t->v1[c].base = TAKE_PTR(base);
        t->v1[c].group = TAKE_PTR(group);
        t->features |= controller_table[c].feature;
        t->layout = CGROUP_LAYOUT_HYBRID;
        return 0;
}

int cgroup_tree_new_at(const char *name, const char *const *spare, const char *unified, const char *self_cgroup,
                       CgroupTree **ret) {
        _cleanup_(cgroup_tree_freep) CgroupTree *t = NULL;
        int r;

        if (!name_is_valid(name))
                return -EINVAL;
        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->user_limits = limits_unbounded;
        t->name = strdup(name);
        if (!t->name)
                return -ENOMEM;

        t->spare = spare;
        r = setup_v2(t, unified, self_cgroup);
        t->spare = NULL;
        if (r < 0)
                return r;
        /* Without the v2 hierarchy there is neither freezing nor a way to be told of a group's end. */
        for (CgroupController c = 0; t->base && c < _CGROUP_CONTROLLER_MAX; c++) {
                if (cgroup_tree_has(t, controller_table[c].feature))
                        continue;
                r = setup_v1(t, c, unified, self_cgroup);
                if (r < 0)
                        return r;
        }

        *ret = TAKE_PTR(t);
        return 0;
}

/* systemd before 254 starts a service anew in the service's own group, which must not have sessions below it
 * then. So they are below another unit's group there, named by the environment (units/before-254), and we are
 * beside them as we would be in its "supervisor". */
static int add_other_place(char **self_cgroup) {
        const char *place = getenv("NIX_SANDBOX_CGROUP");
        char *text;

        if (!place || place[0] != '/' || strchr(place, '\n'))
                return 0;
        if (asprintf(&text, "0::%s/supervisor\n%s", place, *self_cgroup ?: "") < 0)
                return -ENOMEM;

        free(*self_cgroup);
        *self_cgroup = text;
        return 0;
}

int cgroup_tree_new(const char *name, const char *const *spare, CgroupTree **ret) {
        _cleanup_free_ char *mountinfo = NULL, *self_cgroup = NULL, *unified = NULL;
        int r;

        /* Where /proc is masked there is nothing to find. */
        r = read_file_at(AT_FDCWD, "/proc/self/mountinfo", PROC_TEXT_MAX, &mountinfo, /* ret_size= */ NULL);
        if (r >= 0)
                r = read_file_at(AT_FDCWD, "/proc/self/cgroup", PROC_TEXT_MAX, &self_cgroup, NULL);
        if (r < 0)
                (void) log_debug_errno(r, "Failed to read the own control group, going on without: %m");
        else if (cgroup_unified_mount(mountinfo, &unified) == -ENOMEM)
                return -ENOMEM;

        r = add_other_place(&self_cgroup);
        if (r < 0)
                return r;
        return cgroup_tree_new_at(name, spare, unified, self_cgroup ?: "", ret);
}

CgroupTree *cgroup_tree_free(CgroupTree *t) {
        if (!t)
                return NULL;

        if (t->base)
                cgroup_sweep_remove(t->base);
        for (CgroupController c = 0; c < _CGROUP_CONTROLLER_MAX; c++) {
                if (t->v1[c].base)
                        cgroup_sweep_remove(t->v1[c].base);
                free(t->v1[c].base);
                free(t->v1[c].group);
        }
        if (t->left)
                cgroup_v2_leave_supervisor(t->left);

        free(t->left);
        free(t->base);
        free(t->reason);
        free(t->name);
        return mfree(t);
}
