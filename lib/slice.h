/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bytes that lie in somebody else's memory, and the few questions that the parsers ask about them. Nothing here
 * allocates or depends on the locale. A slice is valid as long as the bytes it points to stay where they are.
 */

#include "macro.h"

typedef struct Slice {
        const char *data;       /* not NUL-terminated */
        size_t size;
} Slice;

static inline Slice slice_from(const char *start, const char *end) {
        return (Slice){ start, (size_t) (end - start) };
}

static inline bool char_is_digit(char c) {
        return c >= '0' && c <= '9';
}

static inline bool char_is_letter(char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static inline char char_fold(char c) {
        return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

/* The value of a hex digit, or -1. */
int char_hex(char c);

/* Equal but for the case of ASCII letters. */
bool slice_equal_fold(Slice a, Slice b);
bool slice_is(Slice a, const char *text);
bool slice_starts_with(Slice a, const char *prefix);

/* Without spaces and tabs at both ends. */
Slice slice_trim(Slice a);

/* Splits at the first c. False, and *ret_rest empty, where there is none: then all of it is *ret_first. */
bool slice_split(Slice a, char c, Slice *ret_first, Slice *ret_rest);

/* A port as it stands in a host's text: digits only, no zero in front, 1 to 65535. */
bool slice_parse_port(Slice a, uint16_t *ret);
