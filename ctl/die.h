/* SPDX-License-Identifier: MIT */
#pragma once

/* A command-line tool may end where a daemon may not: on memory that is short, and on its own user's
 * mistakes. */

#include "lib/macro.h"

_noreturn_ void die_oom(void);
/* One line on stderr and exit status 2: the command line was wrong. */
_noreturn_ void die_usage(const char *format, ...) _printf_(1, 2);

static inline void *must_alloc(void *p) {
        if (!p)
                die_oom();
        return p;
}
