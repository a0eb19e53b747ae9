/* SPDX-License-Identifier: MIT */

/* What several verbs take behind their names. */

#include "ctl/arguments.h"

#include <unistd.h>

#include "ctl/die.h"

void no_arguments(int argc, char *argv[]) {
        if (argc > 1)
                die_usage("%s: unexpected argument '%s'", argv[0], argv[1]);
}

unsigned take_flags(int *argc, char *argv[], const char *letters) {
        unsigned flags = 0;
        int o;

        optind = 0;
        while ((o = getopt(*argc, argv, letters)) >= 0) {
                const char *letter = strchr(letters, o);

                if (o == '?' || !letter)
                        die_usage("%s: bad option", argv[0]);
                flags |= 1U << (letter - letters);
        }
        memmove(argv + 1, argv + optind, (size_t) (*argc - optind + 1) * sizeof(*argv)); /* with its NULL */
        *argc -= optind - 1;
        return flags;
}
