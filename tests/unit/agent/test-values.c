/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "agent/values.h"
#include "lib/agent-protocol.h"
#include "lib/frame.h"

static Values values;
static Buffer frames;

static void teardown(void) {
        values_forget(&values);
        buffer_done(&frames);
}

TestSuite(values, .fini = teardown, .timeout = 10);

static void take(AgentValueKind kind, const char *data, size_t size) {
        const Report report = { .kind = REPORT_VALUE, .value_kind = kind, .value = data, .size = size };

        cr_assert_eq(values_take(&values, 7, &report, &frames), 0);
}

/* Takes a value out of b: its kind; its bytes must be those. */
static AgentValueKind next(Buffer *b, const char *data, size_t size) {
        AgentValueKind kind;
        bool more;
        Frame f;

        do {
                cr_assert_eq(frame_peek(b, AGENT_PAYLOAD_MAX, &f), 1);
                cr_assert(f.type == AGENT_FRAME_VALUE && f.turn == 7);
                cr_assert_geq(f.size, AGENT_VALUE_HEAD_SIZE);
                kind = (AgentValueKind) f.payload[0];
                more = f.payload[1];
                cr_assert_leq(f.size - AGENT_VALUE_HEAD_SIZE, size);
                cr_assert_eq(memcmp(f.payload + AGENT_VALUE_HEAD_SIZE, data, f.size - AGENT_VALUE_HEAD_SIZE), 0);
                data += f.size - AGENT_VALUE_HEAD_SIZE;
                size -= f.size - AGENT_VALUE_HEAD_SIZE;
                buffer_consume(b, frame_length(&f));
        } while (more);
        cr_assert_eq(size, 0);
        return kind;
}

Test(values, are_told_and_kept) {
        static char large[MIB];

        memset(large, 'p', sizeof(large));
        memset(large + AGENT_PAYLOAD_MAX, 'q', AGENT_PAYLOAD_MAX);
        take(AGENT_VALUE_RESULT, "1", 1);
        take(AGENT_VALUE_PNG, large, sizeof(large));
        take(AGENT_VALUE_HTML, "", 0);

        cr_assert_eq(buffer_size(&frames), buffer_size(&values.frames));
        for (Buffer *b = &frames; b; b = b == &frames ? &values.frames : NULL) {
                cr_assert_eq(next(b, "1", 1), AGENT_VALUE_RESULT);
                cr_assert_eq(next(b, large, sizeof(large)), AGENT_VALUE_PNG);
                cr_assert_eq(next(b, "", 0), AGENT_VALUE_HTML);
                cr_assert_eq(buffer_size(b), 0);
        }
        cr_assert_eq(values.dropped, 0);
}

Test(values, too_many) {
        for (unsigned i = 0; i < AGENT_VALUES_MAX + 3; i++)
                take(AGENT_VALUE_RESULT, "1", 1);
        take(_AGENT_VALUE_INVALID, "", 0);

        cr_assert_eq(values.n, AGENT_VALUES_MAX);
        cr_assert_eq(values.dropped, 4);
        values_forget(&values);
        cr_assert(values.n == 0 && values.dropped == 0 && !values.frames.data);
}

/* One that does not fit does not keep out a smaller one. */
Test(values, too_much) {
        static char large[2 * MIB];

        take(AGENT_VALUE_PNG, large, sizeof(large));
        take(AGENT_VALUE_PNG, large, sizeof(large) - 10);
        take(AGENT_VALUE_PNG, large, 11);
        take(AGENT_VALUE_PNG, large, 10);

        cr_assert_eq(values.n, 3);
        cr_assert_eq(values.size, AGENT_VALUES_SIZE);
        cr_assert_eq(values.dropped, 1);
}
