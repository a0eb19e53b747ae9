/* SPDX-License-Identifier: MIT */

/*
 * put: a file of the workspace comes out of the channel. Until all of it is there it has no name, so nothing is left
 * of one that was cut short, whoever was killed; then it takes the place of what had its name, in one step.
 */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/operation.h"
#include "lib/fd-util.h"
#include "lib/json.h"

#define COPY_SIZE (64 * KIB)
#define MODE_NEW 0644U

typedef struct Put {
        const char *path;
        uint64_t mode;                  /* UINT64_MAX: as it is, or that of a new file */
} Put;

/* 0, or a negative errno; -ECONNRESET: it ended before. */
static int read_whole(int channel, void *data, size_t size) {
        for (char *p = data; size > 0;) {
                ssize_t n = read(channel, p, size);

                if (n == 0)
                        return -ECONNRESET;
                if (n < 0 && errno != EINTR)
                        return -errno;
                p += MAX(n, 0);
                size -= (size_t) MAX(n, 0);
        }
        return 0;
}

static int copy_piece(int channel, int fd, size_t size) {
        static char piece[COPY_SIZE];

        while (size > 0) {
                size_t n = MIN(size, sizeof(piece));
                int r;

                r = read_whole(channel, piece, n);
                if (r >= 0)
                        r = write_full(fd, piece, n);
                if (r < 0)
                        return r;
                size -= n;
        }
        return 0;
}

static int copy_from_channel(int channel, int fd, uint64_t *ret_size) {
        uint32_t size;
        int r;

        for (*ret_size = 0;; *ret_size += size) {
                r = read_whole(channel, &size, sizeof(size));
                if (r < 0)
                        return r;
                size = be32toh(size);
                if (size == 0)
                        return 0;
                r = copy_piece(channel, fd, size);
                if (r < 0)
                        return r;
        }
}

/* Splits off the last part, which must be a name. *ret_dir is "." for a path without another. */
static int split_path(char *path, const char **ret_dir, const char **ret_name) {
        char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;

        if (*name == 0 || streq(name, ".") || streq(name, ".."))
                return -EISDIR;
        if (slash == path)
                return -EXDEV;
        if (slash)
                *slash = 0;
        *ret_dir = slash ? path : ".";
        *ret_name = name;
        return 0;
}

/* What has the name must be a regular file, or nothing. */
static int check_place(int dir_fd, const char *name, uint64_t *mode) {
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                if (errno != ENOENT)
                        return -errno;
                st.st_mode = S_IFREG | MODE_NEW;
        }
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (S_ISLNK(st.st_mode))
                return -ELOOP;
        if (!S_ISREG(st.st_mode))
                return -ENXIO;
        if (*mode == UINT64_MAX)
                *mode = st.st_mode & 0777U;
        return 0;
}

/* A file without a name can be given one that is free only, so one that is not is replaced by way of another. */
static int give_name(int fd, int dir_fd, const char *name) {
        char self[32], other[32];
        uint64_t random;

        (void) snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
        if (linkat(AT_FDCWD, self, dir_fd, name, AT_SYMLINK_FOLLOW) >= 0)
                return 0;
        if (errno != EEXIST || getrandom(&random, sizeof(random), 0) != (ssize_t) sizeof(random))
                return -errno;

        (void) snprintf(other, sizeof(other), ".put-%016" PRIx64, random);
        if (linkat(AT_FDCWD, self, dir_fd, other, AT_SYMLINK_FOLLOW) < 0)
                return -errno;
        if (renameat(dir_fd, other, dir_fd, name) < 0) {
                int error = errno;

                (void) unlinkat(dir_fd, other, 0);
                return -error;
        }
        return 0;
}

static void put_work(int channel, OperationResult *result, void *userdata) {
        _cleanup_close_ int dir_fd = -EBADF, fd = -EBADF;
        const Put *put = userdata;
        uint64_t mode = put->mode, size;
        const char *dir, *name;
        int r;

        r = split_path((char *) put->path, &dir, &name);
        if (r < 0)
                return operation_result_fail_errno(result, -r, "write there");
        dir_fd = file_open(dir, O_PATH | O_DIRECTORY);
        if (dir_fd < 0)
                return operation_result_fail_errno(result, -dir_fd, "open its directory");
        r = check_place(dir_fd, name, &mode);
        if (r < 0)
                return operation_result_fail_errno(result, -r, "write there");

        fd = openat(dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
        if (fd < 0)
                return operation_result_fail_errno(result, errno, "make a file in its directory");
        r = copy_from_channel(channel, fd, &size);
        if (r == -ECONNRESET)
                return operation_result_fail(result, "failed", "it was given up");
        if (r >= 0 && fchmod(fd, (mode_t) mode) < 0)
                r = -errno;
        if (r >= 0)
                r = give_name(fd, dir_fd, name);
        if (r < 0)
                return operation_result_fail_errno(result, -r, "write it");
        operation_result_report(result, "{\"size\":%" PRIu64 "}", size);
}

static int put_begin(Operation *o, json_object *request) {
        Put p = { .mode = UINT64_MAX };
        static const JsonField table[] = {
                { "path", JSON_KIND_STRING, offsetof(Put, path), JSON_MANDATORY },
                { "mode", JSON_KIND_UINT, offsetof(Put, mode) },
                {},
        };

        if (json_dispatch(request, table, JSON_UNKNOWN_REFUSE, &p, NULL) < 0)
                return operation_refuse_request(o);
        if (p.mode > 0777 && p.mode != UINT64_MAX)
                return operation_refuse_request(o);

        p.path = file_path(p.path);
        return operation_work(o, put_work, &p);
}

const OperationType operation_put = {
        .name = "put",
        .channel = OPERATION_READS,
        .begin = put_begin,
};
