/* SPDX-License-Identifier: MIT */

/*
 * A snapshot stream of any bytes, in pieces; the first byte says how large they are. What is read is written
 * again, and must be read as the same once more.
 */

#include "lib/snapshot-stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void append_event(Buffer *out, SnapshotEvent event, const SnapshotReader *r) {
        char line[SNAPSHOT_LINE_MAX];

        assert_se(event != SNAPSHOT_DATA || (r->size > 0 && r->size <= SNAPSHOT_DATA_MAX));
        assert_se(event != SNAPSHOT_END || (r->size > 0 && r->size <= SNAPSHOT_REPORT_MAX));
        assert_se(buffer_append(out, line, snapshot_line(line, event, r->part, r->size)) == 0);
        assert_se(buffer_append(out, r->data, r->size) == 0);
}

/* Whether it is a whole stream. */
static bool rewrite(const char *data, size_t size, size_t step, Buffer *out) {
        bool done = false;
        SnapshotReader r = {};
        int event = 0;

        for (size_t i = 0; i < size && event >= 0; i += step) {
                const char *p = data + i;
                size_t left = MIN(step, size - i);

                while ((event = snapshot_reader_next(&r, &p, &left)) > 0) {
                        assert_se(!done);
                        done = event == SNAPSHOT_DONE;
                        append_event(out, (SnapshotEvent) event, &r);
                }
                assert_se(event < 0 || left == 0);
        }
        snapshot_reader_done(&r);
        return done && event >= 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(buffer_done) Buffer out = {}, again = {};

        if (size == 0 || !rewrite((const char *) data + 1, size - 1, data[0] % 64U + 1, &out))
                return 0;

        assert_se(rewrite(buffer_data(&out), buffer_size(&out), buffer_size(&out), &again));
        assert_se(buffer_size(&again) == buffer_size(&out));
        assert_se(memcmp(buffer_data(&again), buffer_data(&out), buffer_size(&out)) == 0);
        return 0;
}
