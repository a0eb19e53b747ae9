/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A snapshot that is being written: the temporary directory, its files one after the other, and the rename that
 * makes it one. Whatever goes wrong before that leaves what was there before.
 */

#include "snapshot/directory.h"
#include "snapshot/manifest.h"

typedef struct Draft {
        int user, key;                  /* directories; the key's is locked */
        int directory;                  /* the temporary one */
        int file;                       /* what is being written, or -EBADF */
        char temporary[TEMPORARY_SIZE]; /* empty: there is none */
        Manifest manifest;              /* id and time_usec are set from the start; who fills tool, reason and
                                         * session keeps the texts until the end */
        Hash hash;
} Draft;

#define DRAFT_NONE ((Draft){ .user = -EBADF, .key = -EBADF, .directory = -EBADF, .file = -EBADF })

/* Errors are negative errnos. -EBUSY: another save of this key is running. */
int draft_open(Draft *d, const Options *o);

/* One part: begun, written, and ended by its report, which says whether its file stays. */
int draft_begin_part(Draft *d, StoredPart p);
int draft_write(Draft *d, StoredPart p, const char *data, size_t size);
int draft_end_part(Draft *d, StoredPart p, const char *report, size_t size);

/* Writes the manifest and has everything on the disk. */
int draft_finish(Draft *d, uint64_t *ret_manifest_bytes);
/* The moment from which on the snapshot is there. -ECANCELED: not, since we were told to stop. */
int draft_publish(Draft *d);

/* Removes the temporary directory if it was not published. */
void draft_done(Draft *d);
