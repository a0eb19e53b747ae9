/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The framing between sandboxd and sandbox-agent: u32 big-endian length of what follows, u8 type, u64
 * big-endian turn id, payload. Pure. Meaning of types and payloads: agent-protocol.h.
 */

#include "buffer.h"
#include "macro.h"

#define FRAME_HEADER_SIZE 13U

typedef struct Frame {
        uint8_t type;
        uint64_t turn;
        const char *payload;    /* borrowed from the buffer it was peeked in; not NUL-terminated */
        size_t size;
} Frame;

/*
 * Looks at the first frame of a buffer. 1: *ret is set, and buffer_consume(b, frame_length(ret)) drops it
 * when done; 0: not complete yet; -EBADMSG: shorter than a header can be; -EMSGSIZE: a payload over max,
 * known as soon as the length is there.
 */
int frame_peek(const Buffer *b, size_t max, Frame *ret);

static inline size_t frame_length(const Frame *f) {
        return FRAME_HEADER_SIZE + f->size;
}

void frame_encode_header(uint8_t ret[FRAME_HEADER_SIZE], uint8_t type, uint64_t turn, size_t size);

/* Appends a whole frame. -EMSGSIZE when the length does not fit, -ENOMEM. */
int frame_append(Buffer *b, uint8_t type, uint64_t turn, const void *payload, size_t size);
