/* SPDX-License-Identifier: MIT */
#pragma once

/* Makes little of the process: code in jails, and whoever it asks for, send it bytes. For good. */

#include "lib/macro.h"

/* No core, no privileges by execve(), memory that others of the user cannot read, as many descriptors as may be, and
 * none open from keep_fds on. */
int confine_process(unsigned keep_fds);

/* Leaves the system calls that work on sockets, read files and wait. */
int confine_calls(void);
