/* SPDX-License-Identifier: MIT */

/* How long a head and its parts may be. */

#include "lib/buffer.h"
#include "proxy/http-chars.h"
#include "http-fixture.h"

TestSuite(proxy_http_caps, .timeout = 30);

static void append_n(Buffer *b, char c, size_t n) {
        char *p;

        cr_assert_eq(buffer_reserve(b, n, &p), 0);
        memset(p, c, n);
        buffer_commit(b, n);
}

static HttpError read_buffer(const Buffer *b) {
        HttpRequest r;

        return read_head(buffer_data(b), buffer_size(b), &r);
}

Test(proxy_http_caps, line) {
        for (int more = 0; more < 2; more++) {
                _cleanup_(buffer_done) Buffer b = {};

                (void) buffer_append_str(&b, "GET http://a/");
                append_n(&b, 'x', HTTP_REQUEST_LINE_MAX - strlen("GET http://a/ HTTP/1.0") + (size_t) more);
                (void) buffer_append_str(&b, " HTTP/1.0\r\n\r\n");
                cr_assert_eq(read_buffer(&b), more ? HTTP_E_REQUEST_LINE_LONG : HTTP_OK);
        }
}

Test(proxy_http_caps, host) {
        for (int more = 0; more < 2; more++) {
                _cleanup_(buffer_done) Buffer b = {};

                (void) buffer_append_str(&b, "CONNECT ");
                append_n(&b, 'x', HOST_TEXT_MAX + (size_t) more);
                (void) buffer_append_str(&b, ":1 HTTP/1.0\r\n\r\n");
                cr_assert_eq(read_buffer(&b), more ? HTTP_E_HOST_TEXT : HTTP_OK);
        }
}

Test(proxy_http_caps, head) {
        for (int more = 0; more < 2; more++) {
                _cleanup_(buffer_done) Buffer b = {};

                (void) buffer_append_str(&b, "GET http://a/ HTTP/1.0\r\nA: ");
                append_n(&b, 'x', HTTP_HEAD_MAX - buffer_size(&b) - 4 + (size_t) more);
                (void) buffer_append_str(&b, "\r\n\r\n");
                cr_assert_eq(buffer_size(&b), HTTP_HEAD_MAX + (size_t) more);
                cr_assert_eq(read_buffer(&b), more ? HTTP_E_HEAD_LONG : HTTP_OK);
        }
}

Test(proxy_http_caps, endless) {
        _cleanup_(buffer_done) Buffer b = {}, line = {};

        (void) buffer_append_str(&b, "GET http://a/ HTTP/1.0\r\nA: ");
        append_n(&b, 'x', 100000);
        cr_assert_eq(read_buffer(&b), HTTP_E_HEAD_LONG);
        append_n(&line, 'x', 100000);
        cr_assert_eq(read_buffer(&line), HTTP_E_REQUEST_LINE_LONG);
}

Test(proxy_http_caps, fields) {
        for (unsigned more = 0; more < 2; more++) {
                _cleanup_(buffer_done) Buffer b = {}, options = {};

                (void) buffer_append_str(&b, "GET http://a/ HTTP/1.0\r\n");
                for (unsigned i = 0; i < HTTP_FIELDS_MAX + more; i++)
                        (void) buffer_append_str(&b, "A: b\r\n");
                (void) buffer_append_str(&b, "\r\n");
                cr_assert_eq(read_buffer(&b), more ? HTTP_E_FIELDS_MANY : HTTP_OK);

                (void) buffer_append_str(&options, "GET http://a/ HTTP/1.0\r\nConnection: a\r\nConnection: b");
                for (unsigned i = 0; i < 98 + more; i++)
                        (void) buffer_append_str(&options, i % 2 ? ",c" : ",");
                (void) buffer_append_str(&options, "x\r\n\r\n");
                cr_assert_eq(read_buffer(&options), more ? HTTP_E_FIELDS_MANY : HTTP_OK);
        }
}
