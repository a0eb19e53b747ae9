/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The manifest of a snapshot, the one file that says what the others must be. Pure.
 *
 *     sha256 <of all that follows>
 *     {"format":1,"tool":"0.1.0","id":…,"time_usec":u,"reason":…,"session":{…},
 *      "parts":[{"name":…,"file":…|null,"bytes":u,"sha256":…|null,"report":{…}}]}
 *
 * A part without a file is one that could not be saved; its report says why.
 */

#include "lib/buffer.h"
#include "lib/json.h"
#include "lib/snapshot-stream.h"
#include "snapshot/hash.h"
#include "snapshot/id.h"

#define MANIFEST_FILE "manifest"
#define MANIFEST_FORMAT 1U
#define MANIFEST_SIZE_MAX (1 * MIB)

/* The parts of the stream, and what the daemon gives. */
typedef enum StoredPart {
        PART_WORKSPACE = SNAPSHOT_WORKSPACE,
        PART_PYTHON = SNAPSHOT_PYTHON,
        PART_BASH = SNAPSHOT_BASH,
        PART_NODE = SNAPSHOT_NODE,
        PART_HISTORY,
        _PART_MAX,
} StoredPart;

const char *part_name(StoredPart part);
const char *part_file(StoredPart part);

typedef struct ManifestPart {
        json_object *report;    /* typed (report.h); NULL: there is no such part */
        bool has_file;
        uint64_t bytes;
        char sha256[HASH_LENGTH + 1];
} ManifestPart;

/* Owns its objects and nothing else; the texts belong to json, or to who made it. */
typedef struct Manifest {
        SnapshotId id;
        uint64_t time_usec;
        const char *tool, *reason;
        json_object *session;
        ManifestPart parts[_PART_MAX];
        json_object *json;      /* what it was read from, or NULL */
} Manifest;

void manifest_done(Manifest *m);

/* The whole file. -EMSGSIZE: it would be too large; -ENOMEM. */
int manifest_write(const Manifest *m, Buffer *out);

typedef enum ManifestFault {
        MANIFEST_DAMAGED = 1,   /* its checksum is wrong, or its text is no manifest */
        MANIFEST_FOREIGN,       /* it is of a later format */
} ManifestFault;

/* 0, a ManifestFault, or -ENOMEM; *ret is untouched unless 0. */
int manifest_read(const char *text, size_t size, Manifest *ret);
