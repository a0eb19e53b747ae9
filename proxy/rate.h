/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How many bytes a second a session may move: a bucket that all of its connections take from. It fills at the
 * rate, holds at most the burst, and is full at first. So in any time t no more than rate * t + burst go through,
 * to the byte and however long: what is not yet a whole byte is kept. Pure; times are µs of CLOCK_MONOTONIC.
 */

#include "lib/macro.h"

/* From here on a rate is as good as none. So far its product with a second in µs fits 64 bits. */
#define RATE_MAX (UINT64_C(1) << 40)

/* Whoever waits for bytes is woken this often a second at most for fewer than he wants, and not for less than one. */
#define RATE_LOOKS 4U

typedef struct Rate {
        uint64_t rate;          /* UINT64_MAX: without limit */
        uint64_t burst;         /* at least one byte, or nothing would ever go through */
        uint64_t level;
        uint64_t debt;          /* taken beyond the level; paid before the level rises */
        uint64_t fraction;      /* of the next byte, in millionths */
        uint64_t last;          /* until when it was filled */
} Rate;

/* A rate of 0, or over RATE_MAX, is without limit. A burst should be worth a few turns of the caller's loop, for what
 * comes while the bucket is full is lost. */
void rate_init(Rate *r, uint64_t bytes_per_second, uint64_t burst);

/* How much may be taken now. A time that is before the last one fills nothing. */
uint64_t rate_available(Rate *r, uint64_t now);

/* Takes that much. More than there is, where it was read before anyone could ask, is made up for later. */
void rate_take(Rate *r, uint64_t n);

/*
 * When to look again for somebody who has so much to move: now, if so much is available; else when it will be, or
 * when a fair piece of it is, whichever comes first. Then rate_available() is not 0, and before it is worth nothing.
 */
uint64_t rate_next(Rate *r, uint64_t now, uint64_t want);
