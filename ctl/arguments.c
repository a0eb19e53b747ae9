/* SPDX-License-Identifier: MIT */

/* What several verbs take behind their names. */

#include "ctl/arguments.h"

#include <unistd.h>

#include "ctl/die.h"
#include "lib/text.h"

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

json_object *parse_rules(const char *verb, const char *text) {
        json_object *array = must_alloc(json_object_new_array());
        _cleanup_free_ char *copy = must_alloc(strdup(text));
        char *state = NULL;

        if (!utf8_is_valid(text, strlen(text), NULL))
                die_usage("%s: the network rules are not valid UTF-8", verb);
        if (streq(text, "none"))
                return array;
        for (char *rule = strtok_r(copy, ", ", &state); rule; rule = strtok_r(NULL, ", ", &state))
                if (json_array_put_string(array, rule) < 0)
                        die_oom();
        return array;
}
