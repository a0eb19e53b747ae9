/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The shim holds no state that could be saved, so an allocation that fails simply ends it: the editor starts
 * another one and the sessions are in the daemon.
 */

#include <unistd.h>

#include "lib/log.h"

_noreturn_ static inline void die_oom(void) {
        (void) log_oom();
        _exit(EXIT_FAILURE);
}

/* For calls that can fail only for lack of memory. */
static inline void must(int r) {
        if (r < 0)
                die_oom();
}

static inline void *must_alloc(void *p) {
        if (!p)
                die_oom();
        return p;
}

/* Appends formatted text to a Buffer. */
#define emit(b, ...) must(buffer_printf((b), __VA_ARGS__))
