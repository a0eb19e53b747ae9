/* SPDX-License-Identifier: MIT */

/*
 * Frames as a hostile agent may send them, in pieces. The first byte says how large the pieces are. What is
 * taken from the front must encode to the bytes that were there.
 */

#include "lib/frame.h"

#define PAYLOAD_MAX 1000U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_frame(const Buffer *b, const Frame *f) {
        _cleanup_(buffer_done) Buffer copy = {};

        assert_se(f->size <= PAYLOAD_MAX && frame_length(f) <= buffer_size(b));
        assert_se(frame_append(&copy, f->type, f->turn, f->payload, f->size) == 0);
        assert_se(buffer_size(&copy) == frame_length(f));
        assert_se(memcmp(buffer_data(&copy), buffer_data(b), buffer_size(&copy)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(buffer_done) Buffer b = {};
        size_t step, n;
        Frame f;
        int r;

        if (size == 0)
                return 0;
        step = data[0] % 64U + 1;

        for (size_t i = 1; i < size; i += n) {
                n = MIN(step, size - i);
                assert_se(buffer_append(&b, data + i, n) == 0);

                while ((r = frame_peek(&b, PAYLOAD_MAX, &f)) > 0) {
                        check_frame(&b, &f);
                        buffer_consume(&b, frame_length(&f));
                }
                if (r < 0)
                        return 0;

                assert_se(buffer_size(&b) < FRAME_HEADER_SIZE + PAYLOAD_MAX);
        }

        return 0;
}
