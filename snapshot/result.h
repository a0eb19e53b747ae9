/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the program answers: one JSON object, {"ok":true,…} or {"ok":false,"error":…,"why":…}. A function that
 * returns a positive SnapshotError has put it into the object; a negative errno is left to its caller.
 */

#include "lib/json.h"

typedef enum SnapshotError {
        ERROR_INCOMPLETE = 1,   /* the stream ended early, or no part could be saved */
        ERROR_TOO_LARGE,
        ERROR_NO_SPACE,
        ERROR_IO,
        ERROR_DAMAGED,          /* the stream is none, or no snapshot is good */
        ERROR_FOREIGN_VERSION,
        ERROR_NONE,             /* there is no snapshot */
        ERROR_CLOSED,
        ERROR_USAGE,
        ERROR_BUSY,
        _ERROR_MAX,
} SnapshotError;

/* Returns error, or -ENOMEM. The format is one that makes a sentence which says what to do. */
int result_fail(json_object *result, SnapshotError error, const char *format, ...) _printf_(3, 4);

/* The same from an errno (negative or positive): no-space, busy or io; incomplete for ECANCELED. what says what was
 * done ("write a snapshot"). */
int result_fail_errno(json_object *result, int error, const char *what);
