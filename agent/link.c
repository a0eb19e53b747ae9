/* SPDX-License-Identifier: MIT */

/* The session's socketpair. Flags of the single call make it non-blocking, so no mode has to be kept. */

#include <errno.h>
#include <sys/socket.h>

#include "agent/link.h"
#include "lib/agent-protocol.h"
#include "lib/fd-util.h"

#define RECEIVE_SIZE (64 * KIB)

int link_take_fd(Link *l) {
        int fd;

        if (l->n_fds == 0)
                return -EBADF;

        fd = l->fds[0].fd;
        memmove(l->fds, l->fds + 1, --l->n_fds * sizeof(*l->fds));
        return fd;
}

void link_drop_fds(Link *l) {
        while (l->n_fds > 0)
                (void) safe_close(link_take_fd(l));
}

static void link_add_fd(Link *l, int fd, size_t end) {
        if (l->n_fds == LINK_FDS_MAX)
                (void) safe_close(link_take_fd(l));
        l->fds[l->n_fds++] = (LinkFd) { fd, end };
}

/* One that was lost at the limit of descriptors keeps its place: the next one is another operation's. */
static void link_add_fds(Link *l, struct msghdr *message, size_t end) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
                const int *fds = (const int *) CMSG_DATA(c);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
                        link_add_fd(l, fds[i], end);
        }
        if (message->msg_flags & MSG_CTRUNC)
                link_add_fd(l, -EBADF, end);
}

/* One piece. *ret_more: there may be another behind it. */
static int link_receive_piece(Link *l, bool *ret_more) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(LINK_FDS_MAX * sizeof(int))];
        struct iovec part;
        struct msghdr message = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = control,
                .msg_controllen = sizeof(control),
        };
        size_t size;
        ssize_t n;
        char *p;
        int r;

        /* Most requests fit in what an empty buffer keeps; only the rest of a long one needs more. */
        size = buffer_size(&l->in) > 0 ? RECEIVE_SIZE : BUFFER_KEEP;

        r = buffer_reserve(&l->in, size, &p);
        if (r < 0)
                return r;

        part = (struct iovec) { p, size };
        n = recvmsg(l->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        r = n < 0 ? -errno : n == 0 ? -ECONNRESET : 0;
        if (n > 0)
                link_add_fds(l, &message, buffer_size(&l->in) + (size_t) n);
        buffer_commit(&l->in, n > 0 ? (size_t) n : 0);
        /* A read ends with a descriptor, whatever is behind it. */
        *ret_more = n == (ssize_t) size || (n > 0 && message.msg_controllen > 0);
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
bool link_has_attach(const Link *l) {
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

        if (!link_has_attach(l))
                return frame_peek(&l->in, AGENT_REQUEST_MAX, ret);

        before.end -= AGENT_ATTACH_SIZE;
        r = frame_peek(&before, AGENT_REQUEST_MAX, ret);
        if (r > 0)
                return r;
        buffer_consume(&l->in, buffer_size(&before));
        return frame_peek(&l->in, AGENT_REQUEST_MAX, ret);
}

void link_next(Link *l, const Frame *f) {
        size_t n = frame_length(f);

        buffer_consume(&l->in, n);
        for (size_t i = 0; i < l->n_fds; i++)
                l->fds[i].end -= MIN(l->fds[i].end, n);
        while (l->n_fds > 0 && l->fds[0].end == 0)
                (void) safe_close(link_take_fd(l));     /* the frame did not want it */
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
