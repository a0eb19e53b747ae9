/* SPDX-License-Identifier: MIT */
#pragma once

/* The memory of a process that is its own or its family's, from /proc/PID/smaps_rollup: no files, no tmpfs. */

#include <sys/types.h>

#include "lib/macro.h"

typedef struct ProcessMemory {
        uint64_t mapped_bytes;
        uint64_t share_bytes;   /* of pages that several have mapped, this one's part only */
} ProcessMemory;

/* The kernel goes through the page tables for it: not for every turn. -ESRCH when it is gone; -EBADMSG. */
int process_memory_read(pid_t pid, ProcessMemory *ret);
/* Pure part of it. -EBADMSG. */
int process_memory_parse(const char *text, ProcessMemory *ret);
