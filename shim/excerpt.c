/* SPDX-License-Identifier: MIT */

/*
 * Counting is in characters, not bytes, so that a Chinese text gets as much room as an English one. The text
 * has been through the JSON parser and is well-formed.
 */

#include "excerpt.h"
#include "must.h"

static bool is_continuation(char c) {
        return ((unsigned char) c & 0xc0) == 0x80;
}

size_t text_length(const char *s, size_t size) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++)
                n += !is_continuation(s[i]);
        return n;
}

/* Bytes of the first n characters. */
static size_t head_size(const char *s, size_t size, size_t n) {
        size_t i = 0;

        for (; i < size; i++)
                if (!is_continuation(s[i]) && n-- == 0)
                        break;
        return i;
}

/* Bytes of the last n characters. */
static size_t tail_size(const char *s, size_t size, size_t n) {
        size_t i = size;

        while (i > 0 && n > 0)
                n -= !is_continuation(s[--i]);
        return size - i;
}

bool excerpt_append(Buffer *b, const char *s, size_t size, size_t max) {
        size_t length = text_length(s, size), head, tail;

        if (length <= max) {
                must(buffer_append(b, s, size));
                return false;
        }

        head = head_size(s, size, max - max / 2);
        tail = tail_size(s, size, max / 2);
        must(buffer_append(b, s, head));
        emit(b, "\n[… %zu characters left out …]\n", length - max);
        must(buffer_append(b, s + size - tail, tail));
        return true;
}
