/* SPDX-License-Identifier: MIT */

#include "snapshot/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/wait.h"

#define LOCK_WAIT_MSEC 5000
#define LOCK_STEP_MSEC 20
#define OPEN_TRIES 100U
#define USER_NAME_SIZE 16U

/* ---- opening ---- */

/* Else a snapshot in a new directory would be durable, but not the way to it. */
static int sync_above(int fd) {
        _cleanup_close_ int above = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return above < 0 || fsync(above) < 0 ? -errno : 0;
}

static int open_directory(int parent, const char *name, int flags, bool create) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        bool made;

        made = create && mkdirat(parent, name, 0700) >= 0;
        if (create && !made && errno != EEXIST)
                return -errno;

        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid() || (st.st_mode & 022))
                return -EPERM;
        if (made) {
                int r = sync_above(fd);

                if (r < 0)
                        return r;
        }

        return TAKE_FD(fd);
}

int directory_open_root(const char *path, bool create) {
        return open_directory(AT_FDCWD, path, 0, create);
}

int directory_open(int parent, const char *name, bool create) {
        return open_directory(parent, name, O_NOFOLLOW, create);
}

int directory_open_user(int root, uid_t uid, bool create) {
        char name[USER_NAME_SIZE];

        (void) snprintf(name, sizeof(name), "u%u", (unsigned) uid);
        return directory_open(root, name, create);
}

int directory_open_file(int parent, const char *name, uint64_t *ret_size) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        /* Non-blocking, so that a FIFO in place of the file cannot hang us. */
        fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
                return -EPERM;

        *ret_size = (uint64_t) st.st_size;
        return TAKE_FD(fd);
}

/* ---- locks ---- */

bool directory_try_lock(int fd) {
        return flock(fd, LOCK_EX | LOCK_NB) >= 0;
}

int directory_lock(int fd) {
        for (int waited = 0; !directory_try_lock(fd); waited += LOCK_STEP_MSEC) {
                int r;

                if (errno != EWOULDBLOCK)
                        return -errno;
                if (waited >= LOCK_WAIT_MSEC)
                        return -EBUSY;
                r = wait_time(LOCK_STEP_MSEC);
                if (r < 0)
                        return r;
        }

        return 0;
}

int directory_open_locked(int user, const char *key) {
        for (unsigned i = 0; i < OPEN_TRIES; i++) {
                _cleanup_close_ int fd = directory_open(user, key, /* create= */ true);
                struct stat st;
                int r;

                if (fd == -ENOENT)
                        continue;
                if (fd < 0)
                        return fd;
                r = directory_lock(fd);
                if (r < 0)
                        return r;
                if (fstat(fd, &st) < 0)
                        return -errno;
                if (st.st_nlink > 0)
                        return TAKE_FD(fd);
        }

        return -EBUSY;
}

/* ---- names ---- */

static void closedirp(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(a, b);
}

static int names_add(DirectoryName **names, size_t *n, size_t *allocated, const char *name,
                     size_t size) {
        if (*n >= DIRECTORY_NAMES_MAX)
                return -EFBIG;
        if (*n == *allocated) {
                size_t larger = *allocated * 2 + 16;
                DirectoryName *p = reallocarray(*names, larger, sizeof(*p));

                if (!p)
                        return -ENOMEM;
                *names = p;
                *allocated = larger;
        }

        memcpy((*names)[(*n)++], name, size + 1);
        return 0;
}

int directory_names(int fd, bool (*passes)(const char *name), DirectoryName **ret, size_t *ret_n) {
        _cleanup_free_ DirectoryName *names = NULL;
        _cleanup_(closedirp) DIR *dir = NULL;
        _cleanup_close_ int copy = -EBADF;
        size_t n = 0, allocated = 0;

        copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (copy < 0)
                return -errno;
        dir = fdopendir(copy);
        if (!dir)
                return -errno;
        (void) TAKE_FD(copy); /* closedir() closes it */

        errno = 0;
        for (struct dirent *d; (d = readdir(dir)); errno = 0) {
                size_t size = strlen(d->d_name);
                int r;

                if (size >= DIRECTORY_NAME_SIZE || !passes(d->d_name))
                        continue;
                r = names_add(&names, &n, &allocated, d->d_name, size);
                if (r < 0)
                        return r;
        }
        if (errno != 0)
                return -errno;
        if (n > 0)
                qsort(names, n, sizeof(*names), compare_names);

        *ret = TAKE_PTR(names);
        *ret_n = n;
        return 0;
}

/* ---- removing ---- */

static bool is_entry(const char *name) {
        return !streq(name, ".") && !streq(name, "..");
}

int directory_remove_tree(int parent, const char *name) {
        _cleanup_free_ DirectoryName *names = NULL;
        _cleanup_close_ int fd = -EBADF;
        size_t n = 0;
        int r;

        fd = directory_open(parent, name, /* create= */ false);
        if (fd == -ENOTDIR)
                return unlinkat(parent, name, 0) < 0 ? -errno : 0;
        if (fd < 0)
                return fd;
        r = directory_names(fd, is_entry, &names, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                if (unlinkat(fd, names[i], 0) < 0 && errno == EISDIR)
                        (void) unlinkat(fd, names[i], AT_REMOVEDIR);

        return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int directory_remove(int key, const char *id) {
        char removed[TEMPORARY_SIZE];

        (void) snprintf(removed, sizeof(removed), REMOVED_PREFIX "%s", id);
        if (renameat(key, id, key, removed) < 0)
                return -errno;
        return directory_remove_tree(key, removed);
}

static bool is_leftover(const char *name) {
        size_t n = sizeof(TEMPORARY_PREFIX) - 1;

        return (strncmp(name, TEMPORARY_PREFIX, n) == 0 || strncmp(name, REMOVED_PREFIX, n) == 0) &&
               id_is_valid(name + n);
}

int directory_remove_leftovers(int key) {
        _cleanup_free_ DirectoryName *names = NULL;
        size_t n = 0;
        int r;

        r = directory_names(key, is_leftover, &names, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                int k = directory_remove_tree(key, names[i]);

                /* The others are removed all the same. */
                if (k < 0 && k != -ENOENT)
                        r = k;
        }
        return r;
}
