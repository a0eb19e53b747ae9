/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lines to the editor. They queue in a buffer and leave as fast as the editor reads, without blocking and
 * without O_NONBLOCK on a descriptor that may be shared (with the editor, or as a terminal with anyone).
 */

#include "lib/buffer.h"

/* While more than this is queued no further request is read. */
#define OUTPUT_HIGH_WATER (1 * MIB)

typedef struct Output {
        int fd;                 /* borrowed */
        bool is_socket;
        Buffer queue;           /* append whole lines */
} Output;

void output_init(Output *o, int fd);
void output_done(Output *o);

static inline bool output_is_empty(const Output *o) {
        return buffer_size(&o->queue) == 0;
}

static inline bool output_is_full(const Output *o) {
        return buffer_size(&o->queue) > OUTPUT_HIGH_WATER;
}

/* Writes what the editor takes now. 0, or negative errno when nobody reads any more. */
int output_flush(Output *o);

/* The same for a last time, waiting a little for a reader that is slow. */
void output_drain(Output *o, uint64_t timeout_usec);
