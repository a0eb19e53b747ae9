/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bytes that lie in somebody else's memory, and the few questions that the parsers ask about them. Nothing here
 * allocates or depends on the locale. A slice is valid as long as the bytes it points to stay where they are.
 */

#include "lib/macro.h"

/* What a host may have of bytes at most: a DNS name in text form is 253, 254 with the dot at its end. */
#define HOST_TEXT_MAX 255U

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

/* tchar of RFC 9110, section 5.6.2. */
bool char_is_token(char c);

/* What may be in a field's value (RFC 9110, section 5.5): no control character but the tab. */
bool char_is_field(char c);

/* Equal but for the case of ASCII letters. */
bool slice_equal_fold(Slice a, Slice b);
bool slice_is(Slice a, const char *text);
bool slice_starts_with(Slice a, const char *prefix);

bool slice_is_token(Slice a);

/* Without spaces and tabs at both ends. */
Slice slice_trim(Slice a);

/* Splits at the first c. False, and *ret_rest empty, where there is none: then all of it is *ret_first. */
bool slice_split(Slice a, char c, Slice *ret_first, Slice *ret_rest);

/* Whether it is made of what names and IPv4 addresses are made of: letters, digits, '-', '.', '_'; not empty, also
 * without the dot at its end; at most HOST_TEXT_MAX bytes. Neither percent signs nor UTF-8: who speaks to a proxy
 * sends the ASCII form of a name. Whether it is a good name, lib/network-host says. */
bool slice_is_host_name(Slice a);
