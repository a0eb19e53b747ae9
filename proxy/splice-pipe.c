/* SPDX-License-Identifier: MIT */

#include "proxy/splice-pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int ends[2] = { -EBADF, -EBADF };

int splice_pipe_open(void) {
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        /* A user whose pipes hold much already gets no more. */
        (void) fcntl(ends[1], F_SETPIPE_SZ, SPLICE_PIPE_SIZE);
        return 0;
}

static ssize_t move(int from, int to, size_t size) {
        ssize_t n;

        do
                n = splice(from, NULL, to, NULL, size, SPLICE_F_NONBLOCK);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

ssize_t splice_pipe_fill(int fd, size_t size) {
        return move(fd, ends[1], size);
}

ssize_t splice_pipe_pour(int fd, size_t size) {
        return move(ends[0], fd, size);
}

void splice_pipe_empty(char *ret, size_t size) {
        char dropped[4 * KIB];

        while (size > 0) {
                ssize_t n = read(ends[0], ret ?: dropped, ret ? size : MIN(size, sizeof(dropped)));

                assert(n > 0 || errno == EINTR);
                if (ret)
                        ret += MAX(n, 0);
                size -= (size_t) MAX(n, 0);
        }
}
