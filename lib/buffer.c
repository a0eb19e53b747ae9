/* SPDX-License-Identifier: MIT */

/*
 * Buffer: one allocation with the live bytes somewhere in it. Bytes are moved to the front only when at
 * least as much has been consumed as remains, and the allocation doubles otherwise, so that appending and
 * consuming cost amortised constant time whatever the sizes of the pieces. Owned by whoever embeds it.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "buffer.h"

#define BUFFER_MIN 256U

/* An empty buffer starts over and keeps only a small allocation. */
static void buffer_reset(Buffer *b) {
        b->start = b->end = 0;

        if (b->allocated > BUFFER_KEEP)
                buffer_done(b);
}

int buffer_grow(Buffer *b, size_t n, char **ret) {
        size_t size = buffer_size(b), needed, wanted;
        char *data;

        if (b->allocated - b->end < n && b->start >= size && b->allocated - size >= n) {
                memmove(b->data, b->data + b->start, size);
                b->start = 0;
                b->end = size;
        }

        if (!b->data || b->allocated - b->end < n) {
                if (__builtin_add_overflow(b->end, n, &needed) || needed > SIZE_MAX / 2)
                        return -ENOMEM;

                wanted = MAX(MAX(needed, b->allocated * 2), BUFFER_MIN);
                data = realloc(b->data, wanted);
                if (!data)
                        return -ENOMEM;

                b->data = data;
                b->allocated = wanted;
        }

        *ret = b->data + b->end;
        return 0;
}

int buffer_append(Buffer *b, const void *data, size_t size) {
        char *p;
        int r;

        if (size == 0)
                return 0;

        r = buffer_reserve(b, size, &p);
        if (r < 0)
                return r;

        memcpy(p, data, size);
        buffer_commit(b, size);
        return 0;
}

int buffer_append_str(Buffer *b, const char *s) {
        return buffer_append(b, s, strlen(s));
}

int buffer_printf(Buffer *b, const char *format, ...) {
        va_list ap;
        char *p;
        int n, r;

        va_start(ap, format);
        n = vsnprintf(NULL, 0, format, ap);
        va_end(ap);
        if (n < 0)
                return -EINVAL;

        r = buffer_reserve(b, (size_t) n + 1, &p);
        if (r < 0)
                return r;

        va_start(ap, format);
        (void) vsnprintf(p, (size_t) n + 1, format, ap);
        va_end(ap);

        buffer_commit(b, (size_t) n);
        return 0;
}

void buffer_consume(Buffer *b, size_t n) {
        assert(n <= buffer_size(b));

        b->start += n;

        if (buffer_size(b) == 0)
                buffer_reset(b);
}

void buffer_done(Buffer *b) {
        free(b->data);
        *b = (Buffer) {};
}

int buffer_take(Buffer *b, char **ret, size_t *ret_size) {
        size_t size = buffer_size(b);
        char *data;

        if (b->start > 0) {
                memmove(b->data, b->data + b->start, size);
                b->start = 0;
                b->end = size;
        }

        data = realloc(b->data, size + 1);
        if (!data)
                return -ENOMEM;

        data[size] = 0;
        *b = (Buffer) {};

        *ret = data;
        if (ret_size)
                *ret_size = size;
        return 0;
}
