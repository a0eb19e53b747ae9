/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The records of living sessions: a file for each, named after its id, in a directory of the runtime
 * directory. A file is replaced as a whole, or not at all. One that cannot be written is a session that the
 * next daemon will not know, nothing worse.
 */

#include "daemon/session-record.h"

typedef struct RecordDirectory {
        int fd; /* -EBADF: none is kept */
} RecordDirectory;

#define RECORD_DIRECTORY_NULL ((RecordDirectory){ .fd = -EBADF })

/* Opens it, and makes it where it is missing. */
int record_directory_open(RecordDirectory *d, const char *runtime_dir);
void record_directory_done(RecordDirectory *d);

/* Calls f for each file: with its record, or with NULL and the reason it is none (negative errno). Files that
 * no daemon makes are removed. f may remove the session's record. */
typedef void (*RecordFunction)(const char *id, SessionRecord *record, int error, void *userdata);
int record_directory_read(RecordDirectory *d, RecordFunction f, void *userdata);

int record_directory_write(RecordDirectory *d, const SessionRecord *record);
void record_directory_remove(RecordDirectory *d, const char *id);
