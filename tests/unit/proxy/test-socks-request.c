/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "proxy/protocol.h"
#include "proxy/socks-request.h"

TestSuite(proxy_socks_request, .timeout = 10);

#define BYTES(text) text, sizeof(text) - 1

typedef struct Case {
        const char *data;
        size_t size;
        SocksError error;
        size_t used;
        const char *host;
        SocksHostKind kind;
        unsigned port;
} Case;

/* Byte by byte, it is "more" until it is what it is at once; and what follows does not matter. */
static SocksError read_any(bool greeting, const char *data, size_t size, SocksRequest *ret, size_t *ret_used) {
        return greeting ? socks_greeting_read(data, size, ret_used) : socks_request_read(data, size, ret, ret_used);
}

static void check(bool greeting, const Case *c, size_t i) {
        size_t used = 0, n = 0, again = 0;
        SocksRequest r = {};
        SocksError e = SOCKS_MORE;

        cr_assert_eq(read_any(greeting, c->data, c->size, &r, &used), c->error, "%zu", i);
        cr_assert_eq(used, c->used, "%zu", i);
        while (e == SOCKS_MORE && n < c->size)
                e = read_any(greeting, c->data, ++n, &r, &again);
        cr_assert_eq(e, c->error, "%zu", i);
        if (e != SOCKS_OK)
                return;

        cr_assert_eq(n, used);
        if (!greeting) {
                cr_assert_str_eq(r.host, c->host);
                cr_assert_eq(r.host_size, strlen(c->host));
                cr_assert_eq(r.kind, c->kind);
                cr_assert_eq(r.port, c->port);
        }
}

Test(proxy_socks_request, greetings) {
        static const Case cases[] = {
                { BYTES(""), SOCKS_MORE },
                { BYTES("\x05"), SOCKS_MORE },
                { BYTES("\x05\x02\x02"), SOCKS_MORE },
                { BYTES("\x05\x01\x00"), SOCKS_OK, 3 },
                { BYTES("\x05\x03\x02\x01\x00rest"), SOCKS_OK, 5 },
                { BYTES("\x05\x00"), SOCKS_E_METHOD },
                { BYTES("\x05\x02\x02\x01\x00"), SOCKS_E_METHOD },
                { BYTES("\x04\x01\x00\x50\x01\x02\x03\x04\x00"), SOCKS_E_VERSION },
                { BYTES("\x06\x01\x00"), SOCKS_E_VERSION },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                check(true, &cases[i], i);
}

Test(proxy_socks_request, requests) {
        static const Case cases[] = {
                { BYTES(""), SOCKS_MORE },
                { BYTES("\x05\x01\x00"), SOCKS_MORE },
                { BYTES("\x05\x01\x00\x03"), SOCKS_MORE },
                { BYTES("\x05\x01\x00\x03\x03" "a.b\x01"), SOCKS_MORE },
                { BYTES("\x05\x01\x00\x03\x03" "a.b\x01\xbbrest"), SOCKS_OK, 10, "a.b", SOCKS_HOST_NAME, 443 },
                { BYTES("\x05\x01\x00\x03\x09" "127.0.0.1\x00\x50"), SOCKS_OK, 16, "127.0.0.1", SOCKS_HOST_NAME, 80 },
                { BYTES("\x05\x01\x00\x01\x7f\x00\x00\x01\xff\xff"), SOCKS_OK, 10, "127.0.0.1", SOCKS_HOST_IPV4, 65535 },
                { BYTES("\x05\x01\x00\x04" "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01" "\x00\x01x"), SOCKS_OK, 22, "::1",
                  SOCKS_HOST_IPV6, 1 },
                { BYTES("\x05\x01\x00\x04" "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01" "\x00\x01"), SOCKS_OK, 22,
                  "::ffff:10.0.0.1", SOCKS_HOST_IPV6, 1 },
                { BYTES("\x04\x01"), SOCKS_E_MALFORMED },
                { BYTES("\x05\x02"), SOCKS_E_COMMAND },
                { BYTES("\x05\x03\x00\x01"), SOCKS_E_COMMAND },
                { BYTES("\x05\x00"), SOCKS_E_COMMAND },
                { BYTES("\x05\x01\x01"), SOCKS_E_MALFORMED },
                { BYTES("\x05\x01\x00\x02"), SOCKS_E_ADDRESS_TYPE },
                { BYTES("\x05\x01\x00\x00"), SOCKS_E_ADDRESS_TYPE },
                { BYTES("\x05\x01\x00\x03\x00"), SOCKS_E_HOST },
                { BYTES("\x05\x01\x00\x03\x03" "a\0b\x01\xbb"), SOCKS_E_HOST },
                { BYTES("\x05\x01\x00\x03\x01.\x01\xbb"), SOCKS_E_HOST },
                { BYTES("\x05\x01\x00\x03\x03" "::1\x01\xbb"), SOCKS_E_HOST },
                { BYTES("\x05\x01\x00\x03\x03" "a/b\x01\xbb"), SOCKS_E_HOST },
                { BYTES("\x05\x01\x00\x03\x02\xc3\xa4\x01\xbb"), SOCKS_E_HOST },
                { BYTES("\x05\x01\x00\x03\x01" "a\x00\x00"), SOCKS_E_PORT },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                check(false, &cases[i], i);
}

Test(proxy_socks_request, longest_name) {
        char message[5 + 255 + 2] = "\x05\x01\x00\x03\xff";
        SocksRequest r;
        size_t used;

        memset(message + 5, 'a', 255);
        memcpy(message + 260, "\x00\x50", 2);
        cr_assert_eq(socks_request_read(message, sizeof(message), &r, &used), SOCKS_OK);
        cr_assert_eq(used, sizeof(message));
        cr_assert_eq(r.host_size, 255);
        cr_assert_eq(strlen(r.host), 255);
        cr_assert_eq(r.port, 80);
}

Test(proxy_socks_request, answers) {
        _cleanup_(buffer_done) Buffer out = {};

        cr_assert_eq(socks_method_write(true, &out), 0);
        cr_assert_eq(socks_method_write(false, &out), 0);
        cr_assert_eq(socks_reply_write(SOCKS_REPLY_NOT_ALLOWED, &out), 0);
        cr_assert_eq(buffer_size(&out), 14);
        cr_assert_eq(memcmp(buffer_data(&out), "\x05\x00\x05\xff\x05\x02\x00\x01\0\0\0\0\0\0", 14), 0);
}

Test(proxy_socks_request, errors_have_words) {
        for (int e = SOCKS_MORE + 1; e < _SOCKS_ERROR_MAX; e++) {
                cr_assert_not_null(socks_error_sentence((SocksError) e));
                cr_assert_neq(socks_error_reply((SocksError) e), SOCKS_REPLY_SUCCEEDED);
        }
        cr_assert_eq(socks_error_reply(SOCKS_E_COMMAND), 0x07);
        cr_assert_eq(socks_error_reply(SOCKS_E_ADDRESS_TYPE), 0x08);
}

Test(proxy_socks_request, protocol) {
        cr_assert_eq(proxy_protocol(0x05), PROTOCOL_SOCKS);
        cr_assert_eq(proxy_protocol(0x04), PROTOCOL_SOCKS);
        cr_assert_eq(proxy_protocol('G'), PROTOCOL_HTTP);
        cr_assert_eq(proxy_protocol('c'), PROTOCOL_HTTP);
        cr_assert_eq(proxy_protocol(0x16), PROTOCOL_UNKNOWN);
        cr_assert_eq(proxy_protocol('\0'), PROTOCOL_UNKNOWN);
        cr_assert_eq(proxy_protocol('\xc3'), PROTOCOL_UNKNOWN);
}
