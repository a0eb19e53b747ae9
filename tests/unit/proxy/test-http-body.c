/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "proxy/http-body.h"

TestSuite(proxy_http_body, .timeout = 30);

typedef struct Case {
        HttpBodyKind kind;
        uint64_t length;
        const char *text;
        int result;
        size_t used;
        const char *out;
} Case;

/* Cut at two places. */
static void check_cut(const Case *c, size_t first, size_t second) {
        size_t size = strlen(c->text), ends[] = { first, second, size }, at = 0, used = 0;
        _cleanup_(buffer_done) Buffer out = {};
        HttpBody b;
        int r = HTTP_MORE;

        http_body_init(&b, c->kind, c->length);
        for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
                size_t n = ends[i] - at;

                r = http_body_feed(&b, c->text + at, n, &used, &out);
                cr_assert_leq(used, n);
                at += used;
                if (r != HTTP_MORE)
                        break;
                cr_assert_eq(used, n);
        }

        cr_assert_eq(r, c->result, "%s cut at %zu and %zu: %d", c->text, first, second, r);
        cr_assert_eq(at, c->used, "%s cut at %zu and %zu: %zu used", c->text, first, second, at);
        cr_assert_eq(buffer_size(&out), strlen(c->out), "%s: %.*s", c->text, (int) buffer_size(&out), buffer_data(&out));
        cr_assert_eq(memcmp(buffer_data(&out), c->out, strlen(c->out)), 0, "%s", c->text);
        cr_assert_eq(http_body_is_complete(&b), r == HTTP_OK);

        /* What is over stays over. */
        if (r != HTTP_MORE) {
                cr_assert_eq(http_body_feed(&b, "5\r\n", 3, &used, &out), r);
                cr_assert_eq(used, 0);
                cr_assert_eq(buffer_size(&out), strlen(c->out));
        }
}

static void check(const Case *cases, size_t n) {
        for (size_t i = 0; i < n; i++)
                for (size_t first = 0; first <= strlen(cases[i].text); first++)
                        for (size_t second = first; second <= strlen(cases[i].text); second++)
                                check_cut(&cases[i], first, second);
}

Test(proxy_http_body, plain) {
        static const Case cases[] = {
                { HTTP_BODY_NONE, 0, "", HTTP_OK, 0, "" },
                { HTTP_BODY_NONE, 7, "GET", HTTP_OK, 0, "" },
                { HTTP_BODY_LENGTH, 0, "GET", HTTP_OK, 0, "" },
                { HTTP_BODY_LENGTH, 3, "", HTTP_MORE, 0, "" },
                { HTTP_BODY_LENGTH, 3, "ab", HTTP_MORE, 2, "ab" },
                { HTTP_BODY_LENGTH, 3, "abc", HTTP_OK, 3, "abc" },
                { HTTP_BODY_LENGTH, 3, "abcGET http://", HTTP_OK, 3, "abc" },
                { HTTP_BODY_LENGTH, UINT64_C(1) << 62, "abc", HTTP_MORE, 3, "abc" },
        };

        check(cases, ELEMENTSOF(cases));
}

#define CHUNKED HTTP_BODY_CHUNKED, 0

Test(proxy_http_body, chunked) {
        static const Case cases[] = {
                { CHUNKED, "", HTTP_MORE, 0, "" },
                { CHUNKED, "0\r\n\r\n", HTTP_OK, 5, "0\r\n\r\n" },
                { CHUNKED, "0\r\n\r\nGET", HTTP_OK, 5, "0\r\n\r\n" },
                { CHUNKED, "0\r\n\r", HTTP_MORE, 4, "" },
                { CHUNKED, "3\r\nabc\r\n0\r\n\r\n0\r\n\r\n", HTTP_OK, 13, "3\r\nabc\r\n0\r\n\r\n" },
                { CHUNKED, "a\r\n0123\r\n\r\nx\r\r\n1\r\n\n\r\n000\r\n\r\n!", HTTP_OK, 15 + 6 + 7,
                  "a\r\n0123\r\n\r\nx\r\r\n1\r\n\n\r\n0\r\n\r\n" },
                { CHUNKED, "3\r\nab", HTTP_MORE, 5, "3\r\nab" },
                { CHUNKED, "3\r\nabc\r", HTTP_MORE, 7, "3\r\nabc" },
                { CHUNKED, "0000000000000001\r\na\r\n", HTTP_MORE, 21, "1\r\na\r\n" },
                { CHUNKED, "ffffFFFFffffFFFF\r\na", HTTP_MORE, 19, "ffffffffffffffff\r\na" },
                { CHUNKED, "0\r\nA: b\r\nC:\td\xff\r\n\r\nx", HTTP_OK, 18, "0\r\n\r\n" },
        };

        check(cases, ELEMENTSOF(cases));
}

Test(proxy_http_body, malformed) {
        static const Case cases[] = {
                { CHUNKED, "\r\n", HTTP_E_CHUNK, 0, "" },
                { CHUNKED, " 1\r\n", HTTP_E_CHUNK, 0, "" },
                { CHUNKED, "+1\r\n", HTTP_E_CHUNK, 0, "" },
                { CHUNKED, "-1\r\n", HTTP_E_CHUNK, 0, "" },
                { CHUNKED, "0x1\r\n", HTTP_E_CHUNK, 1, "" },
                { CHUNKED, "1 \r\n", HTTP_E_CHUNK, 1, "" },
                { CHUNKED, "1\t\r\n", HTTP_E_CHUNK, 1, "" },
                { CHUNKED, "1;a=b\r\n", HTTP_E_CHUNK, 1, "" },
                { CHUNKED, "1\na", HTTP_E_CHUNK, 1, "" },
                { CHUNKED, "1\ra", HTTP_E_CHUNK, 2, "" },
                { CHUNKED, "g\r\n", HTTP_E_CHUNK, 0, "" },
                { CHUNKED, "00000000000000001\r\n", HTTP_E_CHUNK, 16, "" },
                { CHUNKED, "1ffffffffffffffff\r\n", HTTP_E_CHUNK, 16, "" },
                { CHUNKED, "1\r\nab\r\n", HTTP_E_CHUNK, 4, "1\r\na" },
                { CHUNKED, "1\r\na\n0\r\n", HTTP_E_CHUNK, 4, "1\r\na" },
                { CHUNKED, "1\r\na\r0", HTTP_E_CHUNK, 5, "1\r\na" },
                { CHUNKED, "1\r\na\r\n\r\n", HTTP_E_CHUNK, 6, "1\r\na\r\n" },
                { CHUNKED, "0\n\n", HTTP_E_CHUNK, 1, "" },
                { CHUNKED, "0\r\n\n", HTTP_E_TRAILER, 3, "" },
                { CHUNKED, "0\r\n\rG", HTTP_E_TRAILER, 4, "" },
                { CHUNKED, "0\r\nGET / HTTP/1.1\r\n", HTTP_E_TRAILER, 6, "" },
                { CHUNKED, "0\r\n A: b\r\n", HTTP_E_TRAILER, 3, "" },
                { CHUNKED, "0\r\n: b\r\n", HTTP_E_TRAILER, 3, "" },
                { CHUNKED, "0\r\nA : b\r\n", HTTP_E_TRAILER, 4, "" },
                { CHUNKED, "0\r\nA\r\n", HTTP_E_TRAILER, 4, "" },
                { CHUNKED, "0\r\nA: b\r\n c\r\n", HTTP_E_TRAILER, 9, "" },
                { CHUNKED, "0\r\nA: b\n\n", HTTP_E_TRAILER, 7, "" },
                { CHUNKED, "0\r\nA: b\rC", HTTP_E_TRAILER, 8, "" },
                { CHUNKED, "0\r\nA: \x01\r\n", HTTP_E_TRAILER, 6, "" },
                { CHUNKED, "2\r\nab\r\n0\r\nA: \x7f\r\n", HTTP_E_TRAILER, 13, "2\r\nab\r\n" },
        };

        check(cases, ELEMENTSOF(cases));
}

Test(proxy_http_body, nul) {
        static const char text[] = "0\r\nA\0: b\r\n\r\n";
        _cleanup_(buffer_done) Buffer out = {};
        size_t used;
        HttpBody b;

        http_body_init(&b, CHUNKED);
        cr_assert_eq(http_body_feed(&b, text, sizeof(text) - 1, &used, &out), HTTP_E_TRAILER);
        cr_assert_eq(used, 4);
        cr_assert_eq(buffer_size(&out), 0);
}

/* The empty line counts. */
Test(proxy_http_body, trailer_cap) {
        for (size_t more = 0; more < 2; more++) {
                _cleanup_(buffer_done) Buffer in = {}, out = {};
                size_t used;
                HttpBody b;

                cr_assert_eq(buffer_append_str(&in, "0\r\nA:"), 0);
                for (size_t i = 0; i < HTTP_TRAILER_MAX - 6 + more; i++)
                        cr_assert_eq(buffer_append_str(&in, "x"), 0);
                cr_assert_eq(buffer_append_str(&in, "\r\n\r\n"), 0);

                http_body_init(&b, CHUNKED);
                cr_assert_eq(http_body_feed(&b, buffer_data(&in), buffer_size(&in), &used, &out),
                             more ? HTTP_E_TRAILER_LONG : HTTP_OK);
                cr_assert_eq(used, 3 + HTTP_TRAILER_MAX);
                cr_assert_eq(buffer_size(&out), more ? 0 : 5);
        }
}
