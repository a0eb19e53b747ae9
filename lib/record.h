/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Records that end with a delimiter: varlink messages (NUL) and MCP lines (LF). Pure. A Record remembers
 * how far it has looked, so that a message arriving in a thousand pieces is scanned once.
 */

#include "buffer.h"
#include "macro.h"

typedef struct RecordScanner {
        char delimiter;
        size_t max;             /* largest record, without its delimiter */
        size_t scanned;         /* private */
} RecordScanner;

/*
 * 1: a record of *ret_size bytes is at the front (drop it with record_consume()); 0: incomplete;
 * -EMSGSIZE: longer than max, complete or not.
 */
int record_peek(RecordScanner *r, const Buffer *b, size_t *ret_size);

/* Drops a record and its delimiter. */
void record_consume(RecordScanner *r, Buffer *b, size_t size);
