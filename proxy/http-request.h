/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The head of a request to a proxy, by RFC 9110 and RFC 9112 without their leniencies: the request line, up to 100
 * fields and the empty line. What another reader could take for another request is refused, not repaired; whether
 * the host may be reached is not asked here.
 *
 *      CONNECT HOST:PORT HTTP/1.1              for a tunnel
 *      METHOD http://HOST[:PORT]/... HTTP/1.1  for one request, which http-forward.h passes on
 */

#include "http-body.h"
#include "http-target.h"

#define HTTP_HEAD_MAX 65536U            /* with the empty line */
#define HTTP_REQUEST_LINE_MAX 8192U     /* without its CR LF */
#define HTTP_METHOD_MAX 32U
#define HTTP_FIELDS_MAX 100U
#define HTTP_LENGTH_MAX (UINT64_C(1) << 62)

typedef struct HttpField {
        Slice name, value;      /* a token; the value without spaces at its ends */
        bool is_dropped;        /* not to be passed on: hop by hop, or written anew */
} HttpField;

typedef struct HttpRequest {
        /* Good when http_request_read() said HTTP_OK, as long as data stays where it was; read again when it moved. */
        size_t head_size;       /* what the head takes of data; what follows is the body */
        Slice method;
        HttpTarget target;
        bool is_connect;
        unsigned minor;         /* of the version HTTP/1.x: 0 or 1 */
        HttpBodyKind body;
        uint64_t length;        /* of HTTP_BODY_LENGTH */
        bool expects_continue;  /* waits for 100 before it sends its body */
        HttpField fields[HTTP_FIELDS_MAX];
        size_t n_fields;

        /* How far the head was looked through. */
        size_t scanned, line_start, n_lines;
} HttpRequest;

/*
 * Reads from data, which is all that has come; called again with more behind it until it no longer says HTTP_MORE.
 * Zero-initialise; there is nothing to free, and all slices point into data. HTTP_OK, HTTP_MORE, or what is wrong:
 * the same for any cut of the same bytes, found at the first byte that no head could have, which for the fields is the
 * head's last one. Calling again after an error says the same.
 */
HttpError http_request_read(HttpRequest *r, const char *data, size_t size);
