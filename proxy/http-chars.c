/* SPDX-License-Identifier: MIT */

#include "proxy/http-chars.h"

bool slice_is_host_name(Slice a) {
        for (size_t i = 0; i < a.size; i++) {
                char c = a.data[i];

                if (!char_is_letter(c) && !char_is_digit(c) && c != '-' && c != '.' && c != '_')
                        return false;
        }

        return a.size <= HOST_TEXT_MAX && a.size > 0 && !(a.size == 1 && a.data[0] == '.');
}
