/* SPDX-License-Identifier: MIT */

/*
 * Delimiter-ended records at the front of a Buffer that the caller owns. `scanned` counts the bytes known
 * to hold no delimiter, so it stays true while the buffer only grows at its end; record_consume() is the
 * one way to take bytes from the front.
 */

#include <errno.h>

#include "record.h"

int record_peek(RecordScanner *r, const Buffer *b, size_t *ret_size) {
        const char *data = buffer_data(b), *end;
        size_t size = buffer_size(b);

        assert(r->scanned <= size);

        end = memchr(data + r->scanned, r->delimiter, size - r->scanned);
        r->scanned = end ? (size_t) (end - data) : size;

        if (r->scanned > r->max)
                return -EMSGSIZE;
        if (!end)
                return 0;

        *ret_size = r->scanned;
        return 1;
}

void record_consume(RecordScanner *r, Buffer *b, size_t size) {
        buffer_consume(b, size + 1);
        r->scanned = 0;
}
