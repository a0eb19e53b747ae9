/* SPDX-License-Identifier: MIT */
#pragma once

#include <criterion/criterion.h>

#include "proxy/http-request.h"

/* Reads it whole, and byte by byte: both must say the same, and the latter not before all was there. */
static inline HttpError read_head(const char *data, size_t size, HttpRequest *ret) {
        HttpRequest bytes = {};
        HttpError whole, e = HTTP_MORE;
        size_t n = 0;

        *ret = (HttpRequest){};
        whole = http_request_read(ret, data, size);
        cr_assert_eq(http_request_read(ret, data, size), whole, "said twice");

        while (e == HTTP_MORE && n < size)
                e = http_request_read(&bytes, data, ++n);
        cr_assert_eq(e, whole, "%s", data);
        if (whole == HTTP_OK) {
                cr_assert_eq(n, ret->head_size);
                cr_assert_eq(bytes.n_fields, ret->n_fields);
                cr_assert_eq(bytes.method.data, ret->method.data);
                cr_assert_eq(bytes.head_size, ret->head_size);
        }
        return whole;
}
