/* SPDX-License-Identifier: MIT */
#pragma once

/* One process of sandbox-snapshot, with its pipes. */

#include "daemon/snapshot.h"

typedef struct SnapshotSpawned {
        int pidfd;
        int result_fd;  /* non-blocking */
        int channel_fd; /* the agent's end; -EBADF: the verb has none */
} SnapshotSpawned;

/* Nothing is left on failure. */
int snapshot_spawn(const char *program, const char *root, const SnapshotBounds *bounds,
                   const SnapshotRequest *request, SnapshotSpawned *ret);
