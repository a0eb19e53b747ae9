/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A non-blocking stream socket on an sd-event loop: input collects in a buffer that the owner consumes,
 * output is written at once where the socket takes it and queued otherwise. Both directions are capped.
 * The owner frees the stream; freeing it inside one of its own callbacks is allowed.
 */

#include <systemd/sd-event.h>

#include "buffer.h"
#include "macro.h"

typedef struct Stream Stream;

typedef struct StreamHandlers {
        /* New bytes are in the buffer; consume what is complete. */
        void (*on_input)(Stream *s, Buffer *input, void *userdata);
        /* The peer is gone (error 0) or the socket failed (negative errno). Called once; nothing follows.
         * What the peer had sent before comes first, in one more on_input, even while reading is off. */
        void (*on_hangup)(Stream *s, int error, void *userdata);
        /* The peer has shut down its sending side only (shutdown(2)): no more input, but it may still read.
         * Called once; on_hangup follows when it closes. NULL: this, too, counts as a hang-up. */
        void (*on_eof)(Stream *s, void *userdata);
        /* The output queue is empty again after stream_write() had to queue. May be NULL. */
        void (*on_drained)(Stream *s, void *userdata);
} StreamHandlers;

typedef struct StreamLimits {
        size_t input_max;       /* reading pauses while this much is not consumed; the owner, who knows that
                                 * a complete message would fit, treats a full buffer as a peer's fault */
        size_t output_max;      /* stream_write() gives -ENOBUFS over this */
} StreamLimits;

/* Takes fd (also when it fails), which must be a connected stream socket. name is for the event source. */
int stream_new(sd_event *event, int fd, const char *name, const StreamLimits *limits,
               const StreamHandlers *handlers, void *userdata, Stream **ret);
Stream *stream_free(Stream *s);
DEFINE_TRIVIAL_CLEANUP_FUNC(Stream *, stream_free);

/* Queues or writes, all or nothing. -ENOBUFS when the peer does not read, -EPIPE after a hang-up, -ENOMEM.
 * After any of them but -ENOBUFS the stream is broken, and on_hangup will come from the event loop, never
 * from inside this call. iov-style pair so that a header and its payload go out together without a copy. */
int stream_write(Stream *s, const void *data, size_t size);
int stream_write2(Stream *s, const void *head, size_t head_size, const void *data, size_t size);

/* stream_write() with a descriptor that travels with the first byte, of at least one. Takes passed, also when it
 * fails; -ENOBUFS, too, when STREAM_FDS_MAX of them wait to be sent. */
#define STREAM_FDS_MAX 4U
int stream_write_fd(Stream *s, const void *data, size_t size, int passed);

/* Takes in, with one read, what has come by now: for an owner who is about to act on something else that may have
 * followed from it. Not from its own callbacks, where it does nothing. */
void stream_receive(Stream *s);

/* Bytes not yet taken by the kernel. */
size_t stream_queued(const Stream *s);
Buffer *stream_input(Stream *s);
int stream_fd(const Stream *s);

/* Back-pressure: while reading is off the peer's writes fill the socket and then block the peer. Also to be
 * called with true by an owner that has consumed input outside on_input. */
int stream_set_reading(Stream *s, bool reading);
