/* SPDX-License-Identifier: MIT */
#pragma once

/* Values as people read and write them, and text from elsewhere made harmless for a terminal. */

#include "lib/macro.h"

/* A copy of s in which each character that a terminal would obey is '?'. */
char *printable(const char *s);

/* All of these give static buffers, good for seven more calls. */
const char *format_number(uint64_t n);
/* "3 d 4 h", "2 h 5 min", "17 s", "120 ms": the two largest units. */
const char *format_duration(uint64_t usec);
/* "1:02.50", "27:01:02", as top(1) shows times. */
const char *format_clock(uint64_t usec);
/* "12 MB", "1.5 GB". */
const char *format_bytes(uint64_t bytes);
/* The same for a narrow column: "12M", "1.5G". */
const char *format_size(uint64_t bytes);
/* Local time "2026-11-28 10:15:02". */
const char *format_time(uint64_t realtime_usec);
/* The user's name, or the number where it has none: names are the client's business, since the daemon never
 * blocks on a directory service. */
const char *format_user(uint64_t uid);
/* A user's number from his name or number. -EINVAL. */
int parse_user(const char *s, uint64_t *ret_uid);

/* "1.5G", "512M", "512MiB", or a plain number of the given unit, in bytes. Pure. -EINVAL, -ERANGE. */
int parse_size(const char *s, uint64_t unit, uint64_t *ret);
