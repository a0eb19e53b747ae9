/* SPDX-License-Identifier: MIT */

/*
 * What code in a jail may send to the proxy as SOCKS5: a greeting and a request behind it. What is read must not depend
 * on what follows, nor on how it is cut, and a host must be text that what decides about hosts may see.
 */

#include "proxy/protocol.h"
#include "proxy/socks-request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static SocksError greeting(const char *data, size_t size, SocksRequest *ret, size_t *ret_used) {
        return socks_greeting_read(data, size, ret_used);
}

/* In memory of its size; when it is over, all shorter inputs were "more", all longer ones are the same. */
static SocksError check(SocksError (*read)(const char *, size_t, SocksRequest *, size_t *), const char *data, size_t size,
                        SocksRequest *ret, size_t *ret_used) {
        SocksError e = SOCKS_MORE, whole;
        size_t used = 0, n;
        SocksRequest r = {};

        *ret_used = 0;
        whole = read(data, size, ret, ret_used);
        for (n = 0; n <= size && e == SOCKS_MORE; n++) {
                _cleanup_free_ char *copy = malloc(MAX(n, 1));

                assert_se(copy);
                memcpy(copy, data, n);
                e = read(copy, n, &r, &used);
        }

        assert_se(e == whole && used == *ret_used);
        assert_se((e == SOCKS_OK) == (used > 0) && (e != SOCKS_OK || n - 1 == used));
        if (e == SOCKS_OK)
                assert_se(memcmp(&r, ret, sizeof(r)) == 0);
        return e;
}

static void check_request(const SocksRequest *r) {
        const char *allowed = r->kind == SOCKS_HOST_IPV4 ? "0123456789." :
                              r->kind == SOCKS_HOST_IPV6 ? "0123456789abcdef:." :
                                                           "0123456789.-_abcdefghijklmnopqrstuvwxyz"
                                                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

        assert_se(r->host_size > 0 && r->host_size == strlen(r->host) && r->port > 0);
        assert_se(strspn(r->host, allowed) == r->host_size);
        assert_se((r->kind == SOCKS_HOST_IPV6) == (strchr(r->host, ':') != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *text = (const char *) data;
        SocksRequest r = {};
        size_t used;
        SocksError e;

        if (size == 0 || size > 2048)
                return 0;

        e = check(greeting, text, size, &r, &used);
        if (e == SOCKS_OK) {
                assert_se(proxy_protocol(text[0]) == PROTOCOL_SOCKS);
                e = check(socks_request_read, text + used, size - used, &r, &used);
                if (e == SOCKS_OK)
                        check_request(&r);
        }
        if (e > SOCKS_MORE)
                assert_se(socks_error_sentence(e) && socks_error_reply(e) != SOCKS_REPLY_SUCCEEDED);
        return 0;
}
