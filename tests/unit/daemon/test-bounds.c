/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "daemon/bounds.h"

#define S USEC_PER_SEC

TestSuite(bounds, .timeout = 20);

static const Bounds three = { .idle_usec = 100 * S, .lifetime_usec = 1000 * S, .turn_budget_usec = 500 * S };
static const Bounds none = { USEC_INFINITY, USEC_INFINITY, USEC_INFINITY };

Test(bounds, idle_counts_from_the_last_turn_and_not_while_busy) {
        BoundsUse use = { .created = 10 * S, .idle_since = 50 * S };

        cr_assert_eq(bounds_hit(&three, &use, 149 * S), _BOUND_NONE);
        cr_assert_eq(bounds_hit(&three, &use, 150 * S), BOUND_IDLE);
        cr_assert_eq(bounds_next(&three, &use), 150 * S);
        use.busy = true;
        cr_assert_eq(bounds_hit(&three, &use, 900 * S), _BOUND_NONE);
        cr_assert_eq(bounds_left(&three, &use, BOUND_IDLE, 900 * S), USEC_INFINITY);
        cr_assert_eq(bounds_next(&three, &use), 1010 * S);
}

Test(bounds, lifetime_ends_also_a_busy_one) {
        const BoundsUse use = { .created = 10 * S, .idle_since = 1009 * S, .busy = true };

        cr_assert_eq(bounds_hit(&three, &use, 1010 * S - 1), _BOUND_NONE);
        cr_assert_eq(bounds_hit(&three, &use, 1010 * S), BOUND_LIFETIME);
        cr_assert_eq(bounds_left(&three, &use, BOUND_LIFETIME, 2000 * S), 0);
}

Test(bounds, turn_budget_is_hit_when_it_is_used_up) {
        BoundsUse use = { .turn_usec = 500 * S - 1 };

        cr_assert_eq(bounds_hit(&three, &use, S), _BOUND_NONE);
        cr_assert_eq(bounds_left(&three, &use, BOUND_TURN_BUDGET, S), 1);
        use.turn_usec = 600 * S;
        cr_assert_eq(bounds_hit(&three, &use, S), BOUND_TURN_BUDGET);
        cr_assert_eq(bounds_hit(&three, &use, 5000 * S), BOUND_TURN_BUDGET, "the most telling one first");
}

Test(bounds, none_is_for_ever) {
        const BoundsUse use = { .created = 10 * S, .idle_since = 10 * S, .turn_usec = UINT64_MAX / 2 };

        cr_assert_eq(bounds_hit(&none, &use, UINT64_MAX - 1), _BOUND_NONE);
        cr_assert_eq(bounds_next(&none, &use), USEC_INFINITY);
        cr_assert_eq(bounds_near(&none, &use, UINT64_MAX - 1), _BOUND_NONE);
}

Test(bounds, near_is_the_last_tenth) {
        BoundsUse use = { .created = 0, .idle_since = 0, .turn_usec = 0 };

        cr_assert_eq(bounds_near(&three, &use, 899 * S), _BOUND_NONE);
        cr_assert_eq(bounds_near(&three, &use, 900 * S), BOUND_LIFETIME);
        use.turn_usec = 450 * S;
        cr_assert_eq(bounds_near(&three, &use, 10 * S), BOUND_TURN_BUDGET);
        use.turn_usec = 499 * S;
        cr_assert_eq(bounds_near(&three, &use, 990 * S), BOUND_TURN_BUDGET, "the nearer one");
        cr_assert_eq(bounds_near(&three, &use, 999 * S + 1), BOUND_LIFETIME);
}

Test(bounds, near_is_no_more_than_ten_minutes) {
        const Bounds day = { USEC_INFINITY, 24 * 3600 * S, USEC_INFINITY };
        const BoundsUse use = {};

        cr_assert_eq(bounds_near(&day, &use, 23 * 3600 * S), _BOUND_NONE);
        cr_assert_eq(bounds_near(&day, &use, 24 * 3600 * S - 600 * S), BOUND_LIFETIME);
}
