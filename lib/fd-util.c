/* SPDX-License-Identifier: MIT */

/*
 * Descriptors and whole small files. Nothing here keeps state: descriptors belong to the caller, who gets
 * them CLOEXEC, and results are 0 or a descriptor, else a negative errno.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffer.h"
#include "fd-util.h"

#define READ_CHUNK (4 * KIB)

int safe_close(int fd) {
        int saved = errno;

        /* Not restarted on EINTR: Linux has released the descriptor by then. */
        if (fd >= 0)
                (void) close(fd);

        errno = saved;
        return -EBADF;
}

int fd_set_nonblock(int fd, bool nonblock) {
        int flags, wanted;

        flags = fcntl(fd, F_GETFL);
        if (flags < 0)
                return -errno;

        wanted = nonblock ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
        if (wanted != flags && fcntl(fd, F_SETFL, wanted) < 0)
                return -errno;

        return 0;
}

static int compare_fds(const void *a, const void *b) {
        int x = *(const int *) a, y = *(const int *) b;

        return (x > y) - (x < y);
}

void fds_close_others(int keep[], size_t n) {
        unsigned from = 0;

        qsort(keep, n, sizeof(*keep), compare_fds);
        for (size_t i = 0; i < n; i++) {
                if (keep[i] < 0 || (unsigned) keep[i] < from)
                        continue;
                if ((unsigned) keep[i] > from)
                        (void) close_range(from, (unsigned) keep[i] - 1, 0);
                from = (unsigned) keep[i] + 1;
        }
        (void) close_range(from, ~0U, 0);
}

int write_full(int fd, const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t n;

                n = write(fd, p, size);
                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (n == 0)
                        return -EIO;

                p += n;
                size -= (size_t) n;
        }

        return 0;
}

/* Appends what one read(2) gives. 0 at the end of the file, else the number of bytes. */
static ssize_t read_chunk(int fd, Buffer *b, size_t size) {
        ssize_t n;
        char *p;
        int r;

        r = buffer_reserve(b, size, &p);
        if (r < 0)
                return r;

        do
                n = read(fd, p, size);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        buffer_commit(b, (size_t) n);
        return n;
}

int read_to_end(int fd, size_t max, char **ret, size_t *ret_size) {
        _cleanup_(buffer_done) Buffer b = {};
        ssize_t n;

        do {
                n = read_chunk(fd, &b, READ_CHUNK);
                if (n < 0)
                        return (int) n;
                if (buffer_size(&b) > max)
                        return -EFBIG;
        } while (n > 0);

        return buffer_take(&b, ret, ret_size);
}

int read_file_at(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = -EBADF;

        /* Non-blocking, so that a FIFO in place of the file cannot hang us; regular files ignore it. */
        fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return -errno;

        return read_to_end(fd, max, ret, ret_size);
}

int write_file_at(int dir_fd, const char *path, const char *value) {
        _cleanup_close_ int fd = -EBADF;
        size_t size = strlen(value);
        ssize_t n;

        fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;

        do
                n = write(fd, value, size);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        return (size_t) n == size ? 0 : -EIO;
}

int memfd_new_sealed(const char *name, const void *data, size_t size) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;

        r = write_full(fd, data, size);
        if (r < 0)
                return r;

        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;

        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
                return -errno;

        return TAKE_FD(fd);
}

int fd_reopen(int fd) {
        char path[sizeof("/proc/self/fd/") + 11];
        int copy;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

        copy = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        return copy < 0 ? -errno : copy;
}
