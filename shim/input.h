/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lines from the editor. A line that is too long is skipped to its end without being kept, all but its first
 * and last bytes, so that the request can still be answered and the next line is read. Zero-initialise but
 * for fd; input_done() frees.
 */

#include "lib/buffer.h"
#include "lib/record.h"

#define INPUT_EDGE 256U

typedef struct Input {
        int fd;                         /* borrowed */
        Buffer buffer;
        RecordScanner scanner;
        size_t consume;                 /* the line handed out last, dropped by the next call */
        bool has_line;
        bool skipping;
        char head[INPUT_EDGE], tail[INPUT_EDGE];
        size_t n_head, n_tail;
} Input;

typedef enum InputLine {
        INPUT_NONE,                     /* read more */
        INPUT_LINE,
        INPUT_LINE_TOO_LONG,            /* its edges are in head and tail */
} InputLine;

void input_init(Input *i, int fd, size_t line_max);
void input_done(Input *i);

/* Reads once from a descriptor that is ready. 1: something, 0: end, negative errno. -EAGAIN is possible. */
int input_read(Input *i);

/* The next line without its end; valid until the next call. */
InputLine input_next(Input *i, const char **ret, size_t *ret_size);
