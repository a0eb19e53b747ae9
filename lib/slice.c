/* SPDX-License-Identifier: MIT */

/*
 * Slice: see the header. All of it is pure, and all comparisons are of ASCII.
 */

#include "slice.h"

#define PORT_DIGITS_MAX 5U

int char_hex(char c) {
        if (char_is_digit(c))
                return c - '0';

        c = char_fold(c);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool slice_equal_fold(Slice a, Slice b) {
        if (a.size != b.size)
                return false;

        for (size_t i = 0; i < a.size; i++)
                if (char_fold(a.data[i]) != char_fold(b.data[i]))
                        return false;

        return true;
}

bool slice_is(Slice a, const char *text) {
        return slice_equal_fold(a, (Slice){ text, strlen(text) });
}

bool slice_starts_with(Slice a, const char *prefix) {
        size_t n = strlen(prefix);

        return a.size >= n && slice_is((Slice){ a.data, n }, prefix);
}

static bool is_blank(char c) {
        return c == ' ' || c == '\t';
}

Slice slice_trim(Slice a) {
        while (a.size > 0 && is_blank(a.data[0])) {
                a.data++;
                a.size--;
        }
        while (a.size > 0 && is_blank(a.data[a.size - 1]))
                a.size--;

        return a;
}

bool slice_split(Slice a, char c, Slice *ret_first, Slice *ret_rest) {
        const char *at = a.size > 0 ? memchr(a.data, c, a.size) : NULL, *end = a.data + a.size;

        *ret_first = slice_from(a.data, at ? at : end);
        *ret_rest = slice_from(at ? at + 1 : end, end);
        return at;
}

bool slice_parse_port(Slice a, uint16_t *ret) {
        unsigned port = 0;

        if (a.size == 0 || a.size > PORT_DIGITS_MAX || a.data[0] == '0')
                return false;

        for (size_t i = 0; i < a.size; i++) {
                if (!char_is_digit(a.data[i]))
                        return false;
                port = port * 10 + (unsigned) (a.data[i] - '0');
        }
        if (port > UINT16_MAX)
                return false;

        *ret = (uint16_t) port;
        return true;
}
