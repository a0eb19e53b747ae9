/* SPDX-License-Identifier: MIT */

/*
 * LF-ended records in pieces, against the obvious way to find them in the whole. The first byte says how
 * large the pieces are, the second how long a record may be.
 */

#include "lib/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The record at p must be the one that was found, and allowed. */
static void check_record(const RecordScanner *r, const Buffer *b, size_t n, const uint8_t *p,
                         const uint8_t *end) {
        const uint8_t *lf = memchr(p, '\n', (size_t) (end - p));

        assert_se(lf && n == (size_t) (lf - p) && n <= r->max);
        assert_se(memcmp(buffer_data(b), p, n + 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(buffer_done) Buffer b = {};
        RecordScanner scanner = { .delimiter = '\n' };
        const uint8_t *end = data + size, *at;
        size_t step, n, record;
        int r;

        if (size < 2)
                return 0;
        step = data[0] % 64U + 1;
        scanner.max = data[1];
        at = data + 2;

        for (const uint8_t *p = at; p < end; p += n) {
                n = MIN(step, (size_t) (end - p));
                assert_se(buffer_append(&b, p, n) == 0);

                while ((r = record_peek(&scanner, &b, &record)) > 0) {
                        check_record(&scanner, &b, record, at, end);
                        record_consume(&scanner, &b, record);
                        at += record + 1;
                }

                assert_se(buffer_size(&b) == (size_t) (p + n - at));
                assert_se((r < 0) == (buffer_size(&b) > scanner.max && !memchr(at, '\n', scanner.max + 1)));
                if (r < 0)
                        return 0;
        }

        return 0;
}
