/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The service manager's store of descriptors (sd_notify(3), FDSTORE=): what is put there is passed to the next
 * daemon under its name, should this one crash. Whether it took one cannot be known; a daemon that is not
 * passed a socket ends the session.
 */

#include "lib/macro.h"

/* Whether there may be one. Where there is none, nobody could take a session over after a crash. */
bool fd_store_exists(void);

/* Under a name of passed-fds.h. */
void fd_store_put(const char *name, int fd);
void fd_store_drop(const char *name);
