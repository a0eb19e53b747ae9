/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a session may use: defaults, maxima, and what a caller asked for, brought together. Pure. UINT64_MAX and
 * INFINITY are no bound.
 */

#include "lib/macro.h"

typedef struct Limits {
        double cpus;
        uint64_t memory_mb;
        uint64_t disk_mb;
        uint64_t processes;
        uint64_t timeout_usec;  /* of one turn */
        uint64_t cpu_weight;    /* share of what CPU time there is, 100 is the kernel's default */
        uint64_t io_weight;     /* the same of block devices, where their scheduler has weights */
        double io_read_mbps;    /* MiB/s of each block device */
        double io_write_mbps;
} Limits;

/* What a call or an environment asks for; 0 means not asked. */
typedef struct LimitsRequest {
        double cpus;
        uint64_t memory_mb;
        uint64_t processes;
        uint64_t timeout_usec;
        uint64_t cpu_weight;
        double io_read_mbps;
        double io_write_mbps;
} LimitsRequest;

extern const Limits limits_builtin_defaults;
extern const Limits limits_builtin_max;
extern const Limits limits_unbounded;   /* of a group that is not a session's */

/* With less, not even one interpreter and the agent start. Configuration and requests are held to these. */
#define LIMITS_CPUS_MIN 0.01
#define LIMITS_MEMORY_MB_MIN 32
#define LIMITS_DISK_MB_MIN 1
#define LIMITS_PROCESSES_MIN 16
#define LIMITS_TIMEOUT_SECONDS_MIN 0.01
#define LIMITS_IO_MBPS_MIN 0.1

/* No configuration may go beyond these. A double holds all numbers up to them, also in bytes and µs. */
#define LIMITS_CPUS_CEILING 4096
#define LIMITS_MEMORY_MB_CEILING (UINT64_C(1) << 24)
#define LIMITS_PROCESSES_CEILING (UINT64_C(1) << 22)
#define LIMITS_SECONDS_CEILING 31536000
#define LIMITS_IO_MBPS_CEILING (UINT64_C(1) << 20)

/* The kernel's own range of cpu.weight and io.weight (Documentation/admin-guide/cgroup-v2.rst). */
#define LIMITS_WEIGHT_MIN 1
#define LIMITS_WEIGHT_DEFAULT 100
#define LIMITS_WEIGHT_CEILING 10000

/*
 * base, overridden by what is asked (may be NULL), held between the minima and max. *ret_notice is an
 * allocated text with one sentence for each value that was asked for and changed, or NULL when there is
 * none.
 */
int limits_apply(const Limits *base, const Limits *max, const LimitsRequest *ask, Limits *ret,
                 char **ret_notice);

/*
 * Sizes of the writable places of a jail. All are tmpfs, because an unprivileged process can set a quota on
 * no directory; and their pages are charged to the session's memory. So together they stay below the memory
 * limit: whoever fills them all gets ENOSPC, not the OOM killer. (Not so for whoever makes a million empty
 * files: bubblewrap sets no bound on inodes.) MiB, at least 1.
 */
uint64_t limits_workspace_mb(const Limits *l);
uint64_t limits_tmp_mb(const Limits *l);
uint64_t limits_shm_mb(const Limits *l);
