/* SPDX-License-Identifier: MIT */
#pragma once

/* One process of sandbox-environments, which runs as a user. */

#include "daemon/config-directories.h"
#include "lib/cred.h"

typedef struct UserEnvironmentsSpawned {
        int pidfd;
        int result_fd; /* non-blocking */
} UserEnvironmentsSpawned;

/* become_fd: that of sandbox-become; -EBADF: the user is the daemon's. Nothing is left on failure. */
int user_environments_spawn(const char *program, const ConfigDirectories *directories, const PeerCred *user,
                            int become_fd, UserEnvironmentsSpawned *ret);
