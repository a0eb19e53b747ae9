/* SPDX-License-Identifier: MIT */
#pragma once

/* Text from elsewhere: names, UTF-8, quoting for log lines, numbers. Pure. */

#include <sys/types.h>

#include "buffer.h"
#include "macro.h"

/* A session or environment name: [A-Za-z0-9][A-Za-z0-9_-]*, at most NAME_MAX_LENGTH bytes. */
#define NAME_MAX_LENGTH 64U
bool name_is_valid(const char *name);

/* Whether it is well-formed UTF-8 (Unicode table 3-7: no surrogates, no overlong forms). If not,
 * *ret_offset (may be NULL) is the place of the first bad byte. NUL is an ordinary character. */
bool utf8_is_valid(const char *data, size_t size, size_t *ret_offset);

/*
 * Turns a byte stream that arrives in pieces into valid UTF-8: each maximal bad sequence becomes U+FFFD,
 * everything else is untouched; a character cut by a piece's end waits for the next one. Zero-initialise.
 */
typedef struct Utf8Decoder {
        char pending[4];
        size_t n_pending;
} Utf8Decoder;

int utf8_decoder_feed(Utf8Decoder *d, const char *data, size_t size, Buffer *out);
int utf8_decoder_finish(Utf8Decoder *d, Buffer *out);

/* Replaces an allocated string, or NULL, by a copy of another; unchanged on -ENOMEM. */
int free_and_strdup(char **p, const char *s);

/* Frees a vector of allocated strings that ends with NULL. */
char **strv_free(char **v);
DEFINE_TRIVIAL_CLEANUP_FUNC(char **, strv_free);

/* A copy of a string made valid in the same way. Allocated; NULL on OOM. */
char *utf8_repair(const char *s);

/* 'text' with control characters, quotes and non-ASCII escaped, cut after max input bytes; for log lines
 * and messages about hostile strings. Allocated; NULL on OOM. NULL is shown as (null). */
char *text_quote(const char *s, size_t max);

/* Makes *reterr_why an allocated sentence and returns result; NULL and -ENOMEM when memory is short. */
int text_explain(int result, char **reterr_why, const char *format, ...) _printf_(3, 4);

/* Fills all of ret but its end with random hex digits, for names that nobody can guess; size is odd. -EAGAIN early
 * in the boot. */
int text_random_hex(char *ret, size_t size);

/* Whole-string decimal numbers: -EINVAL for anything else, -ERANGE when too large. */
int parse_u64(const char *s, uint64_t *ret);
/* Seconds with an optional fraction ("1.5") to microseconds; no sign, no exponent, at most 10^9 s. */
int parse_sec(const char *s, uint64_t *ret_usec);

/* The current CLOCK_MONOTONIC / CLOCK_REALTIME in µs. */
uint64_t now_monotonic(void);
uint64_t now_realtime(void);

/* "SIGSEGV" for 11; NULL for an unknown number. Static. */
const char *signal_name(int sig);
