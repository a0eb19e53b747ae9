/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Directories of environment artifacts, as they lie on the disk: each entry is a directory, or a symbolic link to
 * one, with environment.json and the file of its closure. Here they are found, checked for whose they are, and read;
 * what the texts mean is for others. A directory that is not there has nothing in it.
 *
 * Only what root or the caller of these functions owns, and nobody else can write to, is taken. Of files none but
 * regular ones are opened, and no more is read than the bounds say.
 */

#include <sys/stat.h>
#include <time.h>

#include "macro.h"

#define ARTIFACT_FILE "environment.json"
#define ARTIFACT_FILE_MAX (64 * KIB)
#define ARTIFACT_CLOSURE_MAX (4 * MIB)

/* So many entries of a directory are looked at; names that begin with "." do not count. */
#define ARTIFACTS_MAX 256U

/* What tells one state of a file from another. Of one that is not there all is 0. */
typedef struct FileStamp {
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec modified, changed;
} FileStamp;

/* Which files an artifact consists of. */
typedef enum ArtifactPart {
        ARTIFACT_PART_ENTRY, /* the entry itself, a symbolic link maybe */
        ARTIFACT_PART_DIRECTORY,
        ARTIFACT_PART_TEXT,
        ARTIFACT_PART_CLOSURE,
        ARTIFACT_PART_PROGRAMS, /* the directory bin of its root */
        _ARTIFACT_PART_MAX,
} ArtifactPart;

typedef struct Artifact {
        char *path;   /* of the entry */
        char *reason; /* why it cannot be taken; NULL: it was read, and text is there */
        char *text;   /* environment.json, valid UTF-8 */
        size_t text_size;
        char *closure_path; /* absolute; NULL: the text names none that it could be */
        char *closure;      /* what is in it, valid UTF-8 */
        size_t closure_size;
        char *bin;         /* absolute; NULL: the text names no root */
        unsigned programs; /* bits: which of those that were looked for are there */
        FileStamp stamps[_ARTIFACT_PART_MAX];
} Artifact;

typedef struct ArtifactDirectory {
        char *path;
        char *reason; /* why it, or what of it is not in the list, is passed over; NULL: nothing is */
        FileStamp stamp;
        Artifact *artifacts; /* by path */
        size_t n_artifacts;
} ArtifactDirectory;

/* Reads a directory anew: closures of no more than total_max bytes together, and which of the programs (a list that
 * ends with NULL, at most 32) the roots have. Negative errno for want of memory only; all else is a reason. */
int artifact_directory_read(const char *path, size_t total_max, const char *const *programs, ArtifactDirectory *ret);
void artifact_directory_done(ArtifactDirectory *d);

/* Whether reading it again could give something else. A change within the same tick of the clock as the reading
 * cannot be seen. */
bool artifact_directory_changed(const ArtifactDirectory *d);

/* Frees the texts, which are not needed to see changes. */
void artifact_directory_forget_texts(ArtifactDirectory *d);
