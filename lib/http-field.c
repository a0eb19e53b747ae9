/* SPDX-License-Identifier: MIT */

#include "http-field.h"

bool char_is_token(char c) {
        return char_is_digit(c) || char_is_letter(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

bool char_is_field(char c) {
        return ((uint8_t) c >= ' ' && c != 0x7f) || c == '\t';
}

bool slice_is_token(Slice a) {
        for (size_t i = 0; i < a.size; i++)
                if (!char_is_token(a.data[i]))
                        return false;

        return a.size > 0;
}

bool http_field_may_be_added(const char *name) {
        static const char *const own[] = { "Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect" };
        Slice slice = { name, strlen(name) };

        for (size_t i = 0; i < ELEMENTSOF(own); i++)
                if (slice_is(slice, own[i]))
                        return false;
        return slice_is_token(slice);
}
