/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include "lib/buffer.h"
#include "http-fixture.h"

TestSuite(proxy_http_request, .timeout = 30);

static HttpError read_text(const char *text, HttpRequest *ret) {
        return read_head(text, strlen(text), ret);
}

static bool equals(Slice s, const char *text) {
        return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

#define H "Host: a\r\n"
#define GET(fields) "GET http://a/ HTTP/1.1\r\n" fields "\r\n"
#define POST(fields) "POST http://a/ HTTP/1.1\r\n" H fields "\r\n"
#define TARGET(target) "GET " target " HTTP/1.0\r\n\r\n"
#define CONNECT(target) "CONNECT " target " HTTP/1.0\r\n\r\n"

Test(proxy_http_request, targets) {
        static const struct {
                const char *text, *host;
                unsigned port;
                const char *path;
                bool is_ipv6;
        } good[] = {
                { TARGET("http://a/"), "a", 80, "/" },
                { TARGET("http://a"), "a", 80, "" },
                { TARGET("HTTP://A.b-c_d./x"), "A.b-c_d.", 80, "/x" },
                { TARGET("http://a?q=http://b/"), "a", 80, "?q=http://b/" },
                { TARGET("http://a:8080/b@c:9//d?e{|}[]\"%00"), "a", 8080, "/b@c:9//d?e{|}[]\"%00" },
                { TARGET("http://a:65535"), "a", 65535, "" },
                { TARGET("http://[::1]/"), "::1", 80, "/", true },
                { TARGET("http://[::FFFF:1.2.3.4]:1/"), "::FFFF:1.2.3.4", 1, "/", true },
                { TARGET("http://127.0.0.1/"), "127.0.0.1", 80, "/" },
                { CONNECT("a:443"), "a", 443, "" },
                { CONNECT("a.b.:1"), "a.b.", 1, "" },
                { CONNECT("[fe80::1]:65535"), "fe80::1", 65535, "", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                HttpRequest r;

                cr_assert_eq(read_text(good[i].text, &r), HTTP_OK, "%s", good[i].text);
                cr_assert_eq(r.is_connect, good[i].text[0] == 'C');
                cr_assert(equals(r.method, r.is_connect ? "CONNECT" : "GET"));
                cr_assert(equals(r.target.authority.host, good[i].host), "%s", good[i].text);
                cr_assert_eq(r.target.authority.port, good[i].port, "%s", good[i].text);
                cr_assert_eq(r.target.authority.is_ipv6, good[i].is_ipv6, "%s", good[i].text);
                cr_assert(equals(r.target.path, good[i].path), "%s", good[i].text);
                cr_assert_eq(r.head_size, strlen(good[i].text));
        }
}

typedef struct Case {
        const char *text;
        HttpError error;
} Case;

static void check(const Case *cases, size_t n) {
        for (size_t i = 0; i < n; i++) {
                HttpRequest r;
                HttpError e = read_text(cases[i].text, &r);

                cr_assert_eq(e, cases[i].error, "%s: %d", cases[i].text, (int) e);
        }
}

Test(proxy_http_request, bad_targets) {
        static const Case cases[] = {
                { TARGET("/"), HTTP_E_TARGET_FORM },
                { TARGET("*"), HTTP_E_TARGET_FORM },
                { TARGET("a:80"), HTTP_E_TARGET_FORM },
                { TARGET("ftp://a/"), HTTP_E_TARGET_FORM },
                { TARGET("http:/a/"), HTTP_E_TARGET_FORM },
                { TARGET("http:a"), HTTP_E_TARGET_FORM },
                { TARGET("//a/"), HTTP_E_TARGET_FORM },
                { TARGET("https://a/"), HTTP_E_TARGET_HTTPS },
                { TARGET("HttpS://a:443/"), HTTP_E_TARGET_HTTPS },
                { TARGET("http://a@b/"), HTTP_E_USERINFO },
                { TARGET("http://a:b@c/"), HTTP_E_USERINFO },
                { TARGET("http://@a/"), HTTP_E_USERINFO },
                { TARGET("http://a\\@b/"), HTTP_E_USERINFO },
                { TARGET("http://a\\b/"), HTTP_E_HOST_TEXT },
                { TARGET("http://a%2eb/"), HTTP_E_HOST_TEXT },
                { TARGET("http://a%00b/"), HTTP_E_HOST_TEXT },
                { TARGET("http://\xc3\xa4/"), HTTP_E_HOST_TEXT },
                { TARGET("http://a,b/"), HTTP_E_HOST_TEXT },
                { TARGET("http://a;b/"), HTTP_E_HOST_TEXT },
                { TARGET("http://"), HTTP_E_HOST_TEXT },
                { TARGET("http:///path"), HTTP_E_HOST_TEXT },
                { TARGET("http://?q"), HTTP_E_HOST_TEXT },
                { TARGET("http://./"), HTTP_E_HOST_TEXT },
                { TARGET("http://:80/"), HTTP_E_HOST_TEXT },
                { TARGET("http://::1/"), HTTP_E_HOST_TEXT },
                { TARGET("http://[::1/"), HTTP_E_HOST_TEXT },
                { TARGET("http://[]/"), HTTP_E_HOST_TEXT },
                { TARGET("http://[a]/"), HTTP_E_HOST_TEXT },
                { TARGET("http://[fe80::1%25eth0]/"), HTTP_E_HOST_TEXT },
                { TARGET("http://[v1.x]/"), HTTP_E_HOST_TEXT },
                { TARGET("http://[::1]80/"), HTTP_E_HOST_TEXT },
                { TARGET("http://[::1]a/"), HTTP_E_HOST_TEXT },
                { TARGET("http://a:/"), HTTP_E_PORT },
                { TARGET("http://a:0/"), HTTP_E_PORT },
                { TARGET("http://a:080/"), HTTP_E_PORT },
                { TARGET("http://a:+80/"), HTTP_E_PORT },
                { TARGET("http://a:65536/"), HTTP_E_PORT },
                { TARGET("http://a:100000/"), HTTP_E_PORT },
                { TARGET("http://a:4294967376/"), HTTP_E_PORT },
                { TARGET("http://a:8a/"), HTTP_E_PORT },
                { TARGET("http://[::1]:/"), HTTP_E_PORT },
                { TARGET("http://a/#f"), HTTP_E_TARGET_CHARACTER },
                { TARGET("http://a#@b/"), HTTP_E_TARGET_CHARACTER },
                { TARGET("http://a/b\\c"), HTTP_E_TARGET_CHARACTER },
                { TARGET("http://a/\xc3\xa4"), HTTP_E_TARGET_CHARACTER },
                { TARGET("http://a/\tb"), HTTP_E_TARGET_CHARACTER },
                { TARGET("http://a/b c"), HTTP_E_REQUEST_LINE },
                { TARGET(""), HTTP_E_REQUEST_LINE },
                { CONNECT("a"), HTTP_E_TARGET_CONNECT },
                { CONNECT("a:443/"), HTTP_E_TARGET_CONNECT },
                { CONNECT("http://a:443"), HTTP_E_TARGET_CONNECT },
                { CONNECT("[::1]"), HTTP_E_TARGET_CONNECT },
                { CONNECT("a:80:90"), HTTP_E_PORT },
                { CONNECT("a:443?b"), HTTP_E_PORT },
                { CONNECT("a:443#b"), HTTP_E_PORT },
                { CONNECT("a:"), HTTP_E_PORT },
                { CONNECT("a:0"), HTTP_E_PORT },
                { CONNECT("a:-1"), HTTP_E_PORT },
                { CONNECT("a:+443"), HTTP_E_PORT },
                { CONNECT("a:00443"), HTTP_E_PORT },
                { CONNECT("a:65536"), HTTP_E_PORT },
                { CONNECT("a:443 "), HTTP_E_REQUEST_LINE },
                { CONNECT("u@a:443"), HTTP_E_USERINFO },
                { CONNECT("u:p@a:443"), HTTP_E_USERINFO },
                { CONNECT("a%2e:443"), HTTP_E_HOST_TEXT },
                { CONNECT(":443"), HTTP_E_HOST_TEXT },
                { CONNECT("::1:443"), HTTP_E_HOST_TEXT },
                { CONNECT("[::1]x:443"), HTTP_E_HOST_TEXT },
                { CONNECT("*:443"), HTTP_E_HOST_TEXT },
        };

        check(cases, ELEMENTSOF(cases));
}

Test(proxy_http_request, lines) {
        static const Case cases[] = {
                { "", HTTP_MORE },
                { "G", HTTP_MORE },
                { "GET http://a/ HTTP/1.1\r\n", HTTP_MORE },
                { "GET http://a/ HTTP/1.1\r\n" H "\r", HTTP_MORE },
                { "\r\n" GET(H), HTTP_E_REQUEST_LINE },
                { "GET http://a/\r\n", HTTP_E_REQUEST_LINE },
                { "GET http://a/ \r\n", HTTP_E_REQUEST_LINE },
                { "GET\r\n", HTTP_E_REQUEST_LINE },
                { " GET http://a/ HTTP/1.1\r\n", HTTP_E_REQUEST_LINE },
                { " http://a/ HTTP/1.1\r\n", HTTP_E_METHOD },
                { "GET  http://a/ HTTP/1.1\r\n", HTTP_E_REQUEST_LINE },
                { "GET http://a/  HTTP/1.1\r\n", HTTP_E_REQUEST_LINE },
                { "GET http://a/ HTTP/1.1 \r\n", HTTP_E_REQUEST_LINE },
                { "GET\thttp://a/\tHTTP/1.1\r\n", HTTP_E_REQUEST_LINE },
                { "GET http://a/ http/1.1\r\n", HTTP_E_REQUEST_LINE },
                { "GET http://a/ HTTP/1\r\n", HTTP_E_REQUEST_LINE },
                { "GET http://a/ HTTP/1.10\r\n", HTTP_E_REQUEST_LINE },
                { "GET http://a/ HTTP/1,1\r\n", HTTP_E_REQUEST_LINE },
                { "GET http://a/ HTTP/2.0\r\n", HTTP_E_VERSION },
                { "GET http://a/ HTTP/0.9\r\n", HTTP_E_VERSION },
                { "GET http://a/ HTTP/1.2\r\n", HTTP_E_VERSION },
                { "PRI * HTTP/2.0\r\n", HTTP_E_VERSION },
                { "G(T http://a/ HTTP/1.1\r\n", HTTP_E_METHOD },
                { "G\xc3\xa4T http://a/ HTTP/1.1\r\n", HTTP_E_METHOD },
                { "connect a:443 HTTP/1.1\r\n", HTTP_E_METHOD },
                { "TRACE http://a/ HTTP/1.1\r\n", HTTP_E_TRACE },
                { "track http://a/ HTTP/1.1\r\n", HTTP_E_TRACE },
                { "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef http://a/ HTTP/1.0\r\n\r\n", HTTP_OK },
                { "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg http://a/ HTTP/1.0\r\n", HTTP_E_METHOD },
                { "GET http://a/ HTTP/1.1\n", HTTP_E_LINE_END },
                { "GET http://a/ HTTP/1.1\rH", HTTP_E_LINE_END },
                { "GET http://a/\rb HTTP/1.1\r\n", HTTP_E_LINE_END },
                { "GET http://a/ HTTP/1.1\r\r\n", HTTP_E_LINE_END },
                { GET(H "A: b\n"), HTTP_E_LINE_END },
                { GET(H "A: b\rC: d\r\n"), HTTP_E_LINE_END },
                { "GET http://a/ HTTP/1.1\r\n" H "\n", HTTP_E_LINE_END },
                { "GET http://a/ HTTP/1.1\r\n" H "\r\r\n", HTTP_E_LINE_END },
                { GET(H "A: \x01\r\n"), HTTP_E_CONTROL },
                { GET(H "A: \x7f\r\n"), HTTP_E_CONTROL },
                { GET(H "Transfer-Encoding: \x0b" "chunked\r\n"), HTTP_E_CONTROL },
                { "\x16\x03\x01", HTTP_E_CONTROL },
        };

        check(cases, ELEMENTSOF(cases));
}

Test(proxy_http_request, nul) {
        static const char in_value[] = GET(H "A: b\0c\r\n"), in_name[] = GET(H "A\0: b\r\n"), first[] = "\0GET";
        HttpRequest r;

        cr_assert_eq(read_head(in_value, sizeof(in_value) - 1, &r), HTTP_E_CONTROL);
        cr_assert_eq(read_head(in_name, sizeof(in_name) - 1, &r), HTTP_E_CONTROL);
        cr_assert_eq(read_head(first, sizeof(first) - 1, &r), HTTP_E_CONTROL);
}

Test(proxy_http_request, fields) {
        static const Case cases[] = {
                { GET(H "A:\r\n"), HTTP_OK },
                { GET(H "A:b\r\n"), HTTP_OK },
                { GET(H "A:\t b\xff c \t\r\n"), HTTP_OK },
                { GET(H "!#$%&'*+-.^_`|~09azAZ: b\r\n"), HTTP_OK },
                { GET(H "A : b\r\n"), HTTP_E_FIELD_NAME },
                { GET(H "A\t: b\r\n"), HTTP_E_FIELD_NAME },
                { GET(H "A b: c\r\n"), HTTP_E_FIELD_NAME },
                { GET(H ": c\r\n"), HTTP_E_FIELD_NAME },
                { GET(H "A\r\n"), HTTP_E_FIELD_NAME },
                { GET(H "\xc3\xa4: c\r\n"), HTTP_E_FIELD_NAME },
                { GET(H "Content-Length : 5\r\n"), HTTP_E_FIELD_NAME },
                { GET(H "(A): c\r\n"), HTTP_E_FIELD_NAME },
                { GET(H "A: b\r\n c\r\n"), HTTP_E_FIELD_FOLD },
                { GET(H "A: b\r\n\tc: d\r\n"), HTTP_E_FIELD_FOLD },
                { GET(" " H), HTTP_E_FIELD_FOLD },
                { GET(H " \r\n"), HTTP_E_FIELD_FOLD },
        };

        check(cases, ELEMENTSOF(cases));
}

Test(proxy_http_request, hosts) {
        static const Case cases[] = {
                { GET("host:A\r\n"), HTTP_OK },
                { GET("Host: a.:80\r\n"), HTTP_OK },
                { "GET http://a.:8080/ HTTP/1.1\r\nHost: A:8080\r\n\r\n", HTTP_OK },
                { "GET http://[::A]/ HTTP/1.1\r\nHost: [::a]\r\n\r\n", HTTP_OK },
                { "GET http://a/ HTTP/1.0\r\n\r\n", HTTP_OK },
                { GET(""), HTTP_E_HOST_MISSING },
                { GET(H H), HTTP_E_HOST_TWICE },
                { GET(H "hOST: b\r\n"), HTTP_E_HOST_TWICE },
                { "GET http://a/ HTTP/1.0\r\n" H H "\r\n", HTTP_E_HOST_TWICE },
                { GET("Host: b\r\n"), HTTP_E_HOST_OTHER },
                { "GET http://a/ HTTP/1.0\r\nHost: b\r\n\r\n", HTTP_E_HOST_OTHER },
                { GET("Host:\r\n"), HTTP_E_HOST_OTHER },
                { GET("Host: a b\r\n"), HTTP_E_HOST_OTHER },
                { GET("Host: a, a\r\n"), HTTP_E_HOST_OTHER },
                { GET("Host: a:81\r\n"), HTTP_E_HOST_OTHER },
                { GET("Host: a:\r\n"), HTTP_E_HOST_OTHER },
                { GET("Host: a/\r\n"), HTTP_E_HOST_OTHER },
                { GET("Host: a..\r\n"), HTTP_E_HOST_OTHER },
                { GET("Host: u@a\r\n"), HTTP_E_HOST_OTHER },
                { GET("Host: http://a/\r\n"), HTTP_E_HOST_OTHER },
                { "GET http://a:81/ HTTP/1.1\r\n" H "\r\n", HTTP_E_HOST_OTHER },
                { "GET http://[::a]/ HTTP/1.1\r\nHost: [::b]\r\n\r\n", HTTP_E_HOST_OTHER },
                { "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", HTTP_OK },
                { "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_OK },
                { "CONNECT a:443 HTTP/1.1\r\n\r\n", HTTP_E_HOST_MISSING },
                { "CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n", HTTP_E_HOST_OTHER },
                { "CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", HTTP_E_HOST_OTHER },
        };

        check(cases, ELEMENTSOF(cases));
}

Test(proxy_http_request, bodies) {
        static const struct {
                const char *text;
                HttpBodyKind body;
                uint64_t length;
                bool expects;
        } good[] = {
                { POST(""), HTTP_BODY_NONE },
                { POST("Content-Length: 0\r\nExpect: 100-continue\r\n"), HTTP_BODY_LENGTH },
                { POST("content-length:\t0042 \r\n"), HTTP_BODY_LENGTH, 42 },
                { POST("Content-Length: 4611686018427387904\r\n"), HTTP_BODY_LENGTH, HTTP_LENGTH_MAX },
                { POST("Transfer-Encoding:  chunked\r\n"), HTTP_BODY_CHUNKED },
                { POST("Transfer-Encoding:\tChunKed\t\r\n"), HTTP_BODY_CHUNKED },
                { POST("Content-Length: 1\r\nExpect: 100-Continue\r\n"), HTTP_BODY_LENGTH, 1, true },
                { POST("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"), HTTP_BODY_CHUNKED, 0, true },
                { POST("Expect: 100-continue\r\n"), HTTP_BODY_NONE },
                { "POST http://a/ HTTP/1.0\r\nExpect: x\r\nContent-Length: 1\r\n\r\n", HTTP_BODY_LENGTH, 1 },
                { "CONNECT a:1 HTTP/1.0\r\nContent-Length: 0\r\n\r\n", HTTP_BODY_LENGTH, 0 },
        };
        static const Case bad[] = {
                { POST("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), HTTP_E_LENGTH_AND_CODING },
                { POST("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), HTTP_E_LENGTH_AND_CODING },
                { POST("Transfer-Encoding: x\r\nContent-Length: 5\r\n"), HTTP_E_LENGTH_AND_CODING },
                { POST("Content-Length: 5\r\nContent-Length: 5\r\n"), HTTP_E_LENGTH_TWICE },
                { POST("Content-Length: 5\r\ncontent-length: 6\r\n"), HTTP_E_LENGTH_TWICE },
                { POST("Content-Length: 5, 5\r\n"), HTTP_E_LENGTH },
                { POST("Content-Length: 5 5\r\n"), HTTP_E_LENGTH },
                { POST("Content-Length: +5\r\n"), HTTP_E_LENGTH },
                { POST("Content-Length: -1\r\n"), HTTP_E_LENGTH },
                { POST("Content-Length: 0x5\r\n"), HTTP_E_LENGTH },
                { POST("Content-Length: 5_0\r\n"), HTTP_E_LENGTH },
                { POST("Content-Length:\r\n"), HTTP_E_LENGTH },
                { POST("Content-Length: 4611686018427387905\r\n"), HTTP_E_LENGTH },
                { POST("Content-Length: 18446744073709551621\r\n"), HTTP_E_LENGTH },
                { POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), HTTP_E_CODING_TWICE },
                { POST("Transfer-Encoding: chunked\r\nTransfer-encoding: identity\r\n"), HTTP_E_CODING_TWICE },
                { POST("Transfer-Encoding: chunked, identity\r\n"), HTTP_E_CODING },
                { POST("Transfer-Encoding: gzip, chunked\r\n"), HTTP_E_CODING },
                { POST("Transfer-Encoding: chunked,\r\n"), HTTP_E_CODING },
                { POST("Transfer-Encoding: xchunked\r\n"), HTTP_E_CODING },
                { POST("Transfer-Encoding: chunkedx\r\n"), HTTP_E_CODING },
                { POST("Transfer-Encoding: \"chunked\"\r\n"), HTTP_E_CODING },
                { POST("Transfer-Encoding: chunked;a=b\r\n"), HTTP_E_CODING },
                { POST("Transfer-Encoding:\r\n"), HTTP_E_CODING },
                { POST("Transfer-Encoding: identity\r\n"), HTTP_E_CODING },
                { "POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_E_CODING_OLD },
                { POST("Expect: 200-ok\r\n"), HTTP_E_EXPECT },
                { POST("Expect: 100-continue, 100-continue\r\n"), HTTP_E_EXPECT },
                { POST("Expect: 100-continue\r\nExpect: 100-continue\r\n"), HTTP_E_EXPECT },
                { "CONNECT a:1 HTTP/1.0\r\nContent-Length: 1\r\n\r\n", HTTP_E_CONNECT_BODY },
                { "CONNECT a:1 HTTP/1.1\r\n" "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_E_CONNECT_BODY },
                { POST("Connection: host\r\n"), HTTP_E_CONNECTION_NAMES },
                { POST("Connection: close, Content-Length\r\n"), HTTP_E_CONNECTION_NAMES },
                { POST("Connection: a\r\nConnection: ,\ttransfer-encoding ,\r\n"), HTTP_E_CONNECTION_NAMES },
                { POST("Connection: Authorization\r\n"), HTTP_E_CONNECTION_NAMES },
                { POST("Connection: a b\r\n"), HTTP_E_CONNECTION },
                { POST("Connection: \"a\"\r\n"), HTTP_E_CONNECTION },
        };

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                HttpRequest r;

                cr_assert_eq(read_text(good[i].text, &r), HTTP_OK, "%s", good[i].text);
                cr_assert_eq(r.body, good[i].body, "%s", good[i].text);
                cr_assert_eq(r.length, good[i].length, "%s", good[i].text);
                cr_assert_eq(r.expects_continue, good[i].expects, "%s", good[i].text);
        }
        check(bad, ELEMENTSOF(bad));
}

/* What follows the head is not looked at. */
Test(proxy_http_request, pipelined) {
        HttpRequest r;

        cr_assert_eq(read_text(GET(H) "GET http://b/ HTTP/1.1\n\n", &r), HTTP_OK);
        cr_assert_eq(r.head_size, sizeof(GET(H)) - 1);
        cr_assert_eq(r.n_fields, 1);
}

/* Bytes move when their buffer grows. */
Test(proxy_http_request, moved) {
        static const char text[] = GET(H "A: b\r\n");
        char first[sizeof(text)], second[sizeof(text)];
        HttpRequest r = {};

        memcpy(first, text, sizeof(text));
        memcpy(second, text, sizeof(text));
        cr_assert_eq(http_request_read(&r, first, sizeof(text) - 4), HTTP_MORE);
        memset(first, 'x', sizeof(first));
        cr_assert_eq(http_request_read(&r, second, sizeof(text) - 1), HTTP_OK);
        cr_assert(equals(r.method, "GET") && equals(r.target.authority.host, "a") && equals(r.fields[1].value, "b"));
        memset(second, 'x', sizeof(second));
        cr_assert_eq(http_request_read(&r, text, sizeof(text) - 1), HTTP_OK);
        cr_assert(equals(r.method, "GET") && equals(r.target.authority.host, "a") && equals(r.fields[1].value, "b"));
}

Test(proxy_http_request, errors_have_words) {
        for (int e = HTTP_MORE + 1; e < _HTTP_ERROR_MAX; e++) {
                unsigned status = http_error_status((HttpError) e);

                cr_assert(status >= 400 && status < 600);
                cr_assert_not_null(http_error_sentence((HttpError) e));
        }
        cr_assert_eq(http_error_status(HTTP_E_HEAD_LONG), 431);
        cr_assert_eq(http_error_status(HTTP_E_FIELDS_MANY), 431);
        cr_assert_eq(http_error_status(HTTP_E_REQUEST_LINE_LONG), 414);
        cr_assert_eq(http_error_status(HTTP_E_VERSION), 505);
        cr_assert_eq(http_error_status(HTTP_E_CODING), 501);
        cr_assert_eq(http_error_status(HTTP_E_HOST_OTHER), 400);
}
