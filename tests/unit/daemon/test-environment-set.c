/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "daemon/environment-set.h"

static EnvironmentTable *base;
static NetworkSets sets;
static Artifact artifacts[2][70];
static ArtifactDirectory directories[2];

static void setup(void) {
        Environment *e = environment_new("mine", NULL);

        cr_assert_not_null(e);
        e->is_configured = true;
        cr_assert_eq(environment_add_interpreter(e, INTERPRETER_BASH), 0);
        cr_assert_eq(environment_table_new(&base), 0);
        cr_assert_eq(environment_table_add_builtin(base), 0);
        cr_assert_eq(environment_table_add(base, e), 0);
        for (size_t i = 0; i < ELEMENTSOF(directories); i++)
                directories[i] = (ArtifactDirectory){ .path = (char *) "/d", .artifacts = artifacts[i] };
}

static void teardown(void) {
        base = environment_table_free(base);
        for (size_t i = 0; i < ELEMENTSOF(directories); i++)
                for (size_t k = 0; k < directories[i].n_artifacts; k++) {
                        free(artifacts[i][k].path);
                        free(artifacts[i][k].text);
                }
}

TestSuite(environment_set, .init = setup, .fini = teardown, .timeout = 20);

static Artifact *add(size_t directory, const char *name) {
        ArtifactDirectory *d = &directories[directory];
        Artifact *a = &d->artifacts[d->n_artifacts++];

        *a = (Artifact){
                .closure_path = (char *) "/p",
                .closure = (char *) "/nix/store/h-env\n",
                .closure_size = strlen("/nix/store/h-env\n"),
                .programs = ~0U,
        };
        cr_assert_geq(asprintf(&a->path, "/d%zu/%s", directory, name), 0);
        cr_assert_geq(asprintf(&a->text,
                               "{\"version\":1,\"name\":\"%s\",\"interpreters\":[\"bash\"],\"root\":\"/nix/store/h-env\","
                               "\"closure\":\"p\"}",
                               name),
                      0);
        a->text_size = strlen(a->text);
        return a;
}

static EnvironmentSet *make(const EnvironmentTable *from, EnvironmentScope scope) {
        EnvironmentSet *s = NULL;

        cr_assert_eq(environment_set_new(from, &sets, directories, ELEMENTSOF(directories), scope, &s), 0);
        return s;
}

/* Which is which by its source; NULL: the table's own. */
static void found(const EnvironmentSet *s, const char *name, const char *source) {
        const Environment *e = environment_table_find(environment_set_table(s), name);

        cr_assert_not_null(e, "%s", name);
        cr_assert_eq(!e->source, !source);
        if (source)
                cr_assert_str_eq(e->source, source);
}

static void passed_over(const EnvironmentSet *s, size_t i, const char *path, const char *reason) {
        const EnvironmentBroken *b;
        size_t n;

        b = environment_set_broken(s, &n);
        cr_assert_lt(i, n);
        cr_assert_str_eq(b[i].path, path);
        cr_assert_str_eq(b[i].reason, reason);
}

Test(environment_set, precedence) {
        _cleanup_(environment_set_unrefp) EnvironmentSet *s = NULL;
        size_t n;

        (void) add(0, "new");
        (void) add(0, "python");
        (void) add(0, "mine");
        (void) add(1, "new");
        (void) add(1, "second");
        s = make(base, ENVIRONMENT_SCOPE_SYSTEM);

        cr_assert_eq(environment_table_size(environment_set_table(s)), 7);
        found(s, "new", "/d0/new");
        found(s, "python", "/d0/python");
        found(s, "second", "/d1/second");
        found(s, "mine", NULL);
        found(s, "default", NULL);
        (void) environment_set_broken(s, &n);
        cr_assert_eq(n, 2);
        passed_over(s, 0, "/d0/mine", "'mine' has the name of an environment of the configuration");
        passed_over(s, 1, "/d1/new", "'new' has the name of another artifact that comes before it");
        cr_assert_not(environment_table_find(environment_set_table(s), "new")->is_users);
        cr_assert_null(environment_table_find(base, "new"));
}

Test(environment_set, of_a_user) {
        _cleanup_(environment_set_unrefp) EnvironmentSet *all = NULL, *s = NULL;

        (void) add(0, "python");
        all = make(base, ENVIRONMENT_SCOPE_SYSTEM);
        (void) add(0, "shell");
        (void) add(0, "his");
        (void) add(1, "his");
        s = make(environment_set_table(all), ENVIRONMENT_SCOPE_USER);

        found(s, "his", "/d0/his");
        cr_assert(environment_table_find(environment_set_table(s), "his")->is_users);
        found(s, "shell", NULL);
        passed_over(s, 0, "/d0/python", "'python' has the name of an environment for all users");
        passed_over(s, 1, "/d0/shell", "'shell' has the name of an environment for all users");
        passed_over(s, 2, "/d1/his", "'his' has the name of another artifact that comes before it");
        cr_assert_null(environment_table_find(environment_set_table(all), "his"));
}

Test(environment_set, reasons) {
        _cleanup_(environment_set_unrefp) EnvironmentSet *s = NULL;

        directories[0].reason = (char *) "it is odd";
        add(0, "a")->reason = (char *) "it is not there";
        free(add(0, "b\x1b[31m")->text);
        artifacts[0][1].text = strdup("{");
        artifacts[0][1].text_size = 1;
        (void) add(0, "c");
        s = make(base, ENVIRONMENT_SCOPE_SYSTEM);

        passed_over(s, 0, "/d", "it is odd");
        passed_over(s, 1, "/d0/a", "it is not there");
        passed_over(s, 2, "'/d0/b\\x1b[31m'", "environment.json:1:2: not valid JSON");
        found(s, "c", "/d0/c");
}

Test(environment_set, too_many) {
        _cleanup_(environment_set_unrefp) EnvironmentSet *s = NULL;
        size_t n;

        for (unsigned i = 0; i < 62; i++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "e%02u", i);
                (void) add(0, name);
        }
        s = make(base, ENVIRONMENT_SCOPE_SYSTEM);
        cr_assert_eq(environment_table_size(environment_set_table(s)), ENVIRONMENTS_MAX);
        (void) environment_set_broken(s, &n);
        cr_assert_eq(n, 3);
        passed_over(s, 0, "/d0/e59", "it is one environment too many: 64 are possible");
}

/* Who holds one keeps it. */
Test(environment_set, references) {
        EnvironmentSet *s;
        const Environment *e;

        (void) add(0, "x");
        s = make(base, ENVIRONMENT_SCOPE_SYSTEM);
        e = environment_ref(environment_table_find(environment_set_table(s), "x"));
        (void) environment_set_ref(s);
        (void) environment_set_unref(s);
        found(s, "x", "/d0/x");
        (void) environment_set_unref(s);
        cr_assert_str_eq(e->name, "x");
        (void) environment_unref(e);
}
