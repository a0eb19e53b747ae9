/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "snapshot/directory.h"

TestSuite(snapshot_directory, .timeout = 30);

#define ID "20261128T090723-3ebe55fe"
#define KEY "0123456789abcdef0123456789abcdef"

static char place[64];
static int root = -EBADF;

static void make_place(void) {
        (void) snprintf(place, sizeof(place), "/tmp/nsc-snapshot-XXXXXX");
        cr_assert_not_null(mkdtemp(place));
        root = directory_open_root(place, false);
        cr_assert_geq(root, 0);
}

static void remove_place(void) {
        root = safe_close(root);
        cr_assert_eq(directory_remove_tree(AT_FDCWD, place), 0);
}

static void touch(int dir, const char *name) {
        _cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT, 0600);

        cr_assert_geq(fd, 0);
}

Test(snapshot_directory, opens_what_is_ours, .init = make_place, .fini = remove_place) {
        _cleanup_close_ int user = -EBADF;
        struct stat st;

        cr_assert_eq(directory_open_user(root, 7, false), -ENOENT);
        user = directory_open_user(root, 7, true);
        cr_assert_geq(user, 0);
        cr_assert_eq(fstat(user, &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0700);

        cr_assert_eq(symlinkat("u7", root, "link"), 0);
        cr_assert_eq(directory_open(root, "link", false), -ENOTDIR);
        cr_assert_eq(fchmod(user, 0770), 0);
        cr_assert_eq(directory_open_user(root, 7, false), -EPERM);
        cr_assert_eq(unlinkat(root, "link", 0), 0);
        cr_assert_eq(unlinkat(root, "u7", AT_REMOVEDIR), 0);
}

Test(snapshot_directory, opens_files_only, .init = make_place, .fini = remove_place) {
        uint64_t size;
        int fd;

        touch(root, "file");
        fd = directory_open_file(root, "file", &size);
        cr_assert_geq(fd, 0);
        (void) safe_close(fd);
        cr_assert_eq(size, 0);
        cr_assert_eq(symlinkat("file", root, "link"), 0);
        cr_assert_eq(directory_open_file(root, "link", &size), -ELOOP);
        cr_assert_eq(mkfifoat(root, "fifo", 0600), 0);
        cr_assert_eq(directory_open_file(root, "fifo", &size), -EPERM);
        cr_assert_eq(directory_open_file(root, ".", &size), -EPERM);
        cr_assert_eq(directory_open_file(root, "none", &size), -ENOENT);
}

Test(snapshot_directory, names, .init = make_place, .fini = remove_place) {
        _cleanup_free_ DirectoryName *names = NULL;
        size_t n;

        touch(root, "20261128T090723-3ebe55ff");
        touch(root, ID);
        touch(root, "20251128T090723-3ebe55ff");
        touch(root, "other");
        touch(root, ".new-" ID);
        cr_assert_eq(directory_names(root, id_is_valid, &names, &n), 0);
        cr_assert_eq(n, 3);
        cr_assert_str_eq(names[0], "20251128T090723-3ebe55ff");
        cr_assert_str_eq(names[1], ID);
        cr_assert_str_eq(names[2], "20261128T090723-3ebe55ff");
}

Test(snapshot_directory, lock_of_a_removed_directory, .init = make_place, .fini = remove_place) {
        _cleanup_close_ int first = directory_open_locked(root, KEY), second = -EBADF;
        struct stat st;

        cr_assert_geq(first, 0);
        second = directory_open(root, KEY, false);
        cr_assert_not(directory_try_lock(second));
        second = safe_close(second);

        /* As prune does it: removed under the lock, which then is worth nothing. */
        cr_assert_eq(unlinkat(root, KEY, AT_REMOVEDIR), 0);
        second = directory_open_locked(root, KEY);
        cr_assert_geq(second, 0);
        cr_assert_eq(fstat(second, &st), 0);
        cr_assert_gt(st.st_nlink, 0);
        cr_assert_eq(unlinkat(root, KEY, AT_REMOVEDIR), 0);
}

Test(snapshot_directory, removing, .init = make_place, .fini = remove_place) {
        static const char *const left[] = { ".new-" ID, ".old-" ID };
        _cleanup_close_ int dir = directory_open(root, ID, true);

        touch(dir, "manifest");
        cr_assert_eq(mkdirat(dir, "directory", 0700), 0);
        cr_assert_eq(directory_remove(root, ID), 0);
        cr_assert_eq(faccessat(root, ID, F_OK, 0), -1);
        cr_assert_eq(directory_remove(root, ID), -ENOENT);

        for (size_t i = 0; i < ELEMENTSOF(left); i++) {
                _cleanup_close_ int fd = directory_open(root, left[i], true);

                touch(fd, "python.state");
        }
        touch(root, ".new-other");
        cr_assert_eq(directory_remove_leftovers(root), 0);
        for (size_t i = 0; i < ELEMENTSOF(left); i++)
                cr_assert_eq(faccessat(root, left[i], F_OK, 0), -1);
        cr_assert_eq(faccessat(root, ".new-other", F_OK, 0), 0);
}
