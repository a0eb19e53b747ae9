/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One end of a relayed connection: a non-blocking stream socket, with what is known of it between two edges of epoll,
 * and with two ends: an orderly one and a reset, which the peer sees as an error. TCP resets by SO_LINGER.
 *
 * A Unix socket has no such thing: its peer reads ECONNRESET, after all that was sent, only where the socket was
 * closed with unread bytes in its queue (unix(7)). So the last byte that a client has sent is read without being taken
 * out of the queue (SO_PEEK_OFF); an orderly close takes it out, a reset leaves it there. Whoever has sent nothing at
 * all cannot be reset, and waits for nothing.
 */

#include <sys/types.h>

#include "lib/macro.h"

typedef struct Wire {
        int fd;
        bool is_unix;
        size_t kept;            /* bytes at the front of the queue that were read */
        bool readable, writable; /* until a call finds that it is not; set by wire_event() */
        bool is_gone;           /* the peer has closed both ways: it will not read what is written */
} Wire;

#define WIRE_NULL ((Wire) { .fd = -EBADF })

/* Takes fd. */
void wire_init(Wire *w, int fd, bool is_unix);

/* What the source of a wire is to wait for: edges. */
#define WIRE_EVENTS ((uint32_t) (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET))
void wire_event(Wire *w, uint32_t events);

/* Bytes read, 0 at the end, -EAGAIN, or what is wrong. size is not 0. */
ssize_t wire_read(Wire *w, char *ret, size_t size);
/* Bytes written, less than size where the socket is full, or what is wrong. */
ssize_t wire_write(Wire *w, const char *data, size_t size);

/* Takes up to so many bytes that nobody wants. 0 at the end, 1: there may be more; -EAGAIN or what is wrong. */
int wire_discard(Wire *w);

/* The peer reads to the end of what was written. */
void wire_shutdown(Wire *w);

/* Both close; the first one after all that was written, the second one as an error. */
void wire_close(Wire *w);
void wire_reset(Wire *w);
