/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A growable queue of bytes: appended at the end, consumed at the front. An empty buffer holds no memory
 * beyond BUFFER_KEEP bytes, so that an idle session or connection costs next to nothing. Zero-initialise;
 * buffer_done() frees.
 */

#include "macro.h"

#define BUFFER_KEEP (4 * KIB)

typedef struct Buffer {
        char *data;
        size_t start;           /* first byte not yet consumed */
        size_t end;             /* past the last byte */
        size_t allocated;
} Buffer;

static inline const char *buffer_data(const Buffer *b) {
        return b->data ? b->data + b->start : "";
}

static inline size_t buffer_size(const Buffer *b) {
        return b->end - b->start;
}

/* Makes room for n more bytes and gives the place to write them; then buffer_commit() what was written.
 * -ENOMEM. */
static inline int buffer_reserve(Buffer *b, size_t n, char **ret);
static inline void buffer_commit(Buffer *b, size_t n);

int buffer_append(Buffer *b, const void *data, size_t size);
int buffer_append_str(Buffer *b, const char *s);
int buffer_printf(Buffer *b, const char *format, ...) _printf_(2, 3);
void buffer_consume(Buffer *b, size_t n);
void buffer_done(Buffer *b);

/* Hands the content over as an allocated, NUL-terminated string and empties the buffer. */
int buffer_take(Buffer *b, char **ret, size_t *ret_size);

/* The rest is inline because messages are written in pieces of a few bytes. */

/* buffer_reserve() where there is no room yet. */
int buffer_grow(Buffer *b, size_t n, char **ret);

static inline int buffer_reserve(Buffer *b, size_t n, char **ret) {
        if (!b->data || b->allocated - b->end < n)
                return buffer_grow(b, n, ret);

        *ret = b->data + b->end;
        return 0;
}

static inline void buffer_commit(Buffer *b, size_t n) {
        assert(n <= b->allocated - b->end);

        b->end += n;

        /* Room was made for a read that gave nothing: an empty buffer keeps no memory. */
        if (b->end == b->start)
                buffer_consume(b, 0);
}
