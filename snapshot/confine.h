/* SPDX-License-Identifier: MIT */
#pragma once

/* Makes little of the process: it reads what comes out of jails. */

#include "lib/macro.h"

/* No core, no privileges by execve(), the end with sandboxd's, no file above max_file bytes (0: no bound), and no
 * descriptors from keep_fds on. */
int confine_process(uint64_t max_file, unsigned keep_fds);

/* Leaves the system calls that work on open files and below open directories, and memory. For good. */
int confine_calls(void);
