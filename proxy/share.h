/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A rate that several take from, none of them left behind: while somebody waits for bytes, who comes stands in line,
 * and whoever is served gets his part of what there is and stands at the end again. Pure; times are µs of
 * CLOCK_MONOTONIC. Members are the caller's, zero-initialised, and leave before they are freed.
 */

#include "proxy/rate.h"

/* A smaller part is not worth its system calls; whose turn it is then takes longer. */
#define SHARE_PART_MIN 4096U

typedef struct ShareMember {
        struct ShareMember *next, **link; /* link is NULL: does not wait */
} ShareMember;

typedef struct Share {
        Rate rate;
        ShareMember *first, **end;
        size_t n_waiting;
} Share;

void share_init(Share *s, uint64_t bytes_per_second);
/* Those who wait stay where they are. */
void share_set_rate(Share *s, uint64_t bytes_per_second);

/* How much may be taken without waiting: 0 if somebody else waits. UINT64_MAX: without limit. */
uint64_t share_available(Share *s, uint64_t now);
void share_take(Share *s, uint64_t n);

/* Stands in line, if it does not already. */
void share_wait(Share *s, ShareMember *m);
void share_leave(Share *s, ShareMember *m);
bool share_waits(const ShareMember *m);

/* When somebody can be served. USEC_INFINITY: nobody waits. */
uint64_t share_next(Share *s, uint64_t now);

/* Takes the first one out of the line, with what it may take: as much as each of the n, at least 1, who are still to
 * be served in this round, for those who were served already stand behind them again. NULL: nobody waits, or there
 * is nothing. */
ShareMember *share_serve(Share *s, uint64_t now, size_t n, uint64_t *ret_part);
