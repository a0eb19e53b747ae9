/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/environment.h"
#include "lib/fd-util.h"

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
        _cleanup_(environment_unrefp) Environment *e = make("x", INTERPRETER_NODE);

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
        _cleanup_(environment_unrefp) Environment *empty = environment_new("empty", NULL);
        _cleanup_(environment_unrefp) Environment *bad = make("../x", INTERPRETER_BASH);

        cr_assert_eq(environment_table_add(table, empty), -EINVAL);
        cr_assert_eq(environment_table_add(table, bad), -EINVAL);
        cr_assert_eq(environment_table_size(table), 0);
}

Test(environment, full) {
        _cleanup_(environment_unrefp) Environment *one_more = make("one-more", INTERPRETER_BASH);

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

/* A session keeps what its table does not have any more. */
Test(environment, references) {
        const Environment *kept;

        cr_assert_eq(environment_table_add(table, make("a", INTERPRETER_NODE)), 0);
        kept = environment_ref(environment_table_find(table, "a"));
        cr_assert_eq(environment_table_add(table, make("a", INTERPRETER_BASH)), 0);
        cr_assert_neq(environment_table_find(table, "a"), kept);
        cr_assert_str_eq(kept->name, "a");
        cr_assert(environment_has(kept, INTERPRETER_NODE));
        cr_assert_null(environment_unref(kept));
        cr_assert_null(environment_unref(NULL));
}

static void make_program(const char *directory, const char *name, mode_t mode) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;

        cr_assert_gt(asprintf(&path, "%s/%s", directory, name), 0);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
        cr_assert_geq(fd, 0);
}

static void remove_from(const char *directory, const char *name) {
        _cleanup_free_ char *path = NULL;

        cr_assert_gt(asprintf(&path, "%s/%s", directory, name), 0);
        cr_assert_eq(unlink(path), 0);
}

/* A store with one path, that is also a root, and its list. */
Test(environment, with_a_closure) {
        char store[] = "/tmp/test-environment-XXXXXX";
        _cleanup_free_ char *root = NULL, *bin = NULL, *list = NULL, *why = NULL, *line = NULL;
        _cleanup_(environment_unrefp) Environment *e = make("a", INTERPRETER_PYTHON);

        cr_assert_not_null(mkdtemp(store));
        cr_assert_gt(asprintf(&root, "%s/env", store), 0);
        cr_assert_gt(asprintf(&bin, "%s/bin", root), 0);
        cr_assert_gt(asprintf(&list, "%s/list", store), 0);
        cr_assert_gt(asprintf(&line, "%s\n", root), 0);
        cr_assert(mkdir(root, 0755) >= 0 && mkdir(bin, 0755) >= 0);
        make_program(bin, "python3", 0755);
        make_program(bin, "env", 0755);
        make_program(bin, "node", 0644);
        make_program(store, "list", 0644);
        cr_assert_eq(write_file_at(AT_FDCWD, list, line), 0);
        cr_assert_eq(environment_add_interpreter(e, INTERPRETER_NODE), 0);
        cr_assert_not_null(e->root = strdup(root));
        cr_assert_not_null(e->closure_path = strdup(list));

        cr_assert_not(environment_interpreter_installed(e, INTERPRETER_PYTHON), "not looked for yet");
        cr_assert_eq(environment_load(e, &why), 0, "%s", why ?: "?");
        cr_assert_str_eq(e->closure->store, store);
        cr_assert_eq(e->programs, (1U << INTERPRETER_PYTHON) | ENVIRONMENT_HAS_ENV);
        cr_assert(environment_interpreter_installed(e, INTERPRETER_PYTHON));
        cr_assert_not(environment_interpreter_installed(e, INTERPRETER_NODE), "not executable, and not the host's");

        free(e->root);
        cr_assert_not_null(e->root = strdup("/elsewhere"));
        e->closure = closure_free(e->closure);
        cr_assert_eq(environment_load(e, &why), -EINVAL);
        cr_assert_not_null(strstr(why, ": the root is none of its paths"));

        remove_from(bin, "python3");
        remove_from(bin, "env");
        remove_from(bin, "node");
        cr_assert_eq(unlink(list), 0);
        cr_assert(rmdir(bin) >= 0 && rmdir(root) >= 0 && rmdir(store) >= 0);
}
