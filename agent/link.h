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

typedef struct Link {
        int fd;
        Buffer in;
        Buffer out;
} Link;

/* Reads what is there, at most one request. -ECONNRESET: the daemon is gone. */
int link_receive(Link *l);
/* The next frame, as frame_peek() has it; done with by link_next(). Half a frame of a daemon that is gone is
 * dropped. */
int link_peek(Link *l, Frame *ret);
void link_next(Link *l, const Frame *f);

/* Writes as much as the socket takes. -ECONNRESET: the daemon is gone. */
int link_flush(Link *l);

static inline bool link_has_unsent(const Link *l) {
        return buffer_size(&l->out) > 0;
}

static inline bool link_is_congested(const Link *l) {
        return buffer_size(&l->out) > LINK_CONGESTED_SIZE;
}
