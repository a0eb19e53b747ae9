/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "daemon/user.h"

Test(user, nobody_at_first) {
        cr_assert_null(user_find(NULL, 0));
}

Test(user, charge_and_release) {
        User *users = NULL, *a, *b;

        a = user_charge(&users, 1000, 512);
        b = user_charge(&users, 0, 64);
        cr_assert_not_null(a);
        cr_assert_neq(a, b);
        cr_assert_eq(user_charge(&users, 1000, 100), a);

        cr_assert_eq(user_find(users, 1000), a);
        cr_assert_eq(a->n_sessions, 2);
        cr_assert_eq(a->memory_mb, 612);
        cr_assert_eq(user_find(users, 0)->memory_mb, 64);
        cr_assert_null(user_find(users, 1001));

        user_release(&users, a, 512);
        cr_assert_eq(a->n_sessions, 1);
        cr_assert_eq(a->memory_mb, 100);
        user_release(&users, a, 100);
        cr_assert_null(user_find(users, 1000));
        cr_assert_eq(user_find(users, 0), b);
        user_release(&users, b, 64);
        cr_assert_null(users);
}

Test(user, recharge) {
        User *users = NULL, *u;

        u = user_charge(&users, 1000, 512);
        cr_assert_eq(user_charge(&users, 1000, 100), u);
        user_recharge(u, 512, 1024);
        cr_assert_eq(u->memory_mb, 1124);
        user_recharge(u, 100, 32);
        cr_assert_eq(u->memory_mb, 1056);
        user_release(&users, u, 1024);
        cr_assert_eq(u->memory_mb, 32);
        user_release(&users, u, 32);
        cr_assert_null(users);
}

/* First, last and in between. */
Test(user, release_in_any_order) {
        static const int orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 }, { 1, 2, 0 } };

        for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
                User *users = NULL, *u[3];

                for (size_t k = 0; k < 3; k++)
                        u[k] = user_charge(&users, (uid_t) k, 1);
                for (size_t k = 0; k < 3; k++) {
                        user_release(&users, u[orders[i][k]], 1);
                        for (size_t left = k + 1; left < 3; left++)
                                cr_assert_not_null(user_find(users, (uid_t) orders[i][left]));
                }
                cr_assert_null(users);
        }
}
