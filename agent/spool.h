/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The whole output of a stream in a file, for code that wants to look at more than the reply shows:
 * .sandbox/turn-N.stdout in the workspace. A file is made only when a stream gets long, holds at most
 * SPOOL_SIZE_MAX bytes, and only those of the last SPOOL_TURNS_MAX turns that had any are kept.
 *
 * The workspace belongs to the code in the jail, which may put anything in the way. Since that code could do
 * all that the agent can, only the agent's own good is at stake: nothing here follows a link or opens a file
 * that was there before, and any failure just means that there is no file.
 */

#include "lib/buffer.h"

#define SPOOL_THRESHOLD (8 * KIB)
#define SPOOL_SIZE_MAX (32 * MIB)
#define SPOOL_TURNS_MAX 4U

/* Which turns have files. One for all streams; zero-initialise. */
typedef struct SpoolDirectory {
        uint64_t turns[SPOOL_TURNS_MAX];        /* a ring; 0: unused */
        size_t next;
} SpoolDirectory;

typedef struct Spool {
        SpoolDirectory *directory;      /* borrowed */
        const char *name;               /* "stdout", "stderr" */
        uint64_t turn;
        Buffer held;                    /* the beginning, while there is no file */
        uint64_t size;                  /* in the file */
        int fd;
        bool failed;
} Spool;

void spool_init(Spool *s, SpoolDirectory *directory, const char *name);
void spool_begin(Spool *s, uint64_t turn);
void spool_write(Spool *s, const char *data, size_t size);
/* Ends the turn. Gives the file's absolute name, or NULL when there is none. Allocated. */
char *spool_finish(Spool *s);

/* Whether a name relative to the workspace is one that such files have. */
bool spool_is_name(const char *name);
