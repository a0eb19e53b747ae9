/* SPDX-License-Identifier: MIT */

/* Whole bytes and millionths of a byte are counted, never a quotient that was rounded. */

#include "proxy/rate.h"

#define NONE UINT64_MAX

static uint64_t add(uint64_t a, uint64_t b) {
        uint64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t multiply(uint64_t a, uint64_t b) {
        uint64_t product;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

void rate_init(Rate *r, uint64_t bytes_per_second, uint64_t burst) {
        *r = (Rate) {
                .rate = bytes_per_second == 0 || bytes_per_second > RATE_MAX ? NONE : bytes_per_second,
                .burst = MAX(burst, 1U),
                .level = MAX(burst, 1U),
        };
}

/* A clock that jumps back gives nothing, and from there on it counts again: to wait until it has caught up could
 * mean to wait for ever. */
static void fill(Rate *r, uint64_t now) {
        uint64_t elapsed = now > r->last ? now - r->last : 0, part, gained, paid;

        part = elapsed % USEC_PER_SEC * r->rate + r->fraction;
        gained = add(multiply(elapsed / USEC_PER_SEC, r->rate), part / USEC_PER_SEC);
        r->fraction = part % USEC_PER_SEC;
        r->last = now;

        paid = MIN(gained, r->debt);
        r->debt -= paid;
        gained -= paid;
        if (gained >= r->burst - r->level) {
                r->level = r->burst;
                r->fraction = 0;
        } else
                r->level += gained;
}

uint64_t rate_available(Rate *r, uint64_t now) {
        if (r->rate == NONE)
                return UINT64_MAX;
        fill(r, now);
        return r->level;
}

void rate_take(Rate *r, uint64_t n) {
        uint64_t had;

        if (r->rate == NONE)
                return;
        had = MIN(n, r->level);
        r->level -= had;
        r->debt = add(r->debt, n - had);
}

/* How long until so many bytes are gained: (need * 10^6 - fraction) / rate, rounded up. */
static uint64_t time_for(const Rate *r, uint64_t need) {
        uint64_t usec = multiply(need / r->rate, USEC_PER_SEC), part = need % r->rate * USEC_PER_SEC;

        if (part < r->fraction)         /* then it is 0: whole seconds, less what is there already */
                return usec - r->fraction / r->rate;
        part -= r->fraction;
        return add(usec, part / r->rate + (part % r->rate > 0));
}

/* Half a burst is fair, too: were it all of it, whatever a timer is late would be lost from a full bucket. */
uint64_t rate_next(Rate *r, uint64_t now, uint64_t want) {
        uint64_t fair;

        if (r->rate == NONE)
                return now;
        fill(r, now);
        fair = MIN(r->rate / RATE_LOOKS, r->burst / 2);
        fair = MAX(MIN(want, fair), 1U);
        if (r->level >= fair)
                return now;
        return usec_add(now, time_for(r, add(fair - r->level, r->debt)));
}
