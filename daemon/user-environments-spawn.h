/* SPDX-License-Identifier: MIT */
#pragma once

/* One process of sandbox-environments, which runs as a user. */

#include "daemon/config-directories.h"
#include "lib/cred.h"

typedef struct UserEnvironmentsSpawned {
        int pidfd;
        int result_fd; /* non-blocking */
} UserEnvironmentsSpawned;

/* switch_user: the daemon is somebody else. Nothing is left on failure. */
int user_environments_spawn(const char *program, const ConfigDirectories *directories, const PeerCred *user,
                            bool switch_user, UserEnvironmentsSpawned *ret);
