/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The daemon's socket and its lock, where they are not passed to it (passed-fds.h). One
 * daemon per runtime directory: a lock file in it is held for as long as the process lives, so a socket left
 * by a crash can be replaced safely, and one that is in use is not.
 */

#include "lib/macro.h"

/* Creates the directory (0700 unless it exists) and locks it. The lock's descriptor is to be kept open.
 * *reterr_why (allocated) says what is wrong, among it which other sandboxd holds the lock (-EBUSY). */
int runtime_lock(const char *runtime_dir, char **reterr_why);

/* Makes a listening socket at a path. */
int listen_open(const char *path, char **reterr_why);

/* Makes a state directory usable, or says why it is not. */
int state_directory_check(const char *state_dir, char **reterr_why);
