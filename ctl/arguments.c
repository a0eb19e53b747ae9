/* SPDX-License-Identifier: MIT */

/* What several verbs take behind their names. */

#include "ctl/arguments.h"

#include "ctl/die.h"

void no_arguments(int argc, char *argv[]) {
        if (argc > 1)
                die_usage("%s: takes no argument", argv[0]);
}

/* One flag letter, or nothing. */
bool parse_flag(int argc, char *argv[], const char *letter) {
        bool set = false;

        for (int i = 1; i < argc; i++)
                if (argv[i][0] == '-' && streq(argv[i] + 1, letter))
                        set = true;
                else
                        die_usage("%s: unexpected argument '%s'", argv[0], argv[i]);
        return set;
}

const char *one_session(int argc, char *argv[]) {
        if (argc != 2 || argv[1][0] == '-')
                die_usage("%s: name one session (see 'sandboxctl list')", argv[0]);
        return argv[1];
}
