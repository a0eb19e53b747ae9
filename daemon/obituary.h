/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which named sessions are gone, and why: whoever uses such a name next is told that it is a new session
 * (row L4). A list in memory; what a daemon that is gone took with it, the next one adds (adoption.c).
 */

#include <sys/types.h>

#include "lib/macro.h"

#define OBITUARIES_MAX 1024U

typedef struct Obituary Obituary;

/* Zero-initialise. */
typedef struct Obituaries {
        Obituary *first, *last;         /* oldest first */
        size_t n;
} Obituaries;

void obituaries_done(Obituaries *o);

/* A named session ended. reason is static. Failures lose the note. */
void obituaries_add(Obituaries *o, uid_t uid, const char *project, const char *name, const char *reason);

/* Why the last session of that name ended; NULL when none did. Static. */
const char *obituaries_find(const Obituaries *o, uid_t uid, const char *project, const char *name);
/* The same, once. */
const char *obituaries_take(Obituaries *o, uid_t uid, const char *project, const char *name);
