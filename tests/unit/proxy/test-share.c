/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "proxy/share.h"

TestSuite(share, .timeout = 20);

#define START (1000 * USEC_PER_SEC)
#define MEMBERS 7U

Test(share, without_a_rate_nobody_waits_long) {
        ShareMember m = {};
        uint64_t part;
        Share s;

        share_init(&s, UINT64_MAX);
        cr_assert_eq(share_available(&s, START), UINT64_MAX);
        cr_assert_eq(share_next(&s, START), USEC_INFINITY);
        share_wait(&s, &m);
        cr_assert_eq(share_next(&s, START), START);
        cr_assert_eq(share_serve(&s, START, 1, &part), &m);
        cr_assert_eq(part, UINT64_MAX);
        cr_assert(!share_waits(&m));
        cr_assert_null(share_serve(&s, START, 1, &part));
}

/* Greedy ones all the time, and one that comes now and then: for a minute, in each second nearly the same. */
Test(share, all_get_the_same) {
        ShareMember members[MEMBERS] = {};
        uint64_t got[MEMBERS] = {}, now = START, part, total = 0;
        ShareMember *m;
        Share s;

        share_init(&s, 1000000);
        share_take(&s, share_available(&s, now)); /* what may come at once */
        for (size_t i = 0; i < MEMBERS; i++)
                share_wait(&s, &members[i]);

        while (now < START + 60 * USEC_PER_SEC) {
                now = share_next(&s, now);
                for (size_t n = s.n_waiting; n > 0 && (m = share_serve(&s, now, n, &part)); n--) {
                        cr_assert_gt(part, 0);
                        share_take(&s, part);
                        got[m - members] += part;
                        total += part;
                        share_wait(&s, m);
                        cr_assert_eq(share_available(&s, now), 0, "who comes stands in line");
                }
        }
        cr_assert(total > 59000000 && total < 61000000);
        for (size_t i = 0; i < MEMBERS; i++)
                cr_assert(got[i] > total / MEMBERS * 9 / 10 && got[i] < total / MEMBERS * 11 / 10, "%zu", i);
}

/* With a rate that is less than one part a member is served a while later, but served. */
Test(share, nobody_starves_at_a_low_rate) {
        ShareMember members[MEMBERS] = {};
        uint64_t got[MEMBERS] = {}, now = START, part;
        ShareMember *m;
        Share s;

        share_init(&s, 2000);
        share_take(&s, share_available(&s, now));
        for (size_t i = 0; i < MEMBERS; i++)
                share_wait(&s, &members[i]);
        while (now < START + 60 * USEC_PER_SEC) {
                now = share_next(&s, now);
                for (size_t n = s.n_waiting; n > 0 && (m = share_serve(&s, now, n, &part)); n--) {
                        share_take(&s, part);
                        got[m - members] += part;
                        share_wait(&s, m);
                }
        }
        for (size_t i = 0; i < MEMBERS; i++)
                cr_assert(got[i] > 12000 && got[i] < 22000, "%zu: %lu", i, got[i]);
}

Test(share, leaving_from_anywhere_keeps_the_order) {
        ShareMember m[5] = {};
        uint64_t part;
        Share s;

        share_init(&s, 1000000);
        for (size_t i = 0; i < 5; i++)
                share_wait(&s, &m[i]);
        share_wait(&s, &m[0]);          /* once is enough */
        cr_assert_eq(s.n_waiting, 5);
        share_leave(&s, &m[2]);
        share_leave(&s, &m[4]);
        share_leave(&s, &m[4]);
        share_leave(&s, &m[0]);
        share_wait(&s, &m[2]);
        cr_assert_eq(s.n_waiting, 3);
        cr_assert_eq(share_serve(&s, START, 3, &part), &m[1]);
        cr_assert_eq(share_serve(&s, START, 2, &part), &m[3]);
        cr_assert_eq(share_serve(&s, START, 1, &part), &m[2]);
        cr_assert_null(share_serve(&s, START, 1, &part));
        share_wait(&s, &m[4]);
        share_set_rate(&s, 5);
        cr_assert_eq(share_serve(&s, START, 1, &part), &m[4]);
}
