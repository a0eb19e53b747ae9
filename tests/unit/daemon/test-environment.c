/* SPDX-License-Identifier: MIT */

#include <stdio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/environment.h"

static EnvironmentTable *table;

static void setup(void) {
        cr_assert_eq(environment_table_new(&table), 0);
}

static void teardown(void) {
        table = environment_table_free(table);
}

TestSuite(environment, .init = setup, .fini = teardown, .timeout = 10);

static Environment *make(const char *name, Interpreter i) {
        Environment *e = environment_new(name, NULL);

        cr_assert_not_null(e);
        cr_assert_eq(environment_add_interpreter(e, i), 0);
        return e;
}

Test(environment, interpreter_names) {
        for (Interpreter i = 0; i < _INTERPRETER_MAX; i++) {
                cr_assert_eq(interpreter_from_string(interpreter_to_string(i)), i);
                cr_assert_eq(interpreter_from_alias(interpreter_to_string(i)), i);
                cr_assert_not_null(interpreter_program(i));
        }
        cr_assert_null(interpreter_to_string(_INTERPRETER_MAX));
        cr_assert_null(interpreter_to_string(_INTERPRETER_INVALID));
        cr_assert_null(interpreter_program(_INTERPRETER_INVALID));
        cr_assert_str_eq(interpreter_program(INTERPRETER_PYTHON), "python3");
}

Test(environment, interpreter_alias) {
        cr_assert_eq(interpreter_from_string("shell"), _INTERPRETER_INVALID);
        cr_assert_eq(interpreter_from_alias("shell"), INTERPRETER_BASH);

        const char *const bad[] = { "", "Python", "python3", "sh", "bash ", NULL };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                cr_assert_eq(interpreter_from_string(bad[i]), _INTERPRETER_INVALID);
                cr_assert_eq(interpreter_from_alias(bad[i]), _INTERPRETER_INVALID);
        }
}

Test(environment, builtin) {
        const Environment *e;

        cr_assert_eq(environment_table_add_builtin(table), 0);
        cr_assert_eq(environment_table_size(table), 4);
        cr_assert_null(environment_table_get(table, 4));

        e = environment_table_find(table, "default");
        cr_assert_eq(e->n_interpreters, 3);
        cr_assert_eq(e->interpreters[0], INTERPRETER_PYTHON);
        for (Interpreter i = 0; i < _INTERPRETER_MAX; i++)
                cr_assert(environment_has(e, i));

        e = environment_table_find(table, "shell");
        cr_assert(e->is_preset);
        cr_assert(environment_has(e, INTERPRETER_BASH));
        cr_assert_not(environment_has(e, INTERPRETER_NODE));
        cr_assert_null(environment_table_find(table, "bash"));
        cr_assert_null(environment_table_find(table, ""));
}

Test(environment, same_interpreter_twice) {
        _cleanup_(environment_freep) Environment *e = make("x", INTERPRETER_NODE);

        cr_assert_eq(environment_add_interpreter(e, INTERPRETER_NODE), -EEXIST);
        cr_assert_eq(environment_add_interpreter(e, _INTERPRETER_INVALID), -EINVAL);
        cr_assert_eq(environment_add_interpreter(e, _INTERPRETER_MAX), -EINVAL);
        cr_assert_eq(e->n_interpreters, 1);
}

Test(environment, replace_keeps_the_place) {
        cr_assert_eq(environment_table_add(table, make("a", INTERPRETER_NODE)), 0);
        cr_assert_eq(environment_table_add(table, make("b", INTERPRETER_NODE)), 0);
        cr_assert_eq(environment_table_add(table, make("a", INTERPRETER_BASH)), 0);

        cr_assert_eq(environment_table_size(table), 2);
        cr_assert_str_eq(environment_table_get(table, 0)->name, "a");
        cr_assert(environment_has(environment_table_find(table, "a"), INTERPRETER_BASH));
}

Test(environment, refused) {
        _cleanup_(environment_freep) Environment *empty = environment_new("empty", NULL);
        _cleanup_(environment_freep) Environment *bad = make("../x", INTERPRETER_BASH);

        cr_assert_eq(environment_table_add(table, empty), -EINVAL);
        cr_assert_eq(environment_table_add(table, bad), -EINVAL);
        cr_assert_eq(environment_table_size(table), 0);
}

Test(environment, full) {
        _cleanup_(environment_freep) Environment *one_more = make("one-more", INTERPRETER_BASH);

        for (unsigned i = 0; i < ENVIRONMENTS_MAX; i++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "e%u", i);
                cr_assert_eq(environment_table_add(table, make(name, INTERPRETER_BASH)), 0);
        }
        cr_assert_eq(environment_table_add(table, one_more), -E2BIG);
        cr_assert_eq(environment_table_add(table, make("e0", INTERPRETER_NODE)), 0);
}

Test(environment, installed) {
        const Environment *e;

        cr_assert_eq(environment_table_add_builtin(table), 0);
        e = environment_table_find(table, "shell");
        cr_assert_eq(environment_interpreter_installed(e, INTERPRETER_BASH),
                     access("/bin/bash", X_OK) >= 0 || access("/usr/local/bin/bash", X_OK) >= 0);
        cr_assert_not(environment_interpreter_installed(e, INTERPRETER_PYTHON), "not in this environment");
}
