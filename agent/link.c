/* SPDX-License-Identifier: MIT */

/* The session's socketpair. Flags of the single call make it non-blocking, so no mode has to be kept. */

#include <errno.h>
#include <sys/socket.h>

#include "agent/link.h"
#include "lib/agent-protocol.h"

#define RECEIVE_SIZE (64 * KIB)

int link_receive(Link *l) {
        size_t size;
        ssize_t n;
        char *p;
        int r;

        /* Most requests fit in what an empty buffer keeps; only the rest of a long one needs more. */
        size = buffer_size(&l->in) > 0 ? RECEIVE_SIZE : BUFFER_KEEP;

        r = buffer_reserve(&l->in, size, &p);
        if (r < 0)
                return r;

        n = recv(l->fd, p, size, MSG_DONTWAIT);
        r = n < 0 ? -errno : n == 0 ? -ECONNRESET : 0;
        buffer_commit(&l->in, n > 0 ? (size_t) n : 0);
        return r == -EAGAIN || r == -EINTR ? 0 : r;
}

int link_peek(const Link *l, Frame *ret) {
        return frame_peek(&l->in, AGENT_REQUEST_MAX, ret);
}

void link_next(Link *l, const Frame *f) {
        buffer_consume(&l->in, frame_length(f));
}

int link_flush(Link *l) {
        while (link_has_unsent(l)) {
                ssize_t n;

                n = send(l->fd, buffer_data(&l->out), buffer_size(&l->out), MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0) {
                        if (errno == EAGAIN)
                                return 0;
                        if (errno == EINTR)
                                continue;
                        return errno == EPIPE ? -ECONNRESET : -errno;
                }

                buffer_consume(&l->out, (size_t) n);
        }

        return 0;
}
