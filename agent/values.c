/* SPDX-License-Identifier: MIT */

/* Values from reports to frames. */

#include "agent/values.h"

#include "lib/agent-protocol.h"
#include "lib/frame.h"

void values_forget(Values *v) {
        buffer_done(&v->frames);
        *v = (Values) {};
}

/* One frame at least, also of a value without bytes. */
static int append_frames(Buffer *b, uint64_t turn, const Report *report) {
        uint8_t head[FRAME_HEADER_SIZE + AGENT_VALUE_HEAD_SIZE];
        size_t at = 0, n;
        int r;

        do {
                n = MIN(report->size - at, AGENT_PAYLOAD_MAX - AGENT_VALUE_HEAD_SIZE);
                frame_encode_header(head, AGENT_FRAME_VALUE, turn, AGENT_VALUE_HEAD_SIZE + n);
                head[FRAME_HEADER_SIZE] = (uint8_t) report->value_kind;
                head[FRAME_HEADER_SIZE + 1] = at + n < report->size;

                r = buffer_append(b, head, sizeof(head));
                if (r >= 0)
                        r = buffer_append(b, report->value + at, n);
                at += n;
        } while (r >= 0 && at < report->size);

        return r;
}

int values_take(Values *v, uint64_t turn, const Report *report, Buffer *frames) {
        size_t before = buffer_size(&v->frames);
        int r;

        if (report->value_kind < 0 || v->n >= AGENT_VALUES_MAX || report->size > AGENT_VALUES_SIZE - v->size) {
                v->dropped++;
                return 0;
        }

        v->n++;
        v->size += report->size;
        r = append_frames(&v->frames, turn, report);
        return r < 0 ? r : buffer_append(frames, buffer_data(&v->frames) + before, buffer_size(&v->frames) - before);
}
