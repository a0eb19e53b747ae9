/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Starts a program of ours beside the daemon: one that does what the daemon must not, because it may block, or with
 * what is hostile. What it cannot need is taken from it before it has another uid or executes anything: ways to get
 * capabilities, all descriptors but the given ones, the environment; and the capabilities before it executes anything
 * but sandbox-become. It ends with the daemon, if that may end it.
 */

#include "lib/cred.h"
#include "lib/macro.h"

#define HELPER_FDS_MAX 5

typedef struct HelperSpawn {
        const char *program;
        const char *const *argv;        /* ends with NULL */
        int fds[HELPER_FDS_MAX];        /* by their numbers in it; -EBADF: /dev/null */
        const PeerCred *user;           /* who it is to be; NULL: whom the daemon is */
        int become_fd;                  /* for that: that of sandbox-become, as SpawnContext has it */
        uint64_t memory_max;            /* bytes of address space; these: 0 is no bound */
        uint64_t cpu_seconds_max;
        unsigned seconds_max;           /* it ends by SIGALRM then */
        bool alone;                     /* it makes no processes */
} HelperSpawn;

#define HELPER_FDS_NONE { -EBADF, -EBADF, -EBADF, -EBADF, -EBADF }

/* On failure nothing is left. That a user's cannot be executed is told by its exit status, BECOME_STATUS. */
int helper_spawn(const HelperSpawn *h, int *ret_pidfd);
