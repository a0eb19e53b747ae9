/* SPDX-License-Identifier: MIT */

/* The paths are bound by descriptors, and flags are set for the whole tree at once: four system calls a path. */

#include "agent/store-view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "lib/log.h"

/* More than sandboxd puts into one: 20000 names of at most 255 bytes. */
#define LIST_SIZE_MAX (6 * MIB)

static int write_map(const char *path, unsigned id) {
        char line[40];

        (void) snprintf(line, sizeof(line), "%u %u 1", id, id);
        return write_file_at(AT_FDCWD, path, line);
}

/* In the new namespaces the user stays who he is. */
static int enter_namespaces(void) {
        unsigned uid = getuid(), gid = getgid();
        int r;

        /* What is not dumpable has a /proc/self that is root's, and the agent's file need not be readable. */
        (void) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return log_error_errno(errno, "Cannot make a user namespace: %m");

        r = write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny");
        if (r >= 0)
                r = write_map("/proc/self/uid_map", uid);
        if (r >= 0)
                r = write_map("/proc/self/gid_map", gid);
        return r < 0 ? log_error_errno(r, "Cannot set up the user namespace: %m") : 0;
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

/* What is mounted below comes along, since it may not be uncovered here. */
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

static int show_paths(int store, const char *list, size_t size) {
        _cleanup_close_ int view = -EBADF;

        view = open(list, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (view < 0)
                return log_error_errno(errno, "Cannot open the view of the store %s: %m", list);

        for (const char *name = list + strlen(list) + 1; name < list + size; name += strlen(name) + 1) {
                int r;

                r = show_path(store, view, name);
                if (r < 0)
                        return log_error_errno(r, "Cannot show the store path %s/%s: %m", list, name);
        }
        return 0;
}

static int cover_store(const char *list, size_t size) {
        struct mount_attr flags = {
                .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        };
        _cleanup_close_ int store = -EBADF;
        int r;

        store = open(list, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (store < 0)
                return log_error_errno(errno, "Cannot open the store %s: %m", list);
        if (mount("store", list, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
                return log_error_errno(errno, "Cannot cover the store %s: %m", list);

        r = show_paths(store, list, size);
        if (r < 0)
                return r;
        if (mount_setattr(AT_FDCWD, list, AT_RECURSIVE, &flags, sizeof(flags)) < 0)
                return log_error_errno(errno, "Cannot make the view of the store %s read-only: %m", list);
        return 0;
}

int store_view_make(int list_fd) {
        _cleanup_free_ char *list = NULL;
        size_t size;
        int r;

        r = read_to_end(list_fd, LIST_SIZE_MAX, &list, &size);
        if (r >= 0 && (size == 0 || list[size - 1] != '\0'))
                r = -EBADMSG;
        if (r < 0)
                return log_error_errno(r, "Cannot read the list of store paths: %m");

        r = enter_namespaces();
        return r < 0 ? r : cover_store(list, size);
}
