/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "daemon/environment-choice.h"

static EnvironmentTable *table;

static void add(const char *name, const Interpreter *interpreters, size_t n) {
        Environment *e = environment_new(name, NULL);

        cr_assert_not_null(e);
        for (size_t i = 0; i < n; i++)
                cr_assert_eq(environment_add_interpreter(e, interpreters[i]), 0);
        cr_assert_eq(environment_table_add(table, e), 0);
}

static void setup(void) {
        cr_assert_eq(environment_table_new(&table), 0);
        cr_assert_eq(environment_table_add_builtin(table), 0);
        add("data", (const Interpreter[]) { INTERPRETER_BASH, INTERPRETER_PYTHON }, 2);
}

static void teardown(void) {
        table = environment_table_free(table);
}

TestSuite(environment_choice, .init = setup, .fini = teardown, .timeout = 10);

typedef struct Row {
        const char *environment, *interpreter;
        int result;
        const char *chosen;
        Interpreter runs;
} Row;

static void check(const Row *row, bool named) {
        EnvironmentChoice c;

        cr_assert_eq(environment_choose_new(table, row->environment, row->interpreter, named, &c), row->result,
                     "%s/%s", row->environment, row->interpreter);
        if (row->result != 0)
                return;
        cr_assert_str_eq(c.environment->name, row->chosen, "%s/%s", row->environment, row->interpreter);
        cr_assert_eq(c.interpreter, row->runs, "%s/%s", row->environment, row->interpreter);
}

Test(environment_choice, for_a_named_session) {
        static const Row rows[] = {
                { NULL, NULL, 0, "default", INTERPRETER_PYTHON },
                { NULL, "node", 0, "default", INTERPRETER_NODE },
                { "default", "shell", 0, "default", INTERPRETER_BASH },
                /* A preset gives the wide environment, so that all three share the session. */
                { "python", NULL, 0, "default", INTERPRETER_PYTHON },
                { "shell", NULL, 0, "default", INTERPRETER_BASH },
                { "bash", NULL, 0, "default", INTERPRETER_BASH },
                { "node", NULL, 0, "default", INTERPRETER_NODE },
                { "node", "node", 0, "default", INTERPRETER_NODE },
                { "shell", "bash", 0, "default", INTERPRETER_BASH },
                /* Custom ones bind. */
                { "data", NULL, 0, "data", INTERPRETER_BASH },
                { "data", "python", 0, "data", INTERPRETER_PYTHON },
                { "data", "node", CHOICE_E_NO_INTERPRETER },
                { "python", "node", CHOICE_E_NO_INTERPRETER },
                { "python", "ruby", CHOICE_E_NO_INTERPRETER },
                { "python", "", CHOICE_E_NO_INTERPRETER },
                { "ruby", NULL, CHOICE_E_NO_ENVIRONMENT },
                { "", NULL, CHOICE_E_NO_ENVIRONMENT },
                { "Python", NULL, CHOICE_E_NO_ENVIRONMENT },
                { "pythоn", NULL, CHOICE_E_NO_ENVIRONMENT }, /* Cyrillic о */
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                check(&rows[i], true);
}

Test(environment_choice, for_one_run) {
        static const Row rows[] = {
                { NULL, NULL, 0, "default", INTERPRETER_PYTHON },
                { "python", NULL, 0, "python", INTERPRETER_PYTHON },
                { "bash", NULL, 0, "shell", INTERPRETER_BASH },
                { "data", "python", 0, "data", INTERPRETER_PYTHON },
                { "shell", "python", CHOICE_E_NO_INTERPRETER },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                check(&rows[i], false);
}

/* "default" can be made narrower in the configuration; a preset then stays what it is. */
Test(environment_choice, narrow_default) {
        add("default", (const Interpreter[]) { INTERPRETER_NODE }, 1);

        check(&(Row) { "python", NULL, 0, "python", INTERPRETER_PYTHON }, true);
        check(&(Row) { "node", NULL, 0, "default", INTERPRETER_NODE }, true);
        check(&(Row) { NULL, NULL, 0, "default", INTERPRETER_NODE }, true);
}

Test(environment_choice, in_an_existing_session) {
        static const struct {
                const char *current, *environment, *interpreter;
                int result;
                Interpreter runs;
        } rows[] = {
                { "default", NULL, NULL, 0, INTERPRETER_PYTHON },
                { "default", NULL, "bash", 0, INTERPRETER_BASH },
                { "default", "default", NULL, 0, INTERPRETER_PYTHON },
                { "default", "default", "node", 0, INTERPRETER_NODE },
                { "default", "shell", NULL, 0, INTERPRETER_BASH },
                { "default", "bash", NULL, 0, INTERPRETER_BASH },
                { "default", "node", "node", 0, INTERPRETER_NODE },
                { "default", "shell", "bash", 0, INTERPRETER_BASH },
                { "default", "python", "node", CHOICE_E_NO_INTERPRETER },
                { "default", "python", "ruby", CHOICE_E_NO_INTERPRETER },
                { "default", "data", NULL, CHOICE_E_MISMATCH },
                { "default", "ruby", NULL, CHOICE_E_MISMATCH },
                { "default", "", NULL, CHOICE_E_MISMATCH },
                { "data", NULL, NULL, 0, INTERPRETER_BASH },
                { "data", "data", "python", 0, INTERPRETER_PYTHON },
                { "data", "python", NULL, 0, INTERPRETER_PYTHON },
                { "data", "node", NULL, CHOICE_E_MISMATCH },
                { "data", "default", NULL, CHOICE_E_MISMATCH },
                { "data", NULL, "node", CHOICE_E_NO_INTERPRETER },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Environment *current = environment_table_find(table, rows[i].current);
                EnvironmentChoice c;

                cr_assert_eq(environment_choose_existing(current, rows[i].environment, rows[i].interpreter, &c),
                             rows[i].result, "row %zu", i);
                cr_assert_eq(c.environment, current);
                if (rows[i].result == 0)
                        cr_assert_eq(c.interpreter, rows[i].runs, "row %zu", i);
        }
}

/* The presets do not share what they would not reach alone. */
Test(environment_choice, default_with_a_network) {
        static const Row rows[] = {
                { NULL, NULL, 0, "default", INTERPRETER_PYTHON },
                { "python", NULL, 0, "python", INTERPRETER_PYTHON },
                { "node", NULL, 0, "node", INTERPRETER_NODE },
        };

        ((Environment *) environment_table_find(table, "default"))->has_network = true;
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                check(&rows[i], true);
}
