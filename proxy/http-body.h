/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which of the bytes behind a head are the request's body (RFC 9112, sections 6 and 7): none, a number of them, or
 * chunks. What comes out has been verified; what comes behind the end is not touched, so it can never reach an
 * origin as a second request. It does not matter how the input is cut: the output, and the place of an error, are
 * the same.
 */

#include "http-error.h"
#include "lib/buffer.h"

#define HTTP_TRAILER_MAX 8192U

typedef enum HttpBodyKind {
        HTTP_BODY_NONE,
        HTTP_BODY_LENGTH,
        HTTP_BODY_CHUNKED,
} HttpBodyKind;

typedef struct HttpBody {
        unsigned state;
        HttpError error;        /* the one that was found: it stays */
        uint64_t left;          /* bytes of the body, or of this chunk, that are still to come */
        unsigned n_digits;      /* of the chunk's size so far */
        size_t trailer_size;    /* of the trailer so far */
} HttpBody;

/* Length is for HTTP_BODY_LENGTH only. There is nothing to free. */
void http_body_init(HttpBody *b, HttpBodyKind kind, uint64_t length);

/*
 * Takes from data what belongs to the body, *ret_used bytes, and appends to out what is to be forwarded: the bytes
 * themselves, or chunks with their size lines written anew, without the trailer. Chunk extensions are refused: none
 * is in use, and readers disagree on where they end. The chunk that ends the body is written when its trailer was
 * good to the end, so what is refused is never complete at the origin.
 * HTTP_OK: the body is complete; HTTP_MORE: it is not, and all of data was used; HTTP_E_CHUNK, HTTP_E_TRAILER,
 * HTTP_E_TRAILER_LONG: the byte at *ret_used is wrong. -ENOMEM: *ret_used is not set, the body is lost.
 */
int http_body_feed(HttpBody *b, const char *data, size_t size, size_t *ret_used, Buffer *out);

/* Whether its last byte has come. */
bool http_body_is_complete(const HttpBody *b);
