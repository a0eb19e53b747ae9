/* SPDX-License-Identifier: MIT */
#pragma once

/* Descriptors: closing, flags, whole small files, sealed memory files. Every descriptor made here is CLOEXEC. */

#include <errno.h>
#include <sys/types.h>

#include "macro.h"

/* Closes fd if it is one (>= 0), preserving errno. Always returns -EBADF: fd = safe_close(fd). */
int safe_close(int fd);

static inline void closep(int *fd) {
        (void) safe_close(*fd);
}

#define _cleanup_close_ _cleanup_(closep)

int fd_set_nonblock(int fd, bool nonblock);

/* Closes all descriptors but these, which are sorted for it; negative ones are none. */
void fds_close_others(int keep[], size_t n);

/* Writes all of it to a blocking descriptor, restarting on EINTR. 0 or negative errno. */
int write_full(int fd, const void *data, size_t size);

/* Reads from a descriptor to its end, like read_file_at(). */
int read_to_end(int fd, size_t max, char **ret, size_t *ret_size);

/*
 * Reads a whole file of at most max bytes into a NUL-terminated buffer owned by the caller. The file may
 * be in /proc or cgroupfs (no size known beforehand). -EFBIG when it is larger. dir_fd may be AT_FDCWD.
 */
int read_file_at(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size);

/* Opens path below dir_fd and writes the string in one write(2), as kernel interfaces want it. */
int write_file_at(int dir_fd, const char *path, const char *value);

/* A sealed, read-only memory file with this content; memfd_create(2). The fd, or negative errno. */
int memfd_new_sealed(const char *name, const void *data, size_t size);

/* A new open file description (its own offset, at 0) of the same file, read-only. */
int fd_reopen(int fd);
