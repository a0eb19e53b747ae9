/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include <criterion/criterion.h>

#include "lib/frame.h"

TestSuite(frame, .timeout = 10);

#define MAX_SIZE 1000U

Test(frame, wire_format) {
        static const uint8_t expected[] = {
                0, 0, 0, 11, 7, 1, 2, 3, 4, 5, 6, 7, 8, 'h', 'i',
        };
        _cleanup_(buffer_done) Buffer b = {};

        cr_assert_eq(frame_append(&b, 7, UINT64_C(0x0102030405060708), "hi", 2), 0);
        cr_assert_eq(buffer_size(&b), sizeof(expected));
        cr_assert(memcmp(buffer_data(&b), expected, sizeof(expected)) == 0);
}

Test(frame, header_alone) {
        static const uint8_t expected[FRAME_HEADER_SIZE] = {
                0, 1, 0, 9, 255, 255, 255, 255, 255, 255, 255, 255, 254,
        };
        uint8_t header[FRAME_HEADER_SIZE];

        frame_encode_header(header, 255, UINT64_MAX - 1, 65536);
        cr_assert(memcmp(header, expected, sizeof(expected)) == 0);
}

/* Two frames, arriving a byte at a time. */
Test(frame, split_at_every_byte) {
        _cleanup_(buffer_done) Buffer whole = {}, b = {};
        unsigned frames = 0;
        Frame f;

        cr_assert_eq(frame_append(&whole, 1, 42, "payload", 7), 0);
        cr_assert_eq(frame_append(&whole, 2, UINT64_MAX, NULL, 0), 0);

        for (size_t i = 0; i < buffer_size(&whole); i++) {
                cr_assert_eq(frame_peek(&b, MAX_SIZE, &f), 0);
                cr_assert_eq(buffer_append(&b, buffer_data(&whole) + i, 1), 0);

                if (frame_peek(&b, MAX_SIZE, &f) == 0)
                        continue;

                cr_assert_eq(f.type, ++frames);
                cr_assert_eq(f.turn, frames == 1 ? 42 : UINT64_MAX);
                cr_assert_eq(f.size, frames == 1 ? 7 : 0);
                cr_assert(memcmp(f.payload, "payload", f.size) == 0);
                buffer_consume(&b, frame_length(&f));
        }

        cr_assert_eq(frames, 2);
        cr_assert_eq(buffer_size(&b), 0);
}

static int peek_length(uint32_t length, size_t max) {
        _cleanup_(buffer_done) Buffer b = {};
        uint8_t be[4] = { length >> 24, length >> 16 & 255, length >> 8 & 255, length & 255 };
        Frame f;

        cr_assert_eq(buffer_append(&b, be, sizeof(be)), 0);
        return frame_peek(&b, max, &f);
}

Test(frame, bad_lengths_are_refused_at_once) {
        for (uint32_t length = 0; length < FRAME_HEADER_SIZE - 4; length++)
                cr_assert_eq(peek_length(length, MAX_SIZE), -EBADMSG);

        cr_assert_eq(peek_length(9, 0), 0);
        cr_assert_eq(peek_length(10, 0), -EMSGSIZE);
        cr_assert_eq(peek_length(9 + MAX_SIZE, MAX_SIZE), 0);
        cr_assert_eq(peek_length(10 + MAX_SIZE, MAX_SIZE), -EMSGSIZE);
        cr_assert_eq(peek_length(UINT32_MAX, MAX_SIZE), -EMSGSIZE);
        cr_assert_eq(peek_length(UINT32_MAX, SIZE_MAX), 0);
}

Test(frame, too_large_to_encode) {
        _cleanup_(buffer_done) Buffer b = {};

        cr_assert_eq(frame_append(&b, 1, 1, "", (size_t) UINT32_MAX - 8), -EMSGSIZE);
        cr_assert_eq(frame_append(&b, 1, 1, "", SIZE_MAX), -EMSGSIZE);
        cr_assert_eq(buffer_size(&b), 0);
}

Test(frame, payload_is_raw) {
        _cleanup_(buffer_done) Buffer b = {};
        char payload[256];
        Frame f;

        for (size_t i = 0; i < sizeof(payload); i++)
                payload[i] = (char) i;

        cr_assert_eq(frame_append(&b, 3, 0, payload, sizeof(payload)), 0);
        cr_assert_eq(frame_peek(&b, sizeof(payload), &f), 1);
        cr_assert_eq(f.size, sizeof(payload));
        cr_assert(memcmp(f.payload, payload, sizeof(payload)) == 0);
}
