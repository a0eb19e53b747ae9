/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "daemon/session-index.h"

#define MANY 5000U

static SessionIndex x;
static User alice = { .uid = 1000 }, bob = { .uid = 1001 };

TestSuite(session_index, .timeout = 10);

static Session make(User *user, const char *id, const char *project, const char *name) {
        Session s = { .user = user, .project = (char *) project, .name = (char *) name };

        (void) snprintf(s.id, sizeof(s.id), "%s", id);
        return s;
}

Test(session_index, empty) {
        Session s = make(&alice, "0", "/p", "n");

        cr_assert_null(session_index_find_id(&x, "0"));
        cr_assert_null(session_index_find_named(&x, 1000, "/p", "n"));
        session_index_remove(&x, &s);
}

/* Nobody finds what is another's, of another project, or runs into it. */
Test(session_index, names_are_of_a_user_and_a_project) {
        Session a = make(&alice, "a", "/p", "n"), b = make(&bob, "b", "/p", "n"), c = make(&alice, "c", "/q", "n"),
                d = make(&alice, "d", "/pn", "n"), nameless = make(&alice, "e", "/p", NULL);
        Session *all[] = { &a, &b, &c, &d, &nameless };

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                session_index_add(&x, all[i]);

        cr_assert_eq(session_index_find_named(&x, 1000, "/p", "n"), &a);
        cr_assert_eq(session_index_find_named(&x, 1001, "/p", "n"), &b);
        cr_assert_eq(session_index_find_named(&x, 1000, "/q", "n"), &c);
        cr_assert_eq(session_index_find_named(&x, 1000, "/pn", "n"), &d);
        cr_assert_null(session_index_find_named(&x, 1002, "/p", "n"));
        cr_assert_null(session_index_find_named(&x, 1001, "/q", "n"));
        cr_assert_null(session_index_find_named(&x, 1000, "/", "pn"));
        cr_assert_eq(session_index_find_id(&x, "e"), &nameless);
}

/* More than there are buckets, taken out in another order. */
Test(session_index, many) {
        static Session sessions[MANY];
        static char names[MANY][8];

        for (size_t i = 0; i < MANY; i++) {
                (void) snprintf(names[i], sizeof(names[i]), "%zu", i);
                sessions[i] = make(i % 2 ? &alice : &bob, names[i], "/p", names[i]);
                session_index_add(&x, &sessions[i]);
        }

        for (size_t i = 0; i < MANY; i += 3) {
                session_index_remove(&x, &sessions[i]);
                session_index_remove(&x, &sessions[i]);
        }

        for (size_t i = 0; i < MANY; i++) {
                Session *expected = i % 3 ? &sessions[i] : NULL;

                cr_assert_eq(session_index_find_id(&x, names[i]), expected);
                cr_assert_eq(session_index_find_named(&x, i % 2 ? 1000 : 1001, "/p", names[i]), expected);
                cr_assert_null(session_index_find_named(&x, i % 2 ? 1001 : 1000, "/p", names[i]));
        }
}

/* A new session may take the name of one that is on its way out. */
Test(session_index, name_again) {
        Session old = make(&alice, "a", "/p", "n"), new = make(&alice, "b", "/p", "n");

        session_index_add(&x, &old);
        session_index_remove(&x, &old);
        session_index_add(&x, &new);
        cr_assert_eq(session_index_find_named(&x, 1000, "/p", "n"), &new);
        session_index_remove(&x, &old);
        cr_assert_eq(session_index_find_named(&x, 1000, "/p", "n"), &new);
}
