/* SPDX-License-Identifier: MIT */

#include "proxy/wire.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/fd-util.h"

#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif

/* So much is looked at and then taken out, which copies it twice; of more all but the end is read at once. */
#define PEEK_SIZE (16 * KIB)

/* Of what a client still sends when it has its answer. */
#define DISCARD_ROUNDS 64U

static char discarded[PEEK_SIZE];

void wire_init(Wire *w, int fd, bool is_unix) {
        const int offset = 0;

        *w = (Wire) { .fd = fd, .is_unix = is_unix, .readable = true, .writable = true };
        /* Unix sockets have it on every kernel that we run on (3.4). */
        if (is_unix)
                (void) setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset));
}

void wire_event(Wire *w, uint32_t events) {
        if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
                w->readable = true;
        if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
                w->writable = true;
        if (w->is_unix && events & EPOLLHUP)
                w->is_gone = true;
}

static ssize_t receive(int fd, struct iovec *parts, size_t n_parts, int flags) {
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = n_parts };
        ssize_t n;

        do
                n = recvmsg(fd, &message, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

static ssize_t receive_one(int fd, char *ret, size_t size, int flags) {
        struct iovec part = { .iov_base = ret, .iov_len = size };

        return receive(fd, &part, 1, flags);
}

/* All but the last one of the bytes that were read go. */
static void take_out(Wire *w) {
        while (w->kept > 1) {
                ssize_t n = receive_one(w->fd, discarded, MIN(w->kept - 1, sizeof(discarded)), 0);

                if (n <= 0)
                        return;
                w->kept -= MIN((size_t) n, w->kept);
        }
}

/* There is enough in the queue that not all of it has to be looked at first. */
static ssize_t read_bulk(Wire *w, char *ret, size_t queued, size_t size) {
        size_t before = w->kept;
        struct iovec parts[] = {
                { .iov_base = discarded, .iov_len = before },
                { .iov_base = ret, .iov_len = MIN(size, queued - before - 1) },
        };
        ssize_t n = receive(w->fd, before > 0 ? parts : parts + 1, before > 0 ? 2 : 1, 0);

        if (n <= 0)
                return n;
        w->kept -= MIN((size_t) n, before);
        return (size_t) n > before ? n - (ssize_t) before : -EAGAIN;
}

static ssize_t read_unix(Wire *w, char *ret, size_t size) {
        int queued = 0;
        ssize_t n;

        if (size > PEEK_SIZE && w->kept <= 1 && ioctl(w->fd, FIONREAD, &queued) == 0 && queued > (int) PEEK_SIZE) {
                n = read_bulk(w, ret, (size_t) queued, size);
                /* A read ends where descriptors were sent, perhaps right behind what was kept: there is more. */
                if (n != -EAGAIN)
                        return n;
        }

        n = receive_one(w->fd, ret, MIN(size, (size_t) PEEK_SIZE), MSG_PEEK);
        if (n > 0) {
                w->kept += (size_t) n;
                take_out(w);
        }
        return n;
}

ssize_t wire_read(Wire *w, char *ret, size_t size) {
        ssize_t n;

        assert(size > 0);

        n = w->is_unix ? read_unix(w, ret, size) : receive_one(w->fd, ret, size, 0);
        if (n <= 0)
                w->readable = false;
        return n;
}

ssize_t wire_write(Wire *w, const char *data, size_t size) {
        ssize_t n;

        do
                n = send(w->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n < 0 && errno != EAGAIN) {
                w->writable = false;
                return -errno;
        }
        if (n < (ssize_t) size)
                w->writable = false;
        return MAX(n, 0);
}

int wire_discard(Wire *w) {
        ssize_t n = 0;

        for (unsigned i = 0; i < DISCARD_ROUNDS; i++) {
                n = receive_one(w->fd, discarded, sizeof(discarded), 0);
                if (n <= 0) {
                        w->readable = false;
                        return (int) n;
                }
                w->kept = 0;
        }
        return 1;
}

void wire_shutdown(Wire *w) {
        (void) shutdown(w->fd, SHUT_WR);
}

void wire_close(Wire *w) {
        if (w->fd < 0)
                return;
        if (w->is_unix) {
                (void) shutdown(w->fd, SHUT_WR);
                (void) wire_discard(w);
        }
        w->fd = safe_close(w->fd);
}

void wire_reset(Wire *w) {
        const struct linger now = { .l_onoff = 1 };

        if (w->fd < 0)
                return;
        if (!w->is_unix)
                (void) setsockopt(w->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        w->fd = safe_close(w->fd);
}
