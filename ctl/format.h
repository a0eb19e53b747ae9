/* SPDX-License-Identifier: MIT */
#pragma once

/* Values as people read and write them, and text from elsewhere made harmless for a terminal. */

#include "lib/macro.h"

/* A copy of s in which each character that a terminal would obey is '?'. */
char *printable(const char *s);

/* "3 d", "2 h 5 min", "17 s", "120 ms": the two largest units. Into a static buffer that the next call
 * reuses. */
const char *format_duration(uint64_t usec);
/* "12 MB", "1.5 GB". The same. */
const char *format_bytes(uint64_t bytes);
/* Local time "2026-11-28 10:15:02". The same. */
const char *format_time(uint64_t realtime_usec);
/* The user's name, or the number where it has none: names are the client's business, since the daemon never
 * blocks on a directory service. The same. */
const char *format_user(uint64_t uid);
