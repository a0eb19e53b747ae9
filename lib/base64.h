/* SPDX-License-Identifier: MIT */
#pragma once

/* Bytes in JSON: RFC 4648, section 4. Pure. */

#include "buffer.h"
#include "macro.h"

static inline size_t base64_length(size_t size) {
        return (size + 2) / 3 * 4;
}

/* Appends the text of some bytes. -ENOMEM. */
int base64_append(Buffer *b, const void *data, size_t size);

/* Appends the bytes of a text. Strict: -EBADMSG for white space, missing padding and bits that mean nothing; then
 * nothing was appended. */
int base64_decode_append(Buffer *b, const char *text, size_t size);
