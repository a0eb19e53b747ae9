/* SPDX-License-Identifier: MIT */

/*
 * Mounting. The paths are bound by descriptors, and their flags are set for the whole tree at once, so a path costs
 * four system calls. bubblewrap finds the flags set that it wants and changes nothing.
 */

#include "closure/view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "closure/devices.h"
#include "lib/fd-util.h"
#include "lib/jail-place.h"

int view_fail(int error, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) fputs("sandbox-closure: cannot ", stderr);
        (void) vfprintf(stderr, format, ap);
        (void) fprintf(stderr, ": %s\n", strerror(error));
        va_end(ap);
        return -error;
}

static int write_map(const char *path, unsigned id) {
        char line[40];

        (void) snprintf(line, sizeof(line), "%u %u 1", id, id);
        return write_file_at(AT_FDCWD, path, line);
}

/* In the new namespaces the user stays who he is, with all capabilities until the next program is executed. */
static int enter_namespaces(void) {
        unsigned uid = getuid(), gid = getgid();
        int r;

        /* What is not dumpable has a /proc/self that is root's. */
        (void) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return view_fail(errno, "make a user namespace");

        r = write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny");
        if (r >= 0)
                r = write_map("/proc/self/uid_map", uid);
        if (r >= 0)
                r = write_map("/proc/self/gid_map", gid);
        return r < 0 ? view_fail(-r, "set up the user namespace") : 0;
}

static int copy_symlink(int fd, int view, const char *name) {
        char target[PATH_MAX];
        ssize_t n;

        n = readlinkat(fd, "", target, sizeof(target));
        if (n < 0)
                return -errno;
        if ((size_t) n == sizeof(target))
                return -ENAMETOOLONG;
        target[n] = '\0';
        return symlinkat(target, view, name) < 0 ? -errno : 0;
}

/* A mount needs something of its kind below. */
static int make_mount_point(int view, const char *name, mode_t mode) {
        _cleanup_close_ int fd = -EBADF;

        if (S_ISDIR(mode))
                return mkdirat(view, name, 0755) < 0 ? -errno : 0;
        if (!S_ISREG(mode))
                return -EMEDIUMTYPE;
        fd = openat(view, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        return fd < 0 ? -errno : 0;
}

/* What is mounted below comes along: in a user namespace nobody may uncover what that hides. */
static int show_path(int store, int view, const char *name) {
        _cleanup_close_ int fd = -EBADF, tree = -EBADF;
        struct stat st;
        int r;

        fd = openat(store, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (S_ISLNK(st.st_mode))
                return copy_symlink(fd, view, name);
        r = make_mount_point(view, name, st.st_mode);
        if (r < 0)
                return r;

        tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
        if (tree < 0 || move_mount(tree, "", view, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return -errno;
        return 0;
}

static int show_paths(const char *list, size_t size) {
        _cleanup_close_ int store = -EBADF, view = -EBADF;

        store = open(list, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (store < 0)
                return view_fail(errno, "open the store %s", list);
        if (mkdir(JAIL_PLACE_STORE, 0755) < 0)
                return view_fail(errno, "make " JAIL_PLACE_STORE);
        view = open(JAIL_PLACE_STORE, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (view < 0)
                return view_fail(errno, "open " JAIL_PLACE_STORE);

        for (const char *name = list + strlen(list) + 1; name < list + size; name += strlen(name) + 1) {
                int r;

                r = show_path(store, view, name);
                if (r < 0)
                        return view_fail(-r, "show the store path %s/%s", list, name);
        }
        return 0;
}

/* The project is attached last: its own flags stay, as it may be written to. */
int view_make(const char *list, size_t size, bool has_project) {
        struct mount_attr flags = {
                .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        };
        _cleanup_close_ int project = -EBADF;
        int r;

        if (size == 0 || list[size - 1] != '\0')
                return view_fail(EINVAL, "read the list");
        r = enter_namespaces();
        if (r < 0)
                return r;

        if (has_project) {
                project = open_tree(AT_FDCWD, JAIL_PLACE, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
                if (project < 0)
                        return view_fail(errno, "take the project over");
        }
        if (mount("closure", JAIL_PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
                return view_fail(errno, "mount a tmpfs in the user namespace");
        if (has_project && mkdir(JAIL_PLACE_PROJECT, 0755) < 0)
                return view_fail(errno, "make " JAIL_PLACE_PROJECT);
        r = devices_prepare();
        if (r >= 0)
                r = show_paths(list, size);
        if (r < 0)
                return r;

        if (mount_setattr(AT_FDCWD, JAIL_PLACE, AT_RECURSIVE, &flags, sizeof(flags)) < 0)
                return view_fail(errno, "make the view of the store read-only");
        r = devices_show();
        if (r < 0)
                return r;
        if (has_project && move_mount(project, "", AT_FDCWD, JAIL_PLACE_PROJECT, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return view_fail(errno, "show the project");
        return 0;
}
