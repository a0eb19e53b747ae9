/* SPDX-License-Identifier: MIT */

/* The session's socketpair. Flags of the single call make it non-blocking, so no mode has to be kept. */

#include <errno.h>
#include <sys/socket.h>

#include "agent/link.h"
#include "lib/agent-protocol.h"

#define RECEIVE_SIZE (64 * KIB)

/* One piece. *ret_more: there may be another behind it. */
static int link_receive_piece(Link *l, bool *ret_more) {
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
        *ret_more = n == (ssize_t) size;
        return r == -EAGAIN || r == -EINTR ? 0 : r;
}

/* To the end, so that an ATTACH is never seen in halves. */
int link_receive(Link *l) {
        bool more = true;
        int r = 0;

        while (r >= 0 && more && buffer_size(&l->in) <= AGENT_REQUEST_MAX)
                r = link_receive_piece(l, &more);
        return r;
}

/*
 * A daemon that takes over sends this one frame and waits, so it is the end of what was received. No request
 * ends so: neither JSON nor code has NUL or 0xFF, and no turn has this number.
 */
static bool link_ends_with_attach(const Link *l) {
        uint8_t header[FRAME_HEADER_SIZE];
        size_t size = buffer_size(&l->in);

        if (size < AGENT_ATTACH_SIZE)
                return false;
        frame_encode_header(header, AGENT_FRAME_ATTACH, AGENT_ATTACH_TURN, AGENT_NONCE_SIZE);
        return memcmp(buffer_data(&l->in) + size - AGENT_ATTACH_SIZE, header, sizeof(header)) == 0;
}

int link_peek(Link *l, Frame *ret) {
        Buffer before = l->in;
        int r;

        if (!link_ends_with_attach(l))
                return frame_peek(&l->in, AGENT_REQUEST_MAX, ret);

        before.end -= AGENT_ATTACH_SIZE;
        r = frame_peek(&before, AGENT_REQUEST_MAX, ret);
        if (r > 0)
                return r;
        buffer_consume(&l->in, buffer_size(&before));
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
