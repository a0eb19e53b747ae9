/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The client's side of SOCKS5 (RFC 1928), as far as a tunnel needs it: a greeting that offers "no authentication",
 * and the command CONNECT. Both readers take all bytes that have come and are called again with more behind them;
 * what they say does not depend on how the input is cut. *ret_used is what the message takes of data; what follows it
 * is not looked at.
 */

#include "lib/buffer.h"
#include "proxy/http-chars.h"

/* Codes of a reply (section 6). */
typedef enum SocksReply {
        SOCKS_REPLY_SUCCEEDED = 0x00,
        SOCKS_REPLY_FAILURE = 0x01,
        SOCKS_REPLY_NOT_ALLOWED = 0x02,
        SOCKS_REPLY_NETWORK_UNREACHABLE = 0x03,
        SOCKS_REPLY_HOST_UNREACHABLE = 0x04,
        SOCKS_REPLY_REFUSED = 0x05,
        SOCKS_REPLY_EXPIRED = 0x06,
        SOCKS_REPLY_COMMAND = 0x07,
        SOCKS_REPLY_ADDRESS_TYPE = 0x08,
} SocksReply;

typedef enum SocksError {
        SOCKS_OK,
        SOCKS_MORE,             /* good so far; no error */
        SOCKS_E_VERSION,        /* not SOCKS5: there is no answer that would be understood */
        SOCKS_E_METHOD,         /* answered by the method choice "none" */
        SOCKS_E_MALFORMED,      /* these are answered by a reply */
        SOCKS_E_COMMAND,
        SOCKS_E_ADDRESS_TYPE,
        SOCKS_E_HOST,
        SOCKS_E_PORT,
        _SOCKS_ERROR_MAX,
} SocksError;

typedef enum SocksHostKind {
        SOCKS_HOST_NAME,        /* as sent; it may well look like an IPv4 address */
        SOCKS_HOST_IPV4,        /* "192.0.2.1" */
        SOCKS_HOST_IPV6,        /* as inet_ntop(3) writes it, without brackets */
} SocksHostKind;

typedef struct SocksRequest {
        SocksHostKind kind;
        char host[HOST_TEXT_MAX + 1]; /* NUL-terminated, of host_size bytes */
        size_t host_size;
        uint16_t port;          /* not 0 */
} SocksRequest;

/* VER, NMETHODS, METHODS (section 3). */
SocksError socks_greeting_read(const char *data, size_t size, size_t *ret_used);

/* VER, CMD, RSV, ATYP, DST.ADDR, DST.PORT (section 4); *ret is set on SOCKS_OK. */
SocksError socks_request_read(const char *data, size_t size, SocksRequest *ret, size_t *ret_used);

/* Static, without an end of line; of errors only. The code is for those that are answered by a reply. */
const char *socks_error_sentence(SocksError error);
SocksReply socks_error_reply(SocksError error);

/* The method choice: "no authentication", or none of those offered. -ENOMEM. */
int socks_method_write(bool accepted, Buffer *out);

/* A reply with the address 0.0.0.0:0, because ours is nobody's business. -ENOMEM. */
int socks_reply_write(SocksReply reply, Buffer *out);
