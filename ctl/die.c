/* SPDX-License-Identifier: MIT */

/* Ends the program with a reason. */

#include "ctl/die.h"

#include <stdarg.h>
#include <stdio.h>

void die_oom(void) {
        fputs("sandboxctl: out of memory\n", stderr);
        exit(EXIT_FAILURE);
}

void die_usage(const char *format, ...) {
        va_list ap;

        fputs("sandboxctl: ", stderr);
        va_start(ap, format);
        (void) vfprintf(stderr, format, ap);
        va_end(ap);
        fputs("\nTry 'sandboxctl --help'.\n", stderr);
        exit(2);
}
