/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * /workspace/out: where code puts files that its caller is to hear of. After each turn the agent looks which
 * regular files there (not below) are new or have changed. The names are the code's own: only those that can be
 * shown are told. Part of the Turn.
 */

#include <limits.h>
#include <sys/types.h>
#include <time.h>

#include "lib/agent-value.h"
#include "lib/macro.h"

#define OUTBOX_LOOK_MAX 1024U   /* entries looked at: a turn's end must not wait for a million of them */

typedef struct OutboxFile {
        char name[NAME_MAX + 1];
        uint64_t bytes;
        ino_t inode;
        struct timespec modified, changed;
        bool named;             /* it is new, and told by its name */
} OutboxFile;

typedef struct Outbox {
        struct timespec begun;
        OutboxFile *files;      /* that have a time since then, by name; NULL: none. Until the end of the next turn */
        size_t n, named;
        uint64_t more;          /* new ones that are not named */
} Outbox;

void outbox_begin(Outbox *o);
/* Finds nothing where memory is short. */
void outbox_finish(Outbox *o);
void outbox_done(Outbox *o);
