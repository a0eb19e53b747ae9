/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include "base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode_group(const uint8_t *data, size_t size, char ret[4]) {
        uint32_t bits = (uint32_t) data[0] << 16 | (size > 1 ? (uint32_t) data[1] << 8 : 0) | (size > 2 ? data[2] : 0);

        ret[0] = digits[bits >> 18];
        ret[1] = digits[bits >> 12 & 63];
        ret[2] = size > 1 ? digits[bits >> 6 & 63] : '=';
        ret[3] = size > 2 ? digits[bits & 63] : '=';
}

int base64_append(Buffer *b, const void *data, size_t size) {
        char *p;
        int r;

        if (size == 0)
                return 0;

        r = buffer_reserve(b, base64_length(size), &p);
        if (r < 0)
                return r;
        for (size_t i = 0; i < size; i += 3, p += 4)
                encode_group((const uint8_t *) data + i, MIN(size - i, (size_t) 3), p);
        buffer_commit(b, base64_length(size));
        return 0;
}

static int digit_value(char c) {
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -EBADMSG;
}

/* Of four digits, of which the last `padding` are not there. */
static int decode_group(const char *text, size_t padding, char *ret) {
        uint32_t bits = 0;

        for (size_t i = 0; i < 4; i++) {
                int v = i < 4 - padding ? digit_value(text[i]) : 0;

                if (v < 0)
                        return v;
                bits = bits << 6 | (uint32_t) v;
        }
        if (bits & ((UINT32_C(1) << 8 * padding) - 1))
                return -EBADMSG;

        ret[0] = (char) (bits >> 16);
        if (padding < 2)
                ret[1] = (char) (bits >> 8);
        if (padding < 1)
                ret[2] = (char) bits;
        return 0;
}

int base64_decode_append(Buffer *b, const char *text, size_t size) {
        size_t padding = 0;
        char *p;
        int r;

        if (size % 4 != 0)
                return -EBADMSG;
        if (size == 0)
                return 0;
        while (padding < 2 && text[size - 1 - padding] == '=')
                padding++;

        r = buffer_reserve(b, size / 4 * 3, &p);
        for (size_t i = 0; r >= 0 && i < size; i += 4)
                r = decode_group(text + i, i + 4 == size ? padding : 0, p + i / 4 * 3);
        buffer_commit(b, r >= 0 ? size / 4 * 3 - padding : 0);
        return r;
}
