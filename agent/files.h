/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Paths below the workspace. Code in the jail is free to change every name at any time, so the kernel resolves a
 * path in one go and is told what not to follow. For children of operations: what is found may block.
 */

#include <stdint.h>
#include <sys/stat.h>

/* What is left of a path without /workspace at its front. */
const char *file_path(const char *path);
/* openat2(2) from the workspace down. */
int file_open(const char *path, uint64_t flags);
/* To read. -EISDIR, -ENXIO: it is no regular file. */
int file_open_regular(const char *path, struct stat *ret);
