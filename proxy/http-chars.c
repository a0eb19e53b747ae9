/* SPDX-License-Identifier: MIT */

#include "proxy/http-chars.h"

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

bool slice_is_host_name(Slice a) {
        for (size_t i = 0; i < a.size; i++) {
                char c = a.data[i];

                if (!char_is_letter(c) && !char_is_digit(c) && c != '-' && c != '.' && c != '_')
                        return false;
        }

        return a.size <= HOST_TEXT_MAX && a.size > 0 && !(a.size == 1 && a.data[0] == '.');
}
