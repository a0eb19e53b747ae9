/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A file of this machine that is written: under a name of its own until it is whole, so that nothing that was there is
 * lost for half a file. One at a time; what is not finished is removed when the program ends, by a signal also.
 */

#include <stdint.h>
#include <sys/types.h>

typedef struct LocalFile {
        char *path;             /* where it will be, with links resolved; NULL: standard output */
        char *temporary;
        int fd;
} LocalFile;

/* path "-": standard output. On failure *reterr_why is a sentence, allocated. */
int local_file_create(const char *path, LocalFile *ret, char **reterr_why);
/* Gives it its name and, as far as the umask allows, permissions. */
int local_file_finish(LocalFile *f, mode_t mode);
void local_file_done(LocalFile *f);
