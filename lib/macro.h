/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Small language helpers that every file may use: cleanup attributes, hand-over of ownership, a few
 * comparisons. Nothing here allocates or does I/O. The idioms are those of systemd's basic library.
 */

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define _cleanup_(f) __attribute__((__cleanup__(f)))
#define _printf_(a, b) __attribute__((__format__(__printf__, a, b)))
#define _unused_ __attribute__((__unused__))
#define _noreturn_ __attribute__((__noreturn__))
#define _warn_unused_ __attribute__((__warn_unused_result__))

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define USEC_PER_SEC UINT64_C(1000000)
#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_INFINITY UINT64_MAX
#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

/* Hands a pointer over: yields its value and clears the variable, so that its cleanup does nothing. */
#define TAKE_PTR(p)                             \
        ({                                      \
                __typeof__(p) *_pp = &(p);      \
                __typeof__(p) _taken = *_pp;    \
                *_pp = NULL;                    \
                _taken;                         \
        })

/* The same for a descriptor; an unset descriptor is -EBADF everywhere. */
#define TAKE_FD(fd)                             \
        ({                                      \
                int *_fdp = &(fd);              \
                int _taken = *_fdp;             \
                *_fdp = -EBADF;                 \
                _taken;                         \
        })

/* Defines func##p(), for _cleanup_(func##p), from a destructor that accepts NULL. */
#define DEFINE_TRIVIAL_CLEANUP_FUNC(type, func)         \
        static inline void func##p(type *p) {           \
                if (*p)                                 \
                        (void) func(*p);                \
        }                                               \
        struct func##_semicolon

static inline bool streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}

static inline bool streq_ptr(const char *a, const char *b) {
        return a == b || (a && b && streq(a, b));
}

/* The end of a period: USEC_INFINITY stays what it is, and so far away is as good as never. */
static inline uint64_t usec_add(uint64_t a, uint64_t b) {
        return a < USEC_INFINITY - b ? a + b : USEC_INFINITY;
}

static inline void *mfree(void *p) {
        free(p);
        return NULL;
}

static inline void freep(void *p) {
        free(*(void **) p);
}

#define _cleanup_free_ _cleanup_(freep)

/* An expression that must hold although it has an effect; unlike assert() it is never compiled out. */
#define assert_se(e)            \
        do {                    \
                if (!(e))       \
                        abort();\
        } while (0)
