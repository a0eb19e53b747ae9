/* SPDX-License-Identifier: MIT */

/*
 * get: a file of the workspace goes into the channel. Code in the jail is free to change every name meanwhile, so
 * the kernel resolves the path in one go and is told what not to follow; then it is the open file that is looked at.
 * A FIFO, a device or a directory is refused, and none of them can hold anybody up: they are opened with O_NONBLOCK.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/operation.h"
#include "lib/fd-util.h"
#include "lib/json.h"

#define WORKSPACE "/workspace"
#define COPY_SIZE (64 * KIB)

/* The agent's current directory is always the workspace. */
static int open_below_workspace(const char *path, uint64_t flags) {
        struct open_how how = {
                .flags = flags | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
        };
        int fd = (int) syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

/* What is left of a path without /workspace at its front. */
static const char *path_in_workspace(const char *path) {
        size_t n = strlen(WORKSPACE);

        if (strncmp(path, WORKSPACE, n) != 0 || path[n] != '/')
                return path;
        return path + n + strspn(path + n, "/");
}

static int open_regular(const char *path, struct stat *ret) {
        _cleanup_close_ int fd = -EBADF;

        fd = open_below_workspace(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return fd;
        if (fstat(fd, ret) < 0)
                return -errno;
        if (S_ISDIR(ret->st_mode))
                return -EISDIR;
        if (!S_ISREG(ret->st_mode))
                return -ENXIO;
        return TAKE_FD(fd);
}

/* To the end that the file has when it is reached. */
static int copy_to_channel(int fd, int channel, uint64_t *ret_size) {
        static char piece[COPY_SIZE];
        ssize_t n;
        int r;

        *ret_size = 0;
        while ((n = read(fd, piece, sizeof(piece))) > 0) {
                r = write_full(channel, piece, (size_t) n);
                if (r < 0)
                        return r;
                *ret_size += (uint64_t) n;
        }
        return n < 0 ? -errno : 0;
}

static void get_work(int channel, OperationResult *result, void *userdata) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        uint64_t size;
        int r;

        fd = open_regular(userdata, &st);
        if (fd < 0)
                return operation_result_fail_errno(result, -fd, "open it");
        r = copy_to_channel(fd, channel, &size);
        if (r < 0)
                return operation_result_fail_errno(result, -r, "send it");
        operation_result_report(result, "{\"size\":%" PRIu64 ",\"mode\":%u}", size, st.st_mode & 0777U);
}

static int get_begin(Operation *o, json_object *request) {
        struct {
                const char *path;
        } p = {};
        static const JsonField table[] = {
                { "path", JSON_KIND_STRING, offsetof(typeof(p), path), JSON_MANDATORY },
                {},
        };
        int r;

        if (json_dispatch(request, table, JSON_UNKNOWN_REFUSE, &p, NULL) < 0)
                return operation_fail(o, "failed", "the request cannot be understood");

        /* The child has a copy of all there is, the path in it. */
        r = operation_start_child(o, get_work, (void *) path_in_workspace(p.path), /* keep= */ NULL, 0);
        return r < 0 ? operation_fail(o, "failed", "no process could be started for it: %s", strerrordesc_np(-r)) : 0;
}

const OperationType operation_get = {
        .name = "get",
        .channel = OPERATION_WRITES,
        .begin = get_begin,
};
