/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "proxy/http-forward.h"

TestSuite(proxy_http_forward, .timeout = 10);

static int forward(const char *text, const HttpInject *inject, Buffer *out) {
        HttpRequest r = {};

        cr_assert_eq(http_request_read(&r, text, strlen(text)), HTTP_OK, "%s", text);
        return http_request_forward(&r, inject, out);
}

static void check(const char *text, const HttpInject *inject, const char *expected) {
        _cleanup_(buffer_done) Buffer out = {};
        _cleanup_free_ char *got = NULL;

        cr_assert_eq(forward(text, inject, &out), 0);
        cr_assert_eq(buffer_take(&out, &got, NULL), 0);
        cr_assert_str_eq(got, expected);
}

#define CLOSE "Connection: close\r\n\r\n"

Test(proxy_http_forward, request_lines) {
        static const struct {
                const char *text, *expected;
        } cases[] = {
                { "GET http://a/b?c HTTP/1.1\r\nHost: a\r\n\r\n", "GET /b?c HTTP/1.1\r\nHost: a\r\n" CLOSE },
                { "GET http://a HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\n" CLOSE },
                { "GET http://a?b HTTP/1.0\r\n\r\n", "GET /?b HTTP/1.0\r\nHost: a\r\n" CLOSE },
                { "OPTIONS http://a HTTP/1.0\r\n\r\n", "OPTIONS * HTTP/1.0\r\nHost: a\r\n" CLOSE },
                { "OPTIONS http://a/ HTTP/1.0\r\n\r\n", "OPTIONS / HTTP/1.0\r\nHost: a\r\n" CLOSE },
                { "X http://A.Bc.:8080// HTTP/1.0\r\n\r\n", "X // HTTP/1.0\r\nHost: a.bc:8080\r\n" CLOSE },
                { "X http://[::A]:80/ HTTP/1.0\r\n\r\n", "X / HTTP/1.0\r\nHost: [::a]\r\n" CLOSE },
                { "X http://[::A]:81/ HTTP/1.0\r\n\r\n", "X / HTTP/1.0\r\nHost: [::a]:81\r\n" CLOSE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                check(cases[i].text, NULL, cases[i].expected);
}

Test(proxy_http_forward, fields) {
        check("POST http://a/ HTTP/1.1\r\nB:  1 \r\nhost: A:80\r\nProxy-Authorization: x\r\nproxy-connection: keep-alive\r\n"
              "Connection: close, X-One\r\nX-One: 1\r\nX-Two: \r\nKeep-Alive: 1\r\nTE: trailers\r\nTrailer: T\r\n"
              "Connection: x-three\r\nx-Three: 3\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nB: 2\r\nExpect: 100-Continue\r\n"
              "content-length: 007\r\nProxying: 1\r\nAuthorization: me\r\n\r\nwhatever",
              NULL,
              "POST / HTTP/1.1\r\nHost: a\r\nB: 1\r\nX-Two: \r\nB: 2\r\nProxying: 1\r\nAuthorization: me\r\n"
              "Expect: 100-continue\r\nContent-Length: 7\r\n" CLOSE);
        check("POST http://a/ HTTP/1.1\r\nHost: a\r\ntransfer-encoding: CHUNKED\r\nVia: 1.1 me\r\n\r\n", NULL,
              "POST / HTTP/1.1\r\nHost: a\r\nVia: 1.1 me\r\nTransfer-Encoding: chunked\r\n" CLOSE);
        check("POST http://a/ HTTP/1.0\r\nExpect: x\r\nContent-Length: 0\r\n\r\n", NULL,
              "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 0\r\n" CLOSE);
}

Test(proxy_http_forward, inject) {
        static const HttpInject key = { "Authorization", "Bearer \xc3\xa4 1" };

        check("GET http://a/ HTTP/1.0\r\nauthorization: mine\r\nA: b\r\nAUTHORIZATION: twice\r\n\r\n", &key,
              "GET / HTTP/1.0\r\nHost: a\r\nA: b\r\nAuthorization: Bearer \xc3\xa4 1\r\n" CLOSE);
        check("GET http://a/ HTTP/1.0\r\nConnection: Authorizatio\r\n\r\n", &key,
              "GET / HTTP/1.0\r\nHost: a\r\nAuthorization: Bearer \xc3\xa4 1\r\n" CLOSE);
}

Test(proxy_http_forward, bad_inject) {
        static const HttpInject bad[] = {
                { "", "a" },     { "a b", "c" },  { "a:", "c" },     { "a\r\nb", "c" }, { "a", "b\r\nc: d" }, { "a", "b\nc" },
                { "host", "b" }, { "a", "\x7f" }, { "Expect", "x" }, { "Connection", "x" },
                { "content-length", "1" }, { "Transfer-Encoding", "chunked" },
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_(buffer_done) Buffer out = {};

                cr_assert_eq(forward("GET http://a/ HTTP/1.0\r\n\r\n", &bad[i], &out), -EINVAL, "%zu", i);
                cr_assert_eq(buffer_size(&out), 0);
        }
}
