/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include <criterion/criterion.h>

#include "lib/record.h"

TestSuite(record, .timeout = 10);

Test(record, several_in_one_piece) {
        RecordScanner r = { .delimiter = '\n', .max = 100 };
        _cleanup_(buffer_done) Buffer b = {};
        size_t size;

        cr_assert_eq(buffer_append_str(&b, "one\n\nthree\nfo"), 0);

        cr_assert_eq(record_peek(&r, &b, &size), 1);
        cr_assert_eq(size, 3);
        cr_assert_eq(record_peek(&r, &b, &size), 1, "peeking twice gives the same");
        cr_assert_eq(size, 3);
        record_consume(&r, &b, size);

        cr_assert_eq(record_peek(&r, &b, &size), 1);
        cr_assert_eq(size, 0);
        record_consume(&r, &b, size);

        cr_assert_eq(record_peek(&r, &b, &size), 1);
        cr_assert_eq(size, 5);
        cr_assert(memcmp(buffer_data(&b), "three", size) == 0);
        record_consume(&r, &b, size);

        cr_assert_eq(record_peek(&r, &b, &size), 0);
        cr_assert_eq(buffer_size(&b), 2);
}

Test(record, split_at_every_byte) {
        static const char message[] = "{\"a\":1}";       /* with its NUL */
        RecordScanner r = { .delimiter = 0, .max = 7 };
        _cleanup_(buffer_done) Buffer b = {};
        size_t size;

        for (unsigned round = 0; round < 3; round++) {
                for (size_t i = 0; i < sizeof(message); i++) {
                        cr_assert_eq(record_peek(&r, &b, &size), 0);
                        cr_assert_eq(buffer_append(&b, message + i, 1), 0);
                }

                cr_assert_eq(record_peek(&r, &b, &size), 1);
                cr_assert_eq(size, 7);
                record_consume(&r, &b, size);
        }
}

Test(record, too_long) {
        RecordScanner r = { .delimiter = '\n', .max = 4 };
        _cleanup_(buffer_done) Buffer b = {};
        size_t size;

        cr_assert_eq(buffer_append_str(&b, "1234"), 0);
        cr_assert_eq(record_peek(&r, &b, &size), 0);
        cr_assert_eq(buffer_append_str(&b, "5"), 0);
        cr_assert_eq(record_peek(&r, &b, &size), -EMSGSIZE);
        cr_assert_eq(buffer_append_str(&b, "\n"), 0);
        cr_assert_eq(record_peek(&r, &b, &size), -EMSGSIZE, "also once it is complete");
}

Test(record, exactly_as_long_as_allowed) {
        RecordScanner r = { .delimiter = '\n', .max = 4 };
        _cleanup_(buffer_done) Buffer b = {};
        size_t size;

        cr_assert_eq(buffer_append_str(&b, "1234\n"), 0);
        cr_assert_eq(record_peek(&r, &b, &size), 1);
        cr_assert_eq(size, 4);
}

/* A megabyte in small pieces is scanned once, not once a piece: what was looked at is not read again. */
Test(record, looked_at_bytes_are_not_read_again) {
        RecordScanner r = { .delimiter = '\n', .max = MIB };
        _cleanup_(buffer_done) Buffer b = {};
        size_t size;

        cr_assert_eq(buffer_append_str(&b, "abcdef"), 0);
        cr_assert_eq(record_peek(&r, &b, &size), 0);

        b.data[b.start + 2] = '\n';
        cr_assert_eq(record_peek(&r, &b, &size), 0);

        cr_assert_eq(buffer_append_str(&b, "g\n"), 0);
        cr_assert_eq(record_peek(&r, &b, &size), 1);
        cr_assert_eq(size, 7);
}

Test(record, empty_buffer) {
        RecordScanner r = { .delimiter = '\n' };
        Buffer b = {};
        size_t size;

        cr_assert_eq(record_peek(&r, &b, &size), 0);
}
