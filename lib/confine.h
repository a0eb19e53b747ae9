/* SPDX-License-Identifier: MIT */
#pragma once

/* What the small programs beside sandboxd give away before they read anything hostile, as far as it is the same for
 * all of them. For good. */

#include <seccomp.h>

#include "macro.h"

static inline void seccomp_releasep(scmp_filter_ctx *filter) {
        if (*filter)
                seccomp_release(*filter);
}

/* No privileges by execve(), no core, memory that others of the user cannot read, no files for others, a write to
 * whoever has gone is an error, and no descriptors from keep_fds on. */
int confine_common(unsigned keep_fds);

/* Both bounds of setrlimit(2). */
int confine_limit(int resource, uint64_t value);

/* Calls by their names; one that libseccomp does not know for this machine is left out. */
int confine_allow_calls(scmp_filter_ctx filter, const char *const names[], size_t n);
