/* SPDX-License-Identifier: MIT */

/*
 * SOCKS5: see the header. Names are held to the characters that http-target allows, so that what decides about hosts
 * gets the same from both protocols, and never a NUL.
 */

#include <arpa/inet.h>

#include "socks-request.h"

#define VERSION 0x05
#define METHOD_NONE 0x00
#define METHOD_UNACCEPTABLE 0xff
#define COMMAND_CONNECT 0x01
#define TYPE_IPV4 0x01
#define TYPE_NAME 0x03
#define TYPE_IPV6 0x04

static const struct {
        SocksReply reply;
        const char *sentence;
} errors[_SOCKS_ERROR_MAX] = {
        [SOCKS_E_VERSION] = { SOCKS_REPLY_FAILURE, "This proxy speaks version 5 of SOCKS only." },
        [SOCKS_E_METHOD] = { SOCKS_REPLY_FAILURE, "The client does not offer to go without authentication." },
        [SOCKS_E_MALFORMED] = { SOCKS_REPLY_FAILURE, "The SOCKS request is malformed." },
        [SOCKS_E_COMMAND] = { SOCKS_REPLY_COMMAND, "The only command of SOCKS that is served is CONNECT." },
        [SOCKS_E_ADDRESS_TYPE] = { SOCKS_REPLY_ADDRESS_TYPE, "The SOCKS request has an unknown type of address." },
        [SOCKS_E_HOST] = { SOCKS_REPLY_FAILURE, "The host of the SOCKS request is no name or IPv4 address." },
        [SOCKS_E_PORT] = { SOCKS_REPLY_FAILURE, "The port of the SOCKS request is 0." },
};

const char *socks_error_sentence(SocksError error) {
        assert(error > SOCKS_MORE && error < _SOCKS_ERROR_MAX);

        return errors[error].sentence;
}

SocksReply socks_error_reply(SocksError error) {
        assert(error > SOCKS_MORE && error < _SOCKS_ERROR_MAX);

        return errors[error].reply;
}

SocksError socks_greeting_read(const char *data, size_t size, size_t *ret_used) {
        size_t n;

        if (size < 1)
                return SOCKS_MORE;
        if (data[0] != VERSION)
                return SOCKS_E_VERSION;
        if (size < 2)
                return SOCKS_MORE;

        n = (uint8_t) data[1];
        if (size < 2 + n)
                return SOCKS_MORE;
        if (!memchr(data + 2, METHOD_NONE, n))
                return SOCKS_E_METHOD;

        *ret_used = 2 + n;
        return SOCKS_OK;
}

/* The four bytes before the address, as many as there are. */
static SocksError check_start(const char *data, size_t size) {
        if (size > 0 && data[0] != VERSION)
                return SOCKS_E_MALFORMED;
        if (size > 1 && data[1] != COMMAND_CONNECT)
                return SOCKS_E_COMMAND;
        if (size > 2 && data[2] != 0x00)
                return SOCKS_E_MALFORMED;
        if (size > 3 && data[3] != TYPE_IPV4 && data[3] != TYPE_NAME && data[3] != TYPE_IPV6)
                return SOCKS_E_ADDRESS_TYPE;

        return size > 3 ? SOCKS_OK : SOCKS_MORE;
}

/* Where the address is, by the bytes that are there, at least four. SOCKS_OK or SOCKS_MORE. */
static SocksError locate_address(const char *data, size_t size, size_t *ret_start, size_t *ret_size) {
        if (data[3] != TYPE_NAME) {
                *ret_start = 4;
                *ret_size = data[3] == TYPE_IPV4 ? 4 : 16;
                return SOCKS_OK;
        }
        if (size < 5)
                return SOCKS_MORE;

        *ret_start = 5;
        *ret_size = (uint8_t) data[4];
        return SOCKS_OK;
}

static SocksError read_host(const char *data, Slice address, SocksRequest *ret) {
        *ret = (SocksRequest){};

        if (data[3] == TYPE_NAME) {
                if (!slice_is_host_name(address))
                        return SOCKS_E_HOST;

                ret->kind = SOCKS_HOST_NAME;
                memcpy(ret->host, address.data, address.size);
        } else {
                bool is_ipv4 = data[3] == TYPE_IPV4;

                ret->kind = is_ipv4 ? SOCKS_HOST_IPV4 : SOCKS_HOST_IPV6;
                assert_se(inet_ntop(is_ipv4 ? AF_INET : AF_INET6, address.data, ret->host, sizeof(ret->host)));
        }

        ret->host_size = strlen(ret->host);
        return SOCKS_OK;
}

SocksError socks_request_read(const char *data, size_t size, SocksRequest *ret, size_t *ret_used) {
        size_t start, length;
        SocksRequest request;
        SocksError e;

        e = check_start(data, size);
        if (e != SOCKS_OK)
                return e;
        e = locate_address(data, size, &start, &length);
        if (e != SOCKS_OK)
                return e;
        if (size < start + length)
                return SOCKS_MORE;
        e = read_host(data, (Slice){ data + start, length }, &request);
        if (e != SOCKS_OK)
                return e;
        if (size < start + length + 2)
                return SOCKS_MORE;

        request.port = (uint16_t) ((uint8_t) data[start + length] << 8 | (uint8_t) data[start + length + 1]);
        if (request.port == 0)
                return SOCKS_E_PORT;

        *ret = request;
        *ret_used = start + length + 2;
        return SOCKS_OK;
}

int socks_method_write(bool accepted, Buffer *out) {
        const uint8_t choice[] = { VERSION, accepted ? METHOD_NONE : METHOD_UNACCEPTABLE };

        return buffer_append(out, choice, sizeof(choice));
}

int socks_reply_write(SocksReply reply, Buffer *out) {
        const uint8_t message[] = { VERSION, (uint8_t) reply, 0x00, TYPE_IPV4, 0, 0, 0, 0, 0, 0 };

        return buffer_append(out, message, sizeof(message));
}
