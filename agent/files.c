/* SPDX-License-Identifier: MIT */

/* Paths below the workspace. */

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/files.h"
#include "lib/fd-util.h"

#define WORKSPACE "/workspace"

/* The agent's current directory is always the workspace. */
int file_open(const char *path, uint64_t flags) {
        struct open_how how = {
                .flags = flags | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
        };
        int fd = (int) syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

const char *file_path(const char *path) {
        size_t n = strlen(WORKSPACE);

        if (strncmp(path, WORKSPACE, n) != 0 || path[n] != '/')
                return path;
        return path + n + strspn(path + n, "/");
}

/* It is the open file that is looked at. A FIFO or a device is opened as well, and with O_NONBLOCK holds nobody up. */
int file_open_regular(const char *path, struct stat *ret) {
        _cleanup_close_ int fd = -EBADF;

        fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
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
