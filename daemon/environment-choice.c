/* SPDX-License-Identifier: MIT */

/* The rules, for a new session and for one that is there. */

#include "daemon/environment-choice.h"

static int choose_interpreter(const Environment *e, const char *interpreter, Interpreter *ret) {
        Interpreter i;

        if (!interpreter) {
                *ret = e->interpreters[0];
                return 0;
        }

        i = interpreter_from_alias(interpreter);
        if (i < 0 || !environment_has(e, i))
                return CHOICE_E_NO_INTERPRETER;
        *ret = i;
        return 0;
}

int environment_choose_new(const EnvironmentTable *table, const char *environment, const char *interpreter,
                           bool named, EnvironmentChoice *ret) {
        const Environment *e = environment_table_find(table, environment ?: ENVIRONMENT_DEFAULT), *wide;
        Interpreter i;
        int r;

        /* "bash" is what models write for the preset that is called shell. */
        if (!e && environment && interpreter_from_alias(environment) == INTERPRETER_BASH)
                e = environment_table_find(table, "shell");
        if (!e)
                return CHOICE_E_NO_ENVIRONMENT;

        r = choose_interpreter(e, interpreter, &i);
        if (r != 0)
                return r;

        wide = named && e->is_preset ? environment_table_find(table, ENVIRONMENT_DEFAULT) : NULL;
        /* Who asked for an environment without a network gets none. */
        if (wide && environment_has(wide, i) && !wide->has_network)
                e = wide;

        *ret = (EnvironmentChoice){ .environment = e, .interpreter = i };
        return 0;
}

int environment_choose_existing(const Environment *current, const char *environment, const char *interpreter,
                                EnvironmentChoice *ret) {
        Interpreter i;
        int r;

        *ret = (EnvironmentChoice){ .environment = current };

        if (!environment || streq(environment, current->name))
                return choose_interpreter(current, interpreter, &ret->interpreter);

        i = interpreter_from_alias(environment);
        if (i < 0 || !environment_has(current, i))
                return CHOICE_E_MISMATCH;
        if (!interpreter) {
                ret->interpreter = i;
                return 0;
        }

        r = choose_interpreter(current, interpreter, &ret->interpreter);
        return r != 0 || ret->interpreter != i ? CHOICE_E_NO_INTERPRETER : 0;
}
