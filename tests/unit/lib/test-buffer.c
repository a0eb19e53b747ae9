/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include <criterion/criterion.h>

#include "lib/buffer.h"

TestSuite(buffer, .timeout = 10);

static void assert_content(const Buffer *b, const char *expected) {
        cr_assert_eq(buffer_size(b), strlen(expected));
        cr_assert(memcmp(buffer_data(b), expected, strlen(expected)) == 0, "content is not '%s'", expected);
}

Test(buffer, starts_empty_without_memory) {
        Buffer b = {};

        cr_assert_eq(buffer_size(&b), 0);
        cr_assert_str_eq(buffer_data(&b), "");
        cr_assert_null(b.data);
        buffer_done(&b);
}

Test(buffer, appends_and_consumes) {
        _cleanup_(buffer_done) Buffer b = {};

        cr_assert_eq(buffer_append(&b, NULL, 0), 0);
        cr_assert_eq(buffer_append_str(&b, "hello "), 0);
        cr_assert_eq(buffer_append(&b, "world", 5), 0);
        assert_content(&b, "hello world");

        buffer_consume(&b, 6);
        assert_content(&b, "world");
        buffer_consume(&b, 0);
        buffer_consume(&b, 5);
        assert_content(&b, "");
}

Test(buffer, prints) {
        _cleanup_(buffer_done) Buffer b = {};
        char big[1000];

        cr_assert_eq(buffer_printf(&b, "%d-%s", 42, "x"), 0);
        cr_assert_eq(buffer_printf(&b, "%s", ""), 0);
        assert_content(&b, "42-x");

        memset(big, 'y', sizeof(big));
        cr_assert_eq(buffer_printf(&b, "%.*s", (int) sizeof(big), big), 0);
        cr_assert_eq(buffer_size(&b), 4 + sizeof(big));
}

Test(buffer, gives_memory_back_when_empty) {
        _cleanup_(buffer_done) Buffer b = {};
        char *p;

        cr_assert_eq(buffer_reserve(&b, MIB, &p), 0);
        memset(p, 'x', MIB);
        buffer_commit(&b, MIB);
        cr_assert_geq(b.allocated, MIB);
        buffer_consume(&b, MIB);
        cr_assert_leq(b.allocated, BUFFER_KEEP);

        /* A read that gave nothing. */
        cr_assert_eq(buffer_reserve(&b, MIB, &p), 0);
        buffer_commit(&b, 0);
        cr_assert_leq(b.allocated, BUFFER_KEEP);
}

Test(buffer, keeps_a_small_allocation) {
        _cleanup_(buffer_done) Buffer b = {};
        const char *data;

        cr_assert_eq(buffer_append_str(&b, "abc"), 0);
        data = b.data;
        buffer_consume(&b, 3);
        cr_assert_eq(buffer_append_str(&b, "def"), 0);
        cr_assert_eq(b.data, data);
}

Test(buffer, refuses_sizes_that_overflow) {
        _cleanup_(buffer_done) Buffer b = {};
        char *p = NULL;

        cr_assert_eq(buffer_append_str(&b, "abc"), 0);
        cr_assert_eq(buffer_reserve(&b, SIZE_MAX, &p), -ENOMEM);
        cr_assert_eq(buffer_reserve(&b, SIZE_MAX - 3, &p), -ENOMEM);
        cr_assert_eq(buffer_reserve(&b, SIZE_MAX / 2, &p), -ENOMEM);
        cr_assert_null(p);
        assert_content(&b, "abc");
}

/* A queue that never runs empty: the memory stays in proportion to what is in it, and no byte is lost. */
Test(buffer, is_a_queue) {
        _cleanup_(buffer_done) Buffer b = {};
        unsigned in = 0, out = 0;

        for (unsigned round = 0; round < 20000; round++) {
                for (unsigned i = 0; i < 1 + round % 7; i++) {
                        char c = (char) (in++ % 251);

                        cr_assert_eq(buffer_append(&b, &c, 1), 0);
                }

                while (buffer_size(&b) > 100) {
                        if (*buffer_data(&b) != (char) (out++ % 251))
                                cr_assert_fail("byte %u is wrong", out - 1);
                        buffer_consume(&b, 1);
                }
        }

        cr_assert_eq(in - out, 100);
        cr_assert_leq(b.allocated, 512);
}

Test(buffer, hands_its_content_over) {
        _cleanup_free_ char *s = NULL, *empty = NULL;
        Buffer b = {};
        size_t size;

        cr_assert_eq(buffer_append(&b, "xab\0cd", 6), 0);
        buffer_consume(&b, 1);
        cr_assert_eq(buffer_take(&b, &s, &size), 0);
        cr_assert_eq(size, 5);
        cr_assert(memcmp(s, "ab\0cd", 6) == 0);
        cr_assert_null(b.data);
        cr_assert_eq(buffer_size(&b), 0);

        cr_assert_eq(buffer_take(&b, &empty, NULL), 0);
        cr_assert_str_eq(empty, "");
}
