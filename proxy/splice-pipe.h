/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The pipe through which bytes go from one socket to another without being copied (splice(2)). There is one for all:
 * whoever fills it empties it before he returns, so it takes neither two descriptors for each connection nor more of
 * the pages that a user's pipes may have (pipe(7), pipe-user-pages-soft).
 */

#include <sys/types.h>

#include "lib/macro.h"

/* What it holds where each page is full. */
#define SPLICE_PIPE_SIZE (1 * MIB)

/* Once, before the others are called. It may be smaller than it should be. */
int splice_pipe_open(void);

/* Bytes of a non-blocking socket that are in the pipe now, at most so many; 0 at its end, or negative errno. */
ssize_t splice_pipe_fill(int fd, size_t size);
/* Bytes that such a socket has taken, or negative errno. size is at most what is in it. */
ssize_t splice_pipe_pour(int fd, size_t size);
/* Takes out all that is in it, which is so much; ret: NULL to drop it. */
void splice_pipe_empty(char *ret, size_t size);
