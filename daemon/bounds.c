/* SPDX-License-Identifier: MIT */

/* Each bound as a time that is left; the rest follows from that. */

#include "daemon/bounds.h"

#include <errno.h>

/* A bound is near when a tenth of it is left, and not more than this. */
#define NEAR_PARTS 10U
#define NEAR_USEC_MAX (10 * 60 * USEC_PER_SEC)

static const char *const bound_names[_BOUND_MAX] = {
        [BOUND_IDLE] = "idle",
        [BOUND_LIFETIME] = "lifetime",
        [BOUND_TURN_BUDGET] = "turn_budget",
};

const char *bound_to_string(Bound b) {
        assert(b >= 0 && b < _BOUND_MAX);

        return bound_names[b];
}

/* What is never is not a time from now either. */
static uint64_t usec_until(uint64_t at, uint64_t now) {
        return at == USEC_INFINITY ? USEC_INFINITY : at > now ? at - now : 0;
}

static uint64_t lifetime_end(const Bounds *b, const BoundsUse *use) {
        return usec_add(use->created, b->lifetime_usec);
}

static uint64_t idle_end(const Bounds *b, const BoundsUse *use) {
        return use->busy ? USEC_INFINITY : usec_add(use->idle_since, b->idle_usec);
}

uint64_t bounds_left(const Bounds *b, const BoundsUse *use, Bound which, uint64_t now) {
        switch (which) {
        case BOUND_IDLE:
                return usec_until(idle_end(b, use), now);
        case BOUND_LIFETIME:
                return usec_until(lifetime_end(b, use), now);
        case BOUND_TURN_BUDGET:
                return usec_until(b->turn_budget_usec, use->turn_usec);
        case _BOUND_MAX:
        case _BOUND_NONE:
        default:
                assert_se(false);
                return USEC_INFINITY;
        }
}

/* The one that says most first: whoever was idle when the lifetime was over need not hear of idleness. */
Bound bounds_hit(const Bounds *b, const BoundsUse *use, uint64_t now) {
        static const Bound order[] = { BOUND_TURN_BUDGET, BOUND_LIFETIME, BOUND_IDLE };

        for (size_t i = 0; i < ELEMENTSOF(order); i++)
                if (bounds_left(b, use, order[i], now) == 0)
                        return order[i];
        return _BOUND_NONE;
}

uint64_t bounds_next(const Bounds *b, const BoundsUse *use) {
        return MIN(lifetime_end(b, use), idle_end(b, use));
}

static bool is_near(uint64_t left, uint64_t whole) {
        return left != USEC_INFINITY && left <= MIN(whole / NEAR_PARTS, NEAR_USEC_MAX);
}

Bound bounds_near(const Bounds *b, const BoundsUse *use, uint64_t now) {
        uint64_t lifetime = bounds_left(b, use, BOUND_LIFETIME, now),
                 budget = bounds_left(b, use, BOUND_TURN_BUDGET, now);

        if (is_near(lifetime, b->lifetime_usec) && lifetime <= budget)
                return BOUND_LIFETIME;
        if (is_near(budget, b->turn_budget_usec))
                return BOUND_TURN_BUDGET;
        return is_near(lifetime, b->lifetime_usec) ? BOUND_LIFETIME : _BOUND_NONE;
}
