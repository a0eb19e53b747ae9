/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "daemon/obituary.h"

static Obituaries o;

static void teardown(void) {
        obituaries_done(&o);
        cr_assert_eq(o.n, 0);
}

TestSuite(obituary, .fini = teardown, .timeout = 20);

static void check_taken(uid_t uid, const char *project, const char *name, const char *expected) {
        const char *reason = obituaries_take(&o, uid, project, name);

        cr_assert(streq_ptr(reason, expected), "%s, not %s", reason ?: "none", expected ?: "none");
}

Test(obituary, told_once) {
        check_taken(5, "/p", "x", NULL);
        obituaries_add(&o, 5, "/p", "x", "idle");
        cr_assert_str_eq(obituaries_find(&o, 5, "/p", "x"), "idle");
        cr_assert_null(obituaries_find(&o, 6, "/p", "x"));
        check_taken(5, "/p", "x", "idle");
        check_taken(5, "/p", "x", NULL);
        cr_assert_null(obituaries_find(&o, 5, "/p", "x"));
}

Test(obituary, of_that_name_project_and_user_only) {
        obituaries_add(&o, 5, "/p", "x", "idle");
        check_taken(6, "/p", "x", NULL);
        check_taken(5, "/q", "x", NULL);
        check_taken(5, "/p", "y", NULL);
        check_taken(5, "/p", "x", "idle");
}

Test(obituary, the_last_reason_counts) {
        obituaries_add(&o, 5, "/p", "x", "idle");
        obituaries_add(&o, 5, "/p", "other", "admin");
        obituaries_add(&o, 5, "/p", "x", "lifetime");
        check_taken(5, "/p", "x", "lifetime");
        check_taken(5, "/p", "x", NULL);
        check_taken(5, "/p", "other", "admin");
}

Test(obituary, taken_in_any_order) {
        static const char *const orders[] = { "abc", "cba", "bac", "bca" };

        for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
                for (char c = 'a'; c <= 'c'; c++)
                        obituaries_add(&o, 0, "/", (const char[]) { c, 0 }, "idle");
                for (const char *c = orders[i]; *c; c++)
                        check_taken(0, "/", (const char[]) { *c, 0 }, "idle");
                cr_assert_null(o.first);
                cr_assert_null(o.last);
                cr_assert_eq(o.n, 0);
        }
}

Test(obituary, bounded) {
        char name[16];

        for (unsigned i = 0; i < OBITUARIES_MAX + 2; i++) {
                (void) snprintf(name, sizeof(name), "s%u", i);
                obituaries_add(&o, 0, "/", name, "idle");
        }
        cr_assert_eq(o.n, OBITUARIES_MAX);
        check_taken(0, "/", "s1", NULL);
        check_taken(0, "/", "s2", "idle");
        check_taken(0, "/", name, "idle");
}
