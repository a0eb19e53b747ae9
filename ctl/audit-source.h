/* SPDX-License-Identifier: MIT */
#pragma once

/* Where the files of an audit trail are: it is read without the daemon, which may be down. */

#include "ctl/call.h"

#define SYSTEM_AUDIT_PATH "/var/lib/nix-sandbox/audit"

typedef struct AuditSource {
        char *place;      /* the directory, or the one file */
        int dir_fd;       /* names are relative to it; AT_FDCWD for one file */
        char **names;     /* oldest first */
        size_t n;
        bool from_start;  /* nothing was there before the first of them */
} AuditSource;

#define AUDIT_SOURCE_NULL ((AuditSource){ .dir_fd = -EBADF })

/*
 * file is what --file named, or NULL: the directory of the daemon that --socket names, else the system
 * service's, else that of the caller's private daemon. Starts nothing. On failure the reason was printed, and
 * the exit status is returned.
 */
int audit_source_open(Context *c, const char *file, AuditSource *ret);
void audit_source_done(AuditSource *s);

/* Opens one of its files; a negative errno. */
int audit_source_file(const AuditSource *s, size_t i);
