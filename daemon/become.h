/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Another user's processes: the child of a vfork(2), for which the daemon waits, must not have the uid of somebody who
 * could stop it. So it sets groups and gid, which allow nobody to send signals, and executes sandbox-become (become/),
 * which does the rest.
 */

#include <sys/types.h>

#include "lib/become.h"
#include "lib/macro.h"

/* ---- in the daemon ---- */

typedef struct Become {
        uid_t uid;
        int join_fd; /* the first of n_join descriptors of cgroup.procs, one after another, in the child */
        size_t n_join;
        const char *project; /* bound over PROJECT_PLACE; NULL: none */
        bool end_with_us;
        bool alone; /* it makes no processes */
} Become;

/* The arguments of sandbox-become; argv are those of the program, an absolute path. For strv_free(). */
int become_build_argv(const Become *b, const char *program, const char *const *argv, char ***ret);

/* What it says on standard error when it fails: 1 and its step (allocated) and errno; 0: that is not it; -ENOMEM. */
int become_failure_parse(const char *text, char **ret_step, int *ret_error);

/* ---- in the child ---- */

/* Raw system calls: libc's wrappers would signal the daemon's threads, had it any. On failure errno is set. */
int become_set_groups(const gid_t *groups, size_t n_groups);
int become_set_gid(gid_t gid);
/* Executes sandbox-become, which its descriptor is closed by. Returns on failure only, with errno set. */
void become_execute(int become_fd, char *const argv[]);
