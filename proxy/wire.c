/* SPDX-License-Identifier: MIT */

#include "proxy/wire.h"

#include <linux/sock_diag.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/fd-util.h"
#include "proxy/splice-pipe.h"

/* At once, of what a client still sends when it has its answer. */
#define DISCARD_SIZE (1 * MIB)

static void set_reset_at_end(const Wire *w, bool on) {
        const struct linger l = { .l_onoff = on };

        (void) setsockopt(w->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

void wire_init(Wire *w, int fd) {
        *w = (Wire) { .fd = fd, .readable = true, .writable = true };
        set_reset_at_end(w, true);
}

void wire_event(Wire *w, uint32_t events) {
        if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
                w->readable = true;
        if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
                w->writable = true;
        if (events & EPOLLHUP)
                w->is_gone = true;
}

static ssize_t receive(int fd, char *ret, size_t size, int flags) {
        ssize_t n;

        do
                n = recv(fd, ret, size, flags | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

static ssize_t have_read(Wire *w, ssize_t n) {
        if (n <= 0)
                w->readable = false;
        return n;
}

static ssize_t have_written(Wire *w, ssize_t n, size_t size) {
        if (n < (ssize_t) size)
                w->writable = false;
        return n == -EAGAIN ? 0 : n;
}

ssize_t wire_read(Wire *w, char *ret, size_t size) {
        assert(size > 0);

        return have_read(w, receive(w->fd, ret, size, 0));
}

ssize_t wire_write(Wire *w, const char *data, size_t size) {
        ssize_t n;

        do
                n = send(w->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return have_written(w, n < 0 ? -errno : n, size);
}

size_t wire_room(const Wire *w) {
        uint32_t memory[SK_MEMINFO_VARS] = {};
        socklen_t size = sizeof(memory);

        if (getsockopt(w->fd, SOL_SOCKET, SO_MEMINFO, memory, &size) < 0)
                return 0;
        return memory[SK_MEMINFO_SNDBUF] - MIN(memory[SK_MEMINFO_WMEM_QUEUED], memory[SK_MEMINFO_SNDBUF]);
}

ssize_t wire_fill(Wire *w, size_t size) {
        assert(size > 0);

        return have_read(w, splice_pipe_fill(w->fd, size));
}

ssize_t wire_pour(Wire *w, size_t size) {
        return have_written(w, splice_pipe_pour(w->fd, size), size);
}

/* Of TCP, MSG_TRUNC takes bytes out without copying them (tcp(7)). */
int wire_discard(Wire *w) {
        ssize_t n = receive(w->fd, NULL, DISCARD_SIZE, MSG_TRUNC);

        if (n > 0)
                return 1;
        w->readable = false;
        return (int) n;
}

void wire_shutdown(Wire *w) {
        (void) shutdown(w->fd, SHUT_WR);
}

/* What is unread would make a reset of it. */
void wire_close(Wire *w) {
        if (w->fd < 0)
                return;
        set_reset_at_end(w, false);
        wire_shutdown(w);
        (void) wire_discard(w);
        w->fd = safe_close(w->fd);
}

void wire_reset(Wire *w) {
        w->fd = safe_close(w->fd);
}
