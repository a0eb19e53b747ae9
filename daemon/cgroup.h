/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Control groups: one tree per daemon, below the group that the daemon itself was put into, with one leaf
 * per session: <own group>/<name>/u<uid>/<session>. Nothing here blocks or waits; what the kernel does later
 * (a group becoming empty or frozen) is asked for by the caller when it is time.
 */

#include <sys/types.h>

#include "daemon/limits.h"

typedef enum CgroupLayout {
        CGROUP_LAYOUT_NONE,     /* no group can be made: limits fall back to rlimits and signals */
        CGROUP_LAYOUT_HYBRID,   /* limits in v1 hierarchies, freeze and kill in the v2 one */
        CGROUP_LAYOUT_V2,
        _CGROUP_LAYOUT_MAX,
        _CGROUP_LAYOUT_INVALID = -EINVAL,
} CgroupLayout;

const char *cgroup_layout_to_string(CgroupLayout l);

typedef enum CgroupFeature {
        CGROUP_CPU = 1 << 0,
        CGROUP_MEMORY = 1 << 1,
        CGROUP_PIDS = 1 << 2,
        CGROUP_FREEZE = 1 << 3,
        CGROUP_KILL = 1 << 4,   /* cgroup.kill; without it, each process is signalled */
        CGROUP_IO = 1 << 5,
} CgroupFeature;

typedef struct CgroupTree CgroupTree;

/*
 * Finds the layout, makes the base group <name>, and first kills and removes what a daemon of the same name
 * left there, but for the leaves in spare ("u1000/id", ends with NULL; may be NULL). Bounded: what does not
 * go away in time is left, and said at debug level. Does not fail for
 * lack of rights or of a cgroup file system: the layout is NONE then, and cgroup_tree_reason() a sentence.
 */
int cgroup_tree_new(const char *name, const char *const *spare, CgroupTree **ret);

/* Removes the base, if it is empty. The leaves must be gone before. */
CgroupTree *cgroup_tree_free(CgroupTree *t);
DEFINE_TRIVIAL_CLEANUP_FUNC(CgroupTree *, cgroup_tree_free);

CgroupLayout cgroup_tree_layout(const CgroupTree *t);
bool cgroup_tree_has(const CgroupTree *t, unsigned features);   /* all of them */
unsigned cgroup_tree_features(const CgroupTree *t);
/* What the sessions of one user may use together, from then on; each group of a user gets it when it is made. */
void cgroup_tree_set_user_limits(CgroupTree *t, const Limits *limits);
/* What is missing and why; "" if nothing is. */
const char *cgroup_tree_reason(const CgroupTree *t);

/* How many of the machine's disks take a bound; tried with one that changes nothing. Negative errno: none. */
int cgroup_tree_count_disks(const CgroupTree *t);

typedef struct Cgroup Cgroup;

/*
 * The leaf of a session, with its limits set, before any process is in it. The tree must outlive it. A limit
 * of a controller that the tree has not is left out. With layout NONE this is -EOPNOTSUPP.
 */
int cgroup_new(CgroupTree *t, uid_t uid, const char *id, const Limits *limits, Cgroup **ret);

/* The leaf that another daemon made. -ENOENT when it is not there. Nobody can join by it. */
int cgroup_open(CgroupTree *t, uid_t uid, const char *id, Cgroup **ret);

/* Kills what is in such a leaf and removes it, bounded; for a session that nobody takes over. */
void cgroup_sweep_leaf(CgroupTree *t, uid_t uid, const char *id);

/* Removes the groups if they are empty, and frees in any case. (libcgroup has a function cgroup_free().) */
Cgroup *cgroup_release(Cgroup *g);
DEFINE_TRIVIAL_CLEANUP_FUNC(Cgroup *, cgroup_release);

/* Of the session in the v2 hierarchy: an absolute path in the file system. */
const char *cgroup_path(const Cgroup *g);

/*
 * Descriptors of cgroup.procs, one per hierarchy, CLOEXEC; a child writes "0" into each to join. Owned by g,
 * which keeps them until cgroup_join_done(): a session that has its process needs them no more.
 */
size_t cgroup_join_fds(const Cgroup *g, const int **ret);
void cgroup_join_done(Cgroup *g);

/* Changes what differs; on failure all is as it was before, as far as the kernel lets us. Memory must not be
 * set below what is used: the kernel would kill. -ENODEV: no block device takes a bound. */
int cgroup_set_limits(Cgroup *g, const Limits *old, const Limits *limits);

/* Asks for it and does not wait. -EOPNOTSUPP without CGROUP_FREEZE. */
int cgroup_freeze(Cgroup *g, bool freeze);

/* What the kernel says now: 1, 0 or negative errno. */
int cgroup_is_frozen(Cgroup *g);
int cgroup_is_populated(Cgroup *g);
/* Whether it was asked to be frozen, which it is from then on or soon. */
int cgroup_wants_frozen(Cgroup *g);

/* How many processes are in it. */
int cgroup_count_processes(Cgroup *g, size_t *ret);

/* Takes so much memory back, if there is as much to be had: what is clean or can be swapped. The kernel works until
 * that is done, so it should be little. -EAGAIN: no more was found; -EOPNOTSUPP before Linux 5.19 and on v1. */
int cgroup_reclaim(Cgroup *g, uint64_t bytes);

/* SIGKILL to all of it, also when it is frozen. Does not wait. */
int cgroup_kill(Cgroup *g);

/* Removes the groups. -EBUSY while a process is in one; may be called again. */
int cgroup_remove(Cgroup *g);

/* How often limits were hit since the group was made. */
typedef struct CgroupCounters {
        uint64_t oom_kills;     /* processes killed for memory */
        uint64_t oom_hits;      /* times that its own limit was the reason; v1 does not tell and has oom_kills */
        uint64_t process_hits;  /* forks refused */
} CgroupCounters;

typedef struct CgroupUsage {
        uint64_t cpu_usec;
        uint64_t memory_bytes;
        uint64_t processes;
} CgroupUsage;

/* What has no controller is 0. */
int cgroup_read_counters(Cgroup *g, CgroupCounters *ret);
int cgroup_read_usage(Cgroup *g, CgroupUsage *ret);

typedef struct CgroupDetails {
        uint64_t throttled_usec;        /* held back by the CPU limit; the sum over CPUs */
        uint64_t memory_peak_bytes;     /* v2: since Linux 5.19 */
        uint64_t io_read_bytes;         /* of all block devices; v2 only */
        uint64_t io_write_bytes;
} CgroupDetails;

/* Those that could be read: of CGROUP_CPU, CGROUP_MEMORY, CGROUP_IO. */
unsigned cgroup_read_details(Cgroup *g, CgroupDetails *ret);
int cgroup_read_throttled(Cgroup *g, uint64_t *ret_usec);
