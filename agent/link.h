/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The agent's end of the session's socketpair: frames in, frames out. What is sent is queued and leaves when
 * the loop flushes, so that the output and the result of a short turn travel in one write. Owned by main.
 */

#include "lib/buffer.h"
#include "lib/frame.h"

/* Over this, output pipes are not read until the daemon has taken some of it. */
#define LINK_CONGESTED_SIZE (1 * MIB)

/* A descriptor that came for an operation whose frame is not read yet. */
typedef struct LinkFd {
        int fd;                         /* -EBADF: one came, and could not be taken */
        size_t end;                     /* of the read that it came with, in the input */
} LinkFd;

#define LINK_FDS_MAX 4U                 /* the daemon sends one at a time */

typedef struct Link {
        int fd;
        Buffer in;
        Buffer out;
        LinkFd fds[LINK_FDS_MAX];
        size_t n_fds;
} Link;

/* Reads what is there, at most one request. -ECONNRESET: the daemon is gone. */
int link_receive(Link *l);
/* The next frame, as frame_peek() has it; done with by link_next(). Half a frame of a daemon that is gone is
 * dropped. */
int link_peek(Link *l, Frame *ret);
void link_next(Link *l, const Frame *f);
/* Whether another daemon takes over, by a frame that link_peek() will come to. */
bool link_has_attach(const Link *l);

/* The descriptor that came with the frame that was peeked, or -EBADF. */
int link_take_fd(Link *l);
/* Those of a daemon that is gone. */
void link_drop_fds(Link *l);

/* Writes as much as the socket takes. -ECONNRESET: the daemon is gone. */
int link_flush(Link *l);

static inline bool link_has_unsent(const Link *l) {
        return buffer_size(&l->out) > 0;
}

static inline bool link_is_congested(const Link *l) {
        return buffer_size(&l->out) > LINK_CONGESTED_SIZE;
}
