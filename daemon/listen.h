/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The daemon's socket and its lock: passed by the service manager (sd_listen_fds(3)), or made at a path. One
 * daemon per runtime directory: a lock file in it is held for as long as the process lives, so a socket left
 * by a crash can be replaced safely, and one that is in use is not.
 */

#include "lib/macro.h"

/* Creates the directory (0700 unless it exists) and locks it. The lock's descriptor is to be kept open.
 * *reterr_why (allocated) says what is wrong, among it which other sandboxd holds the lock (-EBUSY). */
int runtime_lock(const char *runtime_dir, char **reterr_why);

/* A listening socket. path NULL: the one that the service manager passed, -ENOENT when it passed none. */
int listen_open(const char *path, char **reterr_why);

/* Makes a state directory usable, or says why it is not. */
int state_directory_check(const char *state_dir, char **reterr_why);
