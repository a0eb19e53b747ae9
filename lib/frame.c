/* SPDX-License-Identifier: MIT */

/*
 * The length-prefixed frames of frame.h. The length counts what follows it, so type and turn are in it; a
 * smaller one, or one over the reader's limit, is refused as soon as its four bytes are there, before
 * anything is kept for the payload.
 */

#include <endian.h>
#include <errno.h>

#include "frame.h"

#define LENGTH_SIZE 4U
#define FIXED_SIZE (FRAME_HEADER_SIZE - LENGTH_SIZE)    /* the part of the header that the length counts */

int frame_peek(const Buffer *b, size_t max, Frame *ret) {
        const char *p = buffer_data(b);
        uint32_t length;
        uint64_t turn;

        if (buffer_size(b) < LENGTH_SIZE)
                return 0;

        memcpy(&length, p, sizeof(length));
        length = be32toh(length);
        if (length < FIXED_SIZE)
                return -EBADMSG;
        if (length - FIXED_SIZE > max)
                return -EMSGSIZE;
        if (buffer_size(b) - LENGTH_SIZE < length)
                return 0;

        memcpy(&turn, p + LENGTH_SIZE + 1, sizeof(turn));
        *ret = (Frame) {
                .type = (uint8_t) p[LENGTH_SIZE],
                .turn = be64toh(turn),
                .payload = p + FRAME_HEADER_SIZE,
                .size = length - FIXED_SIZE,
        };
        return 1;
}

void frame_encode_header(uint8_t ret[FRAME_HEADER_SIZE], uint8_t type, uint64_t turn, size_t size) {
        uint32_t length;

        assert(size <= UINT32_MAX - FIXED_SIZE);

        length = htobe32((uint32_t) size + FIXED_SIZE);
        turn = htobe64(turn);

        memcpy(ret, &length, sizeof(length));
        ret[LENGTH_SIZE] = type;
        memcpy(ret + LENGTH_SIZE + 1, &turn, sizeof(turn));
}

int frame_append(Buffer *b, uint8_t type, uint64_t turn, const void *payload, size_t size) {
        char *p;
        int r;

        if (size > UINT32_MAX - FIXED_SIZE)
                return -EMSGSIZE;

        r = buffer_reserve(b, FRAME_HEADER_SIZE + size, &p);
        if (r < 0)
                return r;

        frame_encode_header((uint8_t *) p, type, turn, size);
        if (size > 0)
                memcpy(p + FRAME_HEADER_SIZE, payload, size);

        buffer_commit(b, FRAME_HEADER_SIZE + size);
        return 0;
}
