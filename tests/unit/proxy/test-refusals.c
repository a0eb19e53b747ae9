/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "proxy/refusals.h"

TestSuite(refusals, .timeout = 20);

#define START (1000 * USEC_PER_SEC)

static void add(Refusals *r, const char *host, uint16_t port) {
        cr_assert_eq(refusals_add(r, host, port, NULL, NETWORK_REFUSED_NOT_LISTED), 0);
}

Test(refusals, none) {
        Refusals r = {};
        Refusal one;
        uint64_t next;

        cr_assert(!refusals_next(&r, START, &one, &next));
        cr_assert_eq(next, USEC_INFINITY);
        refusals_done(&r);
}

Test(refusals, the_first_at_once_and_the_same_once_a_second) {
        _cleanup_(refusals_done) Refusals r = {};
        Refusal one;
        uint64_t next;

        add(&r, "a.example", 80);
        cr_assert(refusals_next(&r, START, &one, &next));
        cr_assert(streq(one.host, "a.example") && one.port == 80 && one.count == 1 && streq(one.address, ""));
        cr_assert(!refusals_next(&r, START, &one, &next));
        cr_assert_eq(next, USEC_INFINITY, "nothing to tell");

        for (unsigned i = 0; i < 7; i++)
                add(&r, "a.example", 80);
        cr_assert(!refusals_next(&r, START + 10, &one, &next));
        cr_assert_eq(next, START + USEC_PER_SEC);
        cr_assert(refusals_next(&r, next, &one, &next));
        cr_assert_eq(one.count, 7);
}

Test(refusals, what_differs_is_another) {
        _cleanup_(refusals_done) Refusals r = {};
        Refusal one;
        uint64_t next;
        unsigned n = 0;

        add(&r, "a.example", 80);
        add(&r, "a.example", 443);
        add(&r, "b.example", 80);
        cr_assert_eq(refusals_add(&r, "a.example", 80, NULL, NETWORK_REFUSED_NARROWED), 0);
        cr_assert_eq(refusals_add(&r, "a.example", 80, "10.0.0.1", NETWORK_REFUSED_SPECIAL_ADDRESS), 0);
        cr_assert_eq(refusals_add(&r, "a.example", 80, "10.0.0.2", NETWORK_REFUSED_SPECIAL_ADDRESS), 0);
        cr_assert_eq(refusals_add(&r, "a.example", 80, "", NETWORK_REFUSED_NOT_LISTED), 0);
        while (refusals_next(&r, START, &one, &next))
                n += (unsigned) one.count;
        cr_assert_eq(r.n, 6);
        cr_assert_eq(n, 7);
}

Test(refusals, so_many_in_any_second) {
        _cleanup_(refusals_done) Refusals r = {};
        uint64_t next, now = START, times[PROXY_REFUSALS_KEPT];
        unsigned n = 0;
        char host[32];
        Refusal one;

        for (unsigned i = 0; i < PROXY_REFUSALS_KEPT; i++) {
                (void) snprintf(host, sizeof(host), "h%u.example", i);
                add(&r, host, 80);
        }
        for (;;) {
                if (refusals_next(&r, now, &one, &next))
                        times[n++] = now;
                else if (next == USEC_INFINITY)
                        break;
                else {
                        cr_assert_gt(next, now);
                        now = next;
                }
                now += 1000;
        }
        cr_assert_eq(n, PROXY_REFUSALS_KEPT);
        for (unsigned i = PROXY_REFUSALS_PER_SECOND; i < n; i++)
                cr_assert_geq(times[i] - times[i - PROXY_REFUSALS_PER_SECOND], USEC_PER_SEC);
}

Test(refusals, those_that_were_told_make_room) {
        _cleanup_(refusals_done) Refusals r = {};
        uint64_t next, now = START;
        char host[32];
        Refusal one;

        for (unsigned i = 0; i < 2 * PROXY_REFUSALS_KEPT; i++) {
                (void) snprintf(host, sizeof(host), "h%u.example", i);
                add(&r, host, 80);
        }
        cr_assert_eq(r.n, PROXY_REFUSALS_KEPT, "no place for the rest");
        for (;;) {
                if (refusals_next(&r, now, &one, &next))
                        continue;
                if (next == USEC_INFINITY)
                        break;
                now = next;
        }
        add(&r, "new.example", 80);
        cr_assert(refusals_next(&r, now + USEC_PER_SEC, &one, &next));
        cr_assert_str_eq(one.host, "new.example");
}

Test(refusals, long_texts_are_cut) {
        _cleanup_(refusals_done) Refusals r = {};
        char host[2 * REFUSAL_HOST_SIZE];
        uint64_t next;
        Refusal one;

        memset(host, 'a', sizeof(host) - 1);
        host[sizeof(host) - 1] = '\0';
        add(&r, host, 80);
        add(&r, host, 80);
        cr_assert(refusals_next(&r, START, &one, &next));
        cr_assert_eq(one.count, 2);
        cr_assert_eq(strlen(one.host), REFUSAL_HOST_SIZE - 1);
}
