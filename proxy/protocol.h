/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which protocol a connection speaks: its first byte says.
 */

#include "lib/slice.h"

typedef enum ProxyProtocol {
        PROTOCOL_HTTP,          /* a letter: all methods in use begin with one */
        PROTOCOL_SOCKS,         /* the version of SOCKS5, or of SOCKS4, which socks-request refuses */
        PROTOCOL_UNKNOWN,       /* TLS, for one, begins with 0x16 */
} ProxyProtocol;

static inline ProxyProtocol proxy_protocol(char first) {
        if (first == 0x05 || first == 0x04)
                return PROTOCOL_SOCKS;

        return char_is_letter(first) ? PROTOCOL_HTTP : PROTOCOL_UNKNOWN;
}
