/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The directory that a client works on, as /project in a jail. Nobody looks at the path but bubblewrap, as the user
 * of the session: what counts is what he can reach, a symlink can lead nowhere else, and a file system that hangs
 * does not hang the daemon. Pure.
 */

#include <errno.h>
#include <sys/types.h>

#include "lib/macro.h"

#define PROJECT_MOUNT "/project"

/* In the order of what they allow. */
typedef enum ProjectMode {
        PROJECT_NONE,
        PROJECT_READ_ONLY,
        PROJECT_READ_WRITE,
        _PROJECT_MODE_MAX,
        _PROJECT_MODE_INVALID = -EINVAL,
} ProjectMode;

const char *project_mode_to_string(ProjectMode m);
ProjectMode project_mode_from_string(const char *s);

/* Whether it can be mounted as far as its text tells: absolute, without "." and "..", and not the root directory. */
bool project_path_is_plain(const char *path);

/* What bubblewrap's complaint says about the project, if that is what it is about, as an errno; else 0. */
int project_error_from_text(const char *path, const char *text);

/* A sentence that says why it cannot be mounted and what to do; allocated, NULL on OOM. uid is the jail's. */
char *project_explain(const char *path, uid_t uid, int error);
