/* SPDX-License-Identifier: MIT */

/*
 * Editors connect pipes (Codex) or Unix sockets (Node hosts). A socket can be told per call not to block; a
 * pipe that poll(2) finds writable takes PIPE_BUF bytes without blocking (pipe(7)).
 */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/text.h"

#include "output.h"

void output_init(Output *o, int fd) {
        struct stat st;

        *o = (Output) { .fd = fd, .is_socket = fstat(fd, &st) >= 0 && S_ISSOCK(st.st_mode) };
}

void output_done(Output *o) {
        buffer_done(&o->queue);
}

static bool is_writable(int fd, uint64_t timeout_usec) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };

        return poll(&p, 1, (int) (timeout_usec / USEC_PER_MSEC)) > 0;
}

int output_flush(Output *o) {
        while (buffer_size(&o->queue) > 0) {
                size_t size = buffer_size(&o->queue);
                ssize_t n;

                if (o->is_socket)
                        n = send(o->fd, buffer_data(&o->queue), size, MSG_DONTWAIT | MSG_NOSIGNAL);
                else if (is_writable(o->fd, /* timeout_usec= */ 0))
                        n = write(o->fd, buffer_data(&o->queue), MIN(size, (size_t) PIPE_BUF));
                else
                        return 0;
                if (n < 0)
                        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
                buffer_consume(&o->queue, (size_t) n);
        }
        return 0;
}

void output_drain(Output *o, uint64_t timeout_usec) {
        uint64_t now = now_monotonic(), end = now + timeout_usec;

        while (output_flush(o) >= 0 && buffer_size(&o->queue) > 0 && now < end) {
                (void) is_writable(o->fd, end - now);
                now = now_monotonic();
        }
}
