/* SPDX-License-Identifier: MIT */

/* Head, tail and held output of a stream. A flood costs one memcpy of at most the ring's size a piece. */

#include <errno.h>

#include "agent/output.h"
#include "lib/frame.h"

static void output_init(Output *o, AgentFrameType head, AgentFrameType tail) {
        *o = (Output) { .head_type = head, .tail_type = tail };
}

void output_init_stdout(Output *o, SpoolDirectory *directory) {
        output_init(o, AGENT_FRAME_STDOUT, AGENT_FRAME_STDOUT_TAIL);
        spool_init(&o->spool, directory, "stdout");
}

void output_init_stderr(Output *o, SpoolDirectory *directory) {
        output_init(o, AGENT_FRAME_STDERR, AGENT_FRAME_STDERR_TAIL);
        spool_init(&o->spool, directory, "stderr");
}

int output_begin(Output *o, uint64_t turn, Buffer *frames) {
        size_t size = buffer_size(&o->late);
        int r;

        o->turn = turn;
        o->bytes = 0;
        spool_begin(&o->spool, turn);

        r = output_feed(o, buffer_data(&o->late), size, frames);
        buffer_consume(&o->late, size);
        return r < 0 ? r : size > 0;
}

static int tail_put(Output *o, const char *data, size_t size) {
        size_t n;

        if (size == 0)
                return 0;

        if (!o->tail) {
                o->tail = malloc(OUTPUT_TAIL_MAX);
                if (!o->tail)
                        return -ENOMEM;
        }

        if (size > OUTPUT_TAIL_MAX) {
                data += size - OUTPUT_TAIL_MAX;
                size = OUTPUT_TAIL_MAX;
        }

        n = MIN(size, OUTPUT_TAIL_MAX - o->tail_at);
        memcpy(o->tail + o->tail_at, data, n);
        memcpy(o->tail, data + n, size - n);

        o->tail_at = (o->tail_at + size) % OUTPUT_TAIL_MAX;
        o->tail_size = MIN(o->tail_size + size, OUTPUT_TAIL_MAX);
        return 0;
}

/* Little output is kept in little memory; much of it at once in what it can need at most, which goes straight
 * back to the kernel when it is forgotten. */
static int head_keep(Output *o, const char *data, size_t size) {
        char *p;
        int r;

        if (buffer_size(&o->head) + size > BUFFER_KEEP) {
                r = buffer_reserve(&o->head, OUTPUT_HEAD_MAX - buffer_size(&o->head), &p);
                if (r < 0)
                        return r;
        }
        return buffer_append(&o->head, data, size);
}

int output_feed(Output *o, const char *data, size_t size, Buffer *frames) {
        size_t head = 0;
        int r;

        if (size == 0)
                return 0;

        if (o->bytes < OUTPUT_HEAD_MAX) {
                head = MIN(size, OUTPUT_HEAD_MAX - o->bytes);

                r = frame_append(frames, o->head_type, o->turn, data, head);
                if (r >= 0)
                        r = head_keep(o, data, head);
                if (r < 0)
                        return r;
        }

        r = tail_put(o, data + head, size - head);
        if (r < 0)
                return r;

        o->bytes += size;
        spool_write(&o->spool, data, size);
        return 0;
}

static int tail_append(const Output *o, Buffer *frames) {
        uint8_t header[FRAME_HEADER_SIZE];
        size_t first, start;
        int r;

        if (o->tail_size == 0)
                return 0;

        start = (o->tail_at + OUTPUT_TAIL_MAX - o->tail_size) % OUTPUT_TAIL_MAX;
        first = MIN(o->tail_size, OUTPUT_TAIL_MAX - start);

        frame_encode_header(header, o->tail_type, o->turn, o->tail_size);
        r = buffer_append(frames, header, sizeof(header));
        if (r >= 0)
                r = buffer_append(frames, o->tail + start, first);
        if (r >= 0)
                r = buffer_append(frames, o->tail, o->tail_size - first);
        return r;
}

int output_finish(Output *o, Buffer *frames, OutputSummary *ret) {
        int r;

        r = tail_append(o, frames);
        if (r < 0)
                return r;

        *ret = (OutputSummary) {
                .bytes = o->bytes,
                .omitted = o->bytes - MIN(o->bytes, OUTPUT_HEAD_MAX) - o->tail_size,
                .dropped = o->dropped,
                .file = spool_finish(&o->spool),
        };

        o->dropped = 0;
        return 0;
}

int output_replay(const Output *o, bool finished, Buffer *frames) {
        int r = 0;

        if (buffer_size(&o->head) > 0)
                r = frame_append(frames, o->head_type, o->turn, buffer_data(&o->head), buffer_size(&o->head));
        return r >= 0 && finished ? tail_append(o, frames) : r;
}

void output_forget(Output *o) {
        buffer_done(&o->head);
        o->tail = mfree(o->tail);
        o->tail_at = o->tail_size = 0;
}

void output_hold(Output *o, const char *data, size_t size) {
        size_t n = MIN(size, OUTPUT_LATE_MAX - buffer_size(&o->late));

        if (buffer_append(&o->late, data, n) < 0)
                n = 0;

        o->dropped += size - n;
}

void output_summary_done(OutputSummary *s) {
        s->file = mfree(s->file);
}
