/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The three bounds of a session's life, whichever comes first: how long it may be idle, how long it may live, how
 * much time its turns may take together. They are those of the configuration when the session was made, and stay
 * so. Pure.
 */

#include "lib/macro.h"
#include "lib/text.h"

/* In µs; USEC_INFINITY: there is none. */
typedef struct Bounds {
        uint64_t idle_usec;
        uint64_t lifetime_usec;
        uint64_t turn_budget_usec;
} Bounds;

typedef enum Bound {
        BOUND_IDLE,
        BOUND_LIFETIME,
        BOUND_TURN_BUDGET,
        _BOUND_MAX,
        _BOUND_NONE = -EINVAL,
} Bound;

/* What a turn costs at least: a session cannot run for ever by turns that take no time. */
#define BOUND_TURN_USEC_MIN USEC_PER_MSEC

/* What is held against them. Times are of CLOCK_MONOTONIC. */
typedef struct BoundsUse {
        uint64_t created;
        uint64_t idle_since;            /* end of the last turn */
        bool busy;                      /* a turn runs or waits: it is not idle */
        uint64_t turn_usec;             /* of all turns that are over */
} BoundsUse;

/* The word for why a session ended by it. */
const char *bound_to_string(Bound b);

/* Which one is hit now; _BOUND_NONE. */
Bound bounds_hit(const Bounds *b, const BoundsUse *use, uint64_t now);
/* When the passing of time alone will hit one; USEC_INFINITY: never. */
uint64_t bounds_next(const Bounds *b, const BoundsUse *use);
/* Time until a bound is hit; USEC_INFINITY where there is none. Of one that is hit 0. */
uint64_t bounds_left(const Bounds *b, const BoundsUse *use, Bound which, uint64_t now);
/* Which of lifetime and turn budget is nearly used up, so that whoever uses the session should be told. */
Bound bounds_near(const Bounds *b, const BoundsUse *use, uint64_t now);
