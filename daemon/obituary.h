/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which named sessions are gone, and why: whoever uses such a name next is told that it is a new session
 * (row L4). A list in memory, and a small file for each living session in the runtime directory, from which
 * the next daemon learns what one that crashed took with it.
 */

#include <sys/types.h>

#include "lib/macro.h"

#define OBITUARIES_MAX 1024U

typedef struct Obituary Obituary;

typedef struct Obituaries {
        Obituary *first, *last;         /* oldest first */
        size_t n;
        int directory_fd;               /* of the files of living sessions; -EBADF: none are kept */
} Obituaries;

#define OBITUARIES_NULL ((Obituaries) { .directory_fd = -EBADF })

/* Opens (makes) the directory, takes the sessions that a last daemon left there as gone, and empties it. */
int obituaries_open(Obituaries *o, const char *runtime_dir);
void obituaries_done(Obituaries *o);

/* A named session began or ended. reason is static. Failures lose the note, not the session. */
void obituaries_session_began(Obituaries *o, const char *id, uid_t uid, const char *project, const char *name);
void obituaries_session_ended(Obituaries *o, const char *id, uid_t uid, const char *project, const char *name,
                              const char *reason);

/* Why the last session of that name ended, once; NULL when none did. Static. */
const char *obituaries_take(Obituaries *o, uid_t uid, const char *project, const char *name);
