/* SPDX-License-Identifier: MIT */
#pragma once

/* A snapshot on the disk: its manifest and its files, checked, and held open. */

#include "snapshot/manifest.h"

typedef enum StoredFault {
        STORED_DAMAGED = 1,
        STORED_FOREIGN,         /* a later nix-sandbox made it */
        STORED_GONE,            /* somebody removed it */
} StoredFault;

typedef enum StoredCheck {
        STORED_CHECK_SIZES,     /* the manifest, and that the files are there and have their sizes */
        STORED_CHECK_ALL,       /* also their checksums; the files are left open */
} StoredCheck;

typedef struct Stored {
        Manifest manifest;
        int files[_PART_MAX];   /* -EBADF: not there, or not open; at their start */
} Stored;

#define STORED_NONE ((Stored){ .files = { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF } })

/*
 * 0, a StoredFault with the reason in words (allocated; not with STORED_GONE), or a negative errno for what is no
 * fault of the snapshot: -ENOMEM, -EMFILE. *ret is set only with 0.
 */
int stored_open(int key, const char *id, StoredCheck check, Stored *ret, char **reterr_why);
void stored_done(Stored *s);

/* The parts of the stream as results show them: name, bytes, and the members of the report (report_copy()). */
int stored_parts_to_json(const Manifest *m, bool brief, json_object **ret);
/* What all files together hold. */
uint64_t stored_bytes(const Manifest *m);
