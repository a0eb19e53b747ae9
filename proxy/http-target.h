/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The target of a proxy request (RFC 9112, section 3.2) and the field Host, which have the same form: where to
 * connect, and what to ask for there. Slices into what was parsed. Hosts are split off and not judged; two
 * readings of one text are what must not be: what a URL parser could take for something else is refused.
 */

#include "http-error.h"
#include "proxy/http-chars.h"

typedef struct HttpAuthority {
        Slice host;             /* without brackets; of name characters, or with is_ipv6 of hex digits, ':' and '.' */
        bool is_ipv6;
        bool has_port;
        uint16_t port;          /* 0 without has_port */
} HttpAuthority;

typedef struct HttpTarget {
        HttpAuthority authority; /* always with its port, 80 where the URL names none */
        Slice path;              /* with the query; empty, or begins with '/' or '?'; empty for CONNECT */
} HttpTarget;

/* HOST or HOST:PORT. HTTP_OK, HTTP_E_USERINFO, HTTP_E_HOST_TEXT, HTTP_E_PORT. */
HttpError http_authority_parse(Slice text, HttpAuthority *ret);

/* Whether they name the same host, but for case and a dot at the end; ports apart. */
bool http_authority_same_host(const HttpAuthority *a, const HttpAuthority *b);

/* http://HOST[:PORT][/PATH][?QUERY] (absolute-form), or HOST:PORT (authority-form). */
HttpError http_target_parse_absolute(Slice text, HttpTarget *ret);
HttpError http_target_parse_connect(Slice text, HttpTarget *ret);
