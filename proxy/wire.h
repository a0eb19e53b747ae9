/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One end of a relayed connection: a non-blocking TCP socket, with what is known of it between two edges of epoll, and
 * with two ends: an orderly one and a reset, which the peer sees as an error. The reset is what happens by itself
 * (SO_LINGER), so that also a process that is killed leaves nothing behind that looks whole.
 */

#include <sys/types.h>

#include "lib/macro.h"

typedef struct Wire {
        int fd;
        bool readable, writable; /* until a call finds that it is not; set by wire_event() */
        bool is_gone;           /* nothing goes in either direction any more */
} Wire;

#define WIRE_NULL ((Wire) { .fd = -EBADF })

/* Takes fd. */
void wire_init(Wire *w, int fd);

/* What the source of a wire is to wait for: edges. */
#define WIRE_EVENTS ((uint32_t) (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET))
void wire_event(Wire *w, uint32_t events);

/* Bytes read, 0 at the end, -EAGAIN, or what is wrong. size is not 0. */
ssize_t wire_read(Wire *w, char *ret, size_t size);
/* Bytes written, less than size where the socket is full, or what is wrong. */
ssize_t wire_write(Wire *w, const char *data, size_t size);

/* How many bytes may be written now, about. */
size_t wire_room(const Wire *w);

/* Reading and writing by way of the splice pipe, which is empty but between the two: wire_fill() puts bytes into it,
 * wire_pour() as many out of it as the socket takes. */
ssize_t wire_fill(Wire *w, size_t size);
ssize_t wire_pour(Wire *w, size_t size);

/* Takes bytes that nobody wants. 0 at the end, 1: there may be more; -EAGAIN or what is wrong. */
int wire_discard(Wire *w);

/* The peer reads to the end of what was written. */
void wire_shutdown(Wire *w);

/* Both close; the first one after all that was written, the second one as an error. */
void wire_close(Wire *w);
void wire_reset(Wire *w);
