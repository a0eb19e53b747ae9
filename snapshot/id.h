/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names of snapshots: YYYYMMDDTHHMMSS-xxxxxxxx, the time (UTC) and eight hex digits. The names of one session's
 * snapshots ascend in the order in which they were made, whatever the clock did; what the clock said stands in
 * the manifest. Pure but for the random numbers.
 */

#include "lib/macro.h"

#define ID_LENGTH 24U

typedef struct SnapshotId {
        char text[ID_LENGTH + 1];
} SnapshotId;

bool id_is_valid(const char *text);

/* The time in a name, for snapshots whose manifest cannot tell. The name is valid. */
uint64_t id_time_usec(const char *id);

/* A name for a snapshot made now, which comes after the last one (NULL: there is none). -EAGAIN: no random numbers
 * yet; -ERANGE: no name comes after that. */
int id_next(const char *last, uint64_t now_usec, SnapshotId *ret);
