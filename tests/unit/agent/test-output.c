/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "agent/output.h"
#include "lib/frame.h"
#include "workspace.h"

static SpoolDirectory spools;
static Output out;
static Buffer frames;

static void setup(void) {
        workspace_enter();
        output_init_stdout(&out, &spools);
}

static void teardown(void) {
        buffer_done(&frames);
        buffer_done(&out.late);
        buffer_done(&out.spool.held);
        workspace_leave();
}

TestSuite(output, .init = setup, .fini = teardown, .timeout = 10);

/* The next frame: its type, its payload appended to ret. 0 when there is none. */
static uint8_t next(Buffer *ret) {
        Frame f;

        if (frame_peek(&frames, SIZE_MAX, &f) <= 0)
                return 0;

        cr_assert_eq(f.turn, 7);
        cr_assert_eq(buffer_append(ret, f.payload, f.size), 0);
        buffer_consume(&frames, frame_length(&f));
        return f.type;
}

/* A byte whose value tells where in the stream it is. */
static char byte_at(size_t i) {
        return (char) (i * 31 + i / 251);
}

static void feed(size_t from, size_t size) {
        char *data = malloc(size);

        for (size_t i = 0; i < size; i++)
                data[i] = byte_at(from + i);
        cr_assert_eq(output_feed(&out, data, size, &frames), 0);
        free(data);
}

static void assert_bytes(const Buffer *b, size_t at, size_t from, size_t size) {
        for (size_t i = 0; i < size; i++)
                cr_assert_eq(buffer_data(b)[at + i], byte_at(from + i), "byte %zu", i);
}

Test(output, nothing) {
        _cleanup_(output_summary_done) OutputSummary s = {};

        cr_assert_eq(output_begin(&out, 7, &frames), 0);
        cr_assert_eq(output_feed(&out, "", 0, &frames), 0);
        cr_assert_eq(output_finish(&out, &frames, &s), 0);
        cr_assert_eq(buffer_size(&frames), 0);
        cr_assert(s.bytes == 0 && s.omitted == 0 && s.dropped == 0 && !s.file);
}

/* Whatever the size of the stream and of its pieces: head, tail and what is between add up. */
static void check_stream(size_t size, size_t piece) {
        _cleanup_(buffer_done) Buffer head = {}, tail = {};
        _cleanup_(output_summary_done) OutputSummary s = {};
        size_t expected_head = MIN(size, OUTPUT_HEAD_MAX);
        size_t expected_tail = MIN(size - expected_head, OUTPUT_TAIL_MAX);

        cr_assert_eq(output_begin(&out, 7, &frames), 0);
        for (size_t i = 0; i < size; i += piece)
                feed(i, MIN(piece, size - i));
        while (next(&head) == AGENT_FRAME_STDOUT)
                ;
        cr_assert_eq(buffer_size(&head), expected_head);

        cr_assert_eq(output_finish(&out, &frames, &s), 0);
        cr_assert_eq(next(&tail), expected_tail > 0 ? AGENT_FRAME_STDOUT_TAIL : 0);
        cr_assert_eq(next(&tail), 0);

        assert_bytes(&head, 0, 0, expected_head);
        cr_assert_eq(buffer_size(&tail), expected_tail);

        /* The same again for another daemon, as often as it takes. */
        for (size_t i = 0; i < 2; i++) {
                _cleanup_(buffer_done) Buffer again = {};

                cr_assert_eq(output_replay(&out, /* finished= */ true, &frames), 0);
                while (next(&again) != 0)
                        ;
                cr_assert_eq(buffer_size(&again), expected_head + expected_tail);
                assert_bytes(&again, 0, 0, expected_head);
                assert_bytes(&again, expected_head, size - expected_tail, expected_tail);
        }
        output_forget(&out);
        cr_assert_eq(output_replay(&out, true, &frames), 0);
        cr_assert_eq(next(&tail), 0);

        assert_bytes(&tail, 0, size - expected_tail, expected_tail);
        cr_assert_eq(s.bytes, size);
        cr_assert_eq(s.omitted, size - expected_head - expected_tail);
        cr_assert_null(out.tail);
}

Test(output, head_and_tail) {
        static const size_t sizes[] = {
                1, OUTPUT_HEAD_MAX - 1, OUTPUT_HEAD_MAX, OUTPUT_HEAD_MAX + 1,
                OUTPUT_HEAD_MAX + OUTPUT_TAIL_MAX - 1, OUTPUT_HEAD_MAX + OUTPUT_TAIL_MAX,
                OUTPUT_HEAD_MAX + OUTPUT_TAIL_MAX + 1, 1000003,
        };
        static const size_t pieces[] = { 997, 4096, OUTPUT_HEAD_MAX, OUTPUT_HEAD_MAX + 1, 300000 };

        for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
                for (size_t k = 0; k < ELEMENTSOF(pieces); k++)
                        check_stream(sizes[i], pieces[k]);
}

Test(output, stderr_has_its_own_types) {
        _cleanup_(output_summary_done) OutputSummary s = {};
        _cleanup_(buffer_done) Buffer data = {};

        output_init_stderr(&out, &spools);
        cr_assert_eq(output_begin(&out, 7, &frames), 0);
        feed(0, OUTPUT_HEAD_MAX + 1);
        cr_assert_eq(output_finish(&out, &frames, &s), 0);
        cr_assert_eq(next(&data), AGENT_FRAME_STDERR);
        cr_assert_eq(next(&data), AGENT_FRAME_STDERR_TAIL);
        cr_assert_not_null(strstr(s.file, "/.sandbox/turn-7.stderr"));
}

Test(output, late_begins_the_next_turn) {
        _cleanup_(output_summary_done) OutputSummary s = {};
        _cleanup_(buffer_done) Buffer data = {};

        output_hold(&out, "late", 4);
        output_hold(&out, "r", 1);
        cr_assert_eq(output_begin(&out, 7, &frames), 1);
        cr_assert_eq(next(&data), AGENT_FRAME_STDOUT);
        cr_assert_eq(buffer_size(&data), 5);
        cr_assert(memcmp(buffer_data(&data), "later", 5) == 0);
        cr_assert_eq(output_finish(&out, &frames, &s), 0);
        cr_assert(s.bytes == 5 && s.dropped == 0);
        cr_assert_eq(output_begin(&out, 7, &frames), 0);
}

Test(output, late_is_capped_and_counted) {
        _cleanup_(output_summary_done) OutputSummary s = {};
        static char data[OUTPUT_LATE_MAX - 1];

        output_hold(&out, data, sizeof(data));
        output_hold(&out, data, sizeof(data));
        output_hold(&out, data, sizeof(data));
        cr_assert_eq(output_begin(&out, 7, &frames), 1);
        cr_assert_eq(output_finish(&out, &frames, &s), 0);
        cr_assert_eq(s.bytes, OUTPUT_LATE_MAX);
        cr_assert_eq(s.dropped, 2 * sizeof(data) - 1);
        output_summary_done(&s);

        cr_assert_eq(output_begin(&out, 7, &frames), 0);
        cr_assert_eq(output_finish(&out, &frames, &s), 0);
        cr_assert_eq(s.dropped, 0);
}
