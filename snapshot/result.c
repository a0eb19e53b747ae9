/* SPDX-License-Identifier: MIT */

#include "snapshot/result.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const error_table[_ERROR_MAX] = {
        [ERROR_INCOMPLETE] = "incomplete",
        [ERROR_TOO_LARGE] = "too-large",
        [ERROR_NO_SPACE] = "no-space",
        [ERROR_IO] = "io",
        [ERROR_DAMAGED] = "damaged",
        [ERROR_FOREIGN_VERSION] = "foreign-version",
        [ERROR_NONE] = "none",
        [ERROR_CLOSED] = "closed",
        [ERROR_USAGE] = "usage",
        [ERROR_BUSY] = "busy",
};

int result_fail(json_object *result, SnapshotError error, const char *format, ...) {
        _cleanup_free_ char *why = NULL;
        va_list ap;
        int n, r;

        va_start(ap, format);
        n = vasprintf(&why, format, ap);
        va_end(ap);
        if (n < 0) {
                why = NULL;
                return -ENOMEM;
        }

        r = json_put_bool(result, "ok", false);
        if (r >= 0)
                r = json_put_string(result, "error", error_table[error]);
        if (r >= 0)
                r = json_put_string(result, "why", why);
        return r < 0 ? r : (int) error;
}

int result_fail_errno(json_object *result, int error, const char *what) {
        error = abs(error);

        switch (error) {
        case ENOSPC:
        case EDQUOT:
                return result_fail(result, ERROR_NO_SPACE,
                                   "No disk space is left to %s; make room where sandboxd keeps its snapshots.", what);
        case EBUSY:
                return result_fail(result, ERROR_BUSY,
                                   "The snapshots are in use by another save; try again in a while.");
        case ECANCELED:
                return result_fail(result, ERROR_INCOMPLETE,
                                   "It was given up, since it took too long or sandboxd ended.");
        default:
                return result_fail(result, ERROR_IO, "Failed to %s: %s.", what, strerror(error));
        }
}
