/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a session may use: defaults, maxima, and what a caller asked for, brought together. Pure.
 */

#include "lib/macro.h"

typedef struct Limits {
        double cpus;
        uint64_t memory_mb;
        uint64_t disk_mb;
        uint64_t processes;
        uint64_t timeout_usec;  /* of one turn */
} Limits;

/* What a call or an environment asks for; 0 means not asked. */
typedef struct LimitsRequest {
        double cpus;
        uint64_t memory_mb;
        uint64_t timeout_usec;
} LimitsRequest;

extern const Limits limits_builtin_defaults;
extern const Limits limits_builtin_max;

/* Smallest values that leave a session able to start at all; the configuration and requests are held to them. */
extern const Limits limits_builtin_min;

/*
 * base, overridden by what is asked (may be NULL), held between limits_builtin_min and max. *ret_notice is an
 * allocated text with one sentence for each value that was asked for and changed, or NULL when there is none.
 */
int limits_apply(const Limits *base, const Limits *max, const LimitsRequest *ask, Limits *ret, char **ret_notice);

/*
 * Sizes of the writable places of a jail. All are tmpfs, because an unprivileged process can set a quota on
 * no directory; and their pages are charged to the session's memory. So together they stay below the memory
 * limit: whoever fills them all gets ENOSPC, not the OOM killer. (Not so for whoever makes a million empty
 * files: bubblewrap sets no bound on inodes.) MiB, at least 1.
 */
uint64_t limits_workspace_mb(const Limits *l);
uint64_t limits_tmp_mb(const Limits *l);
uint64_t limits_shm_mb(const Limits *l);
