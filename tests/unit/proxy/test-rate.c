/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "proxy/rate.h"

#define S USEC_PER_SEC

TestSuite(rate, .timeout = 20);

static uint64_t take_all(Rate *r, uint64_t now) {
        uint64_t n = rate_available(r, now);

        rate_take(r, n);
        return n;
}

Test(rate, is_full_at_first_whatever_the_time) {
        static const uint64_t times[] = { 0, 1, S, UINT64_MAX };

        for (size_t i = 0; i < ELEMENTSOF(times); i++) {
                Rate r;

                rate_init(&r, 1000, 300);
                cr_assert_eq(take_all(&r, times[i]), 300);
                cr_assert_eq(rate_available(&r, times[i]), 0);
        }
}

Test(rate, fills_at_its_rate_up_to_the_burst) {
        static const struct {
                uint64_t elapsed, available;
        } table[] = {
                { 0, 0 }, { 999, 0 }, { 1000, 1 }, { 1999, 1 }, { 2000, 2 }, { 299999, 299 }, { 300000, 300 },
                { 10 * S, 300 }, { UINT64_MAX - S, 300 },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                Rate r;

                rate_init(&r, 1000, 300);
                (void) take_all(&r, S);
                cr_assert_eq(rate_available(&r, S + table[i].elapsed), table[i].available, "row %zu", i);
        }
}

Test(rate, none_is_without_limit) {
        static const uint64_t none[] = { 0, UINT64_MAX, RATE_MAX + 1 };

        for (size_t i = 0; i < ELEMENTSOF(none); i++) {
                Rate r;

                rate_init(&r, none[i], 10);
                rate_take(&r, UINT64_MAX);
                rate_take(&r, UINT64_MAX);
                cr_assert_eq(rate_available(&r, S), UINT64_MAX);
                cr_assert_eq(rate_next(&r, S, UINT64_MAX), S);
        }
}

/* 3 bytes a second, looked at each µs or at odd times: after 1000 s exactly 3000 have come. */
Test(rate, fractions_are_not_lost) {
        static const uint64_t steps[] = { 7, 999, 333333, 333334, 1000003 };

        for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                uint64_t sum = 0, now = S;
                Rate r;

                rate_init(&r, 3, 100);
                (void) take_all(&r, now);
                for (; now < 1001 * S; now = MIN(now + steps[i], 1001 * S))
                        sum += take_all(&r, now);
                sum += take_all(&r, now);
                cr_assert_eq(sum, 3000, "step %zu: %zu", (size_t) steps[i], (size_t) sum);
        }
}

/* What a full bucket has no room for is gone, a part of a byte also. */
Test(rate, a_full_bucket_keeps_no_fraction) {
        Rate r;

        rate_init(&r, 1000, 10);
        cr_assert_eq(rate_available(&r, S), 10);
        cr_assert_eq(rate_available(&r, S + 999), 10);
        rate_take(&r, 10);
        cr_assert_eq(rate_available(&r, S + 999 + 1), 0);
        cr_assert_eq(rate_available(&r, S + 999 + 1000), 1);
}

Test(rate, a_burst_of_nothing_lets_something_through) {
        Rate r;

        rate_init(&r, 10, 0);
        cr_assert_eq(take_all(&r, S), 1);
        cr_assert_eq(rate_next(&r, S, 1000), S + S / 10);
        cr_assert_eq(take_all(&r, S + S / 10), 1);
}

Test(rate, debt_is_paid_first) {
        Rate r;

        rate_init(&r, 1000, 100);
        (void) rate_available(&r, S);
        rate_take(&r, 600);
        cr_assert_eq(rate_available(&r, S), 0);
        cr_assert_eq(rate_next(&r, S, 1), S + 501000);
        cr_assert_eq(rate_available(&r, S + 500000), 0);
        cr_assert_eq(rate_available(&r, S + 501000), 1);
        cr_assert_eq(rate_available(&r, S + 700000), 100);
}

Test(rate, time_that_stands_or_jumps_is_harmless) {
        Rate r;

        rate_init(&r, 1000, 100);
        cr_assert_eq(take_all(&r, 100 * S), 100);
        for (size_t i = 0; i < 1000; i++)
                cr_assert_eq(take_all(&r, 100 * S), 0);
        cr_assert_eq(take_all(&r, 50 * S), 0, "back gives nothing");
        cr_assert_eq(take_all(&r, 50 * S + 20000), 20, "and stops nothing");
        cr_assert_eq(take_all(&r, UINT64_MAX), 100);
        cr_assert_eq(take_all(&r, 0), 0);
        cr_assert_eq(rate_next(&r, 0, 5), 5000);
        cr_assert_eq(take_all(&r, 5000), 5);
}

Test(rate, next_is_when_there_is_enough) {
        static const struct {
                uint64_t rate, burst, want, wait;
        } table[] = {
                { 1000, 1000, 0, 1000 },                /* as for one */
                { 1000, 1000, 1, 1000 },
                { 1000, 1000, 100, 100000 },
                { 1000, 1000, 250, 250000 },
                { 1000, 1000, 251, 250000 },            /* a fair piece */
                { 1000, 1000, UINT64_MAX, 250000 },
                { 1000, 20, 100, 10000 },               /* half a burst */
                { 3, 1000, 1000, 333334 },              /* rounded up: not a moment too early */
                { 1, 1000, 1000, S },
                { RATE_MAX, UINT64_MAX, 1, 1 },
                { RATE_MAX, UINT64_MAX, UINT64_MAX, S / 4 },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                uint64_t next;
                Rate r;

                rate_init(&r, table[i].rate, table[i].burst);
                (void) take_all(&r, 5 * S);
                next = rate_next(&r, 5 * S, table[i].want);
                cr_assert_eq(next, 5 * S + table[i].wait, "row %zu: %zu", i, (size_t) next);
                cr_assert_eq(rate_next(&r, next, table[i].want), next, "row %zu", i);
        }
}

Test(rate, next_counts_what_is_there) {
        Rate r;

        rate_init(&r, 1000, 1000);
        (void) take_all(&r, S);
        cr_assert_eq(rate_next(&r, S + 999, 1), S + 1000);
        cr_assert_eq(rate_next(&r, S + 50500, 100), S + 100000);
        cr_assert_eq(rate_next(&r, S + 100000, 100), S + 100000);
}

Test(rate, nothing_overflows) {
        static const uint64_t extreme[] = { 1, 2, 3, S, RATE_MAX - 1, RATE_MAX, UINT64_MAX - 1, UINT64_MAX };

        for (size_t i = 0; i < ELEMENTSOF(extreme); i++)
                for (size_t j = 0; j < ELEMENTSOF(extreme); j++)
                        for (size_t k = 0; k < ELEMENTSOF(extreme); k++) {
                                Rate r;

                                rate_init(&r, extreme[i], extreme[j]);
                                rate_take(&r, extreme[k]);
                                rate_take(&r, extreme[k]);
                                cr_assert_geq(rate_next(&r, extreme[k], extreme[j]), extreme[k]);
                                cr_assert(r.rate == UINT64_MAX || rate_available(&r, UINT64_MAX) <= extreme[j]);
                        }
        {
                Rate r;

                rate_init(&r, 1, 1);
                rate_take(&r, UINT64_MAX);
                rate_take(&r, UINT64_MAX);
                cr_assert_eq(rate_next(&r, S, 1), USEC_INFINITY, "never, and not before now");
        }
        {
                Rate r;

                rate_init(&r, 1, 1);
                (void) rate_available(&r, S);
                rate_take(&r, UINT64_MAX);
                for (size_t i = 0; i < 4; i++)
                        rate_take(&r, 1);
                cr_assert_gt(rate_next(&r, S, 1), UINT64_MAX / 2, "debts do not wrap");
        }
        {
                Rate r;

                rate_init(&r, RATE_MAX, UINT64_MAX);
                (void) take_all(&r, 0);
                cr_assert_eq(rate_available(&r, (UINT64_C(1) << 24) * S), UINT64_MAX, "2^64 bytes");
        }
}

/* A generator of our own, so that a failure is the same everywhere (xorshift64*). */
static uint64_t random_next(uint64_t *state) {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        return *state * UINT64_C(2685821657736338717);
}

static uint64_t random_below(uint64_t *state, uint64_t n) {
        return random_next(state) % n;
}

/* Never more than rate * t + burst, in any time since a start, and all of it for one who always asks when told to. */
Test(rate, property_never_more_and_hardly_less) {
        uint64_t seed = 20261129;

        for (size_t run = 0; run < 300; run++) {
                uint64_t rate = 1 + random_below(&seed, UINT64_C(1) << (1 + random_below(&seed, 34))),
                         burst = 1 + random_below(&seed, UINT64_C(1) << (1 + random_below(&seed, 24))),
                         start = random_below(&seed, UINT64_C(1) << 40), now = start, sum = 0;
                bool eager = run % 2;           /* then there is room for what comes in a µs, which is what a timer is off */
                Rate r;

                if (eager)
                        burst = MAX(burst, 2 + 4 * rate / S);
                rate_init(&r, rate, burst);
                for (size_t step = 0; step < 2000; step++) {
                        uint64_t want = 1 + random_below(&seed, 2 * burst), n = MIN(rate_available(&r, now), want);
                        uint64_t next;

                        if (!eager)
                                n = random_below(&seed, n + 1);
                        rate_take(&r, n);
                        sum += n;
                        cr_assert((__uint128_t) sum * S <= (__uint128_t) rate * (now - start) + (__uint128_t) burst * S,
                                  "run %zu step %zu", run, step);

                        next = rate_next(&r, now, want);
                        cr_assert(next >= now && (next == now || next - now <= S / RATE_LOOKS + S / rate + 1), "run %zu", run);
                        if (next > now && next - now > 1) {
                                /* Not a moment later than needed. */
                                uint64_t fair = MAX(MIN(want, MIN(rate / RATE_LOOKS, burst / 2)), 1U);
                                Rate early = r, then = r;

                                cr_assert_lt(rate_available(&early, next - 1), fair, "run %zu", run);
                                cr_assert_geq(rate_available(&then, next), fair, "run %zu", run);
                        }
                        now = eager ? next : now + random_below(&seed, S);
                }

                if (eager) {
                        sum += take_all(&r, now);
                        cr_assert((__uint128_t) sum * S * 100 >= (__uint128_t) rate * (now - start) * 99, "run %zu", run);
                }
        }
}
