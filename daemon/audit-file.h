/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The audit trail on disk, as sandboxd writes it: finds where the chain ended, goes on from there, and begins
 * the next file when one is full. Bodies go in, sealed lines come out (lib/audit-chain.h). Only ever appends;
 * what does not verify is left as it is and a new file begun that says so.
 */

#include "lib/audit-chain.h"

typedef struct AuditFile {
        char *directory;   /* its path */
        uint64_t size_max; /* of a file */
        uint64_t keep;     /* full files beside the one that is written to */
        int dir_fd;        /* locked while we have it; -EBADF: not open */
        int fd;            /* the file that is written to */
        uint64_t number;   /* its number; the last one there was */
        uint64_t size;
        AuditHead head; /* of the line written last, in whatever file */
        Buffer first;   /* bodies that must come before any other: this file's first line, a mended end */
        bool dirty;     /* half a line of a write that failed stands behind size; it is cut off first */
        char *broken;   /* what did not verify last; NULL: nothing */
        unsigned n_broken; /* how often that was so */
} AuditFile;

int audit_file_init(AuditFile *f, const char *state_dir, uint64_t size_max, uint64_t keep);
void audit_file_done(AuditFile *f);

/*
 * Finds and checks the last file, or begins one. Done by the first write, too. May be called again after it
 * failed. -EBUSY: another sandboxd writes here.
 */
int audit_file_open(AuditFile *f);

/* Writes as many of the bodies (each with its LF) as fit one write(2); *ret_taken bytes of them are done. On
 * failure nothing is. */
int audit_file_write(AuditFile *f, const char *bodies, size_t size, size_t *ret_taken);

/* Until it is on the disk itself. The one call here that may take long: for the daemon's end. */
void audit_file_sync(AuditFile *f);
