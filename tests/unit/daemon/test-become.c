/* SPDX-License-Identifier: MIT */

#include <stdio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/become.h"
#include "lib/text.h"

TestSuite(become, .timeout = 10);

/* The arguments, a blank after each. */
static void check(const Become *b, const char *const *argv, const char *expected) {
        _cleanup_(strv_freep) char **all = NULL;
        char text[400] = "";

        cr_assert_eq(become_build_argv(b, "/bin/x", argv, &all), 0);
        for (char **s = all; *s; s++)
                (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ", *s);
        cr_assert_str_eq(text, expected);
}

Test(become, arguments) {
        static const char *const argv[] = { "x", "--uid=0", "", NULL }, *const none[] = { NULL };
        char parent[200];

        check(&(Become){ .uid = 7 }, argv, "sandbox-become --uid=7 -- /bin/x x --uid=0  ");
        check(&(Become){ .uid = 4294967294 }, none, "sandbox-become --uid=4294967294 -- /bin/x ");
        check(&(Become){ .uid = 7, .join_fd = 9, .n_join = 3, .project = "/p q" }, argv,
              "sandbox-become --uid=7 --join=9 --join=10 --join=11 --project=/p q -- /bin/x x --uid=0  ");
        (void) snprintf(parent, sizeof(parent), "sandbox-become --uid=7 --parent=%d --alone -- /bin/x x --uid=0  ", getpid());
        check(&(Become){ .uid = 7, .end_with_us = true, .alone = true }, argv, parent);
}

/* As many as there can be. */
Test(become, all_arguments) {
        static const char *const argv[] = { "x", NULL };
        _cleanup_(strv_freep) char **all = NULL;
        size_t n = 0;

        cr_assert_eq(become_build_argv(&(Become){ .uid = 7, .join_fd = 9, .n_join = BECOME_JOIN_MAX, .project = "/p",
                                                  .end_with_us = true, .alone = true },
                                       "/bin/x", argv, &all), 0);
        while (all[n])
                n++;
        cr_assert_eq(n, 8 + BECOME_JOIN_MAX);
}

Test(become, failure) {
        static const char *const others[] = {
                "",
                "bwrap: No permissions to create new namespace",
                "sandbox-become",
                "sandbox-become: ",
                "sandbox-become: set the user id",
                "sandbox-become: set the user id: errno ",
                "sandbox-become: set the user id: errno 0 (Success)",
                "sandbox-become: set the user id: errno -1 (x)",
                "sandbox-become: set the user id: errno 99999999 (x)",
                "bwrap: sandbox-become: set the user id: errno 1 (x)",
        };
        _cleanup_free_ char *step = NULL;
        int error = 0;

        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                cr_assert_eq(become_failure_parse(others[i], &step, &error), 0, "%s", others[i]);
                cr_assert_null(step);
        }
        cr_assert_eq(become_failure_parse("sandbox-become: execute /a: b: errno 13 (Permission denied)\n", &step, &error), 1);
        cr_assert_str_eq(step, "execute /a: b");
        cr_assert_eq(error, EACCES);
}
