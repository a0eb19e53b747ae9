/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Runs sandbox-snapshot, which keeps the states of sessions on the disk (snapshot/), and takes its result. The state
 * itself goes from the agent's hands into the program's through a channel (a pipe) and never through the daemon.
 *
 * A job waits for a place: few run at once, fewer of one user, and those of one key in the order in which they were
 * wanted, so that a restore sees the save before it. Each process is watched, bounded in time and reaped.
 */

#include <systemd/sd-event.h>

#include "daemon/snapshot-result.h"
#include "lib/json.h"
#include "lib/macro.h"

#define SNAPSHOT_KEY_LENGTH 32U /* hex digits */

#define SNAPSHOT_HEAD_MAX (256 * KIB) /* as text */

#define SNAPSHOT_JOBS_MAX 4U          /* running */
#define SNAPSHOT_JOBS_PER_UID_MAX 3U
#define SNAPSHOT_WAITING_PER_UID_MAX 1024U

typedef struct SnapshotRunner SnapshotRunner;
typedef struct SnapshotJob SnapshotJob;

typedef enum SnapshotVerb {
        SNAPSHOT_SAVE,
        SNAPSHOT_LOAD,
        SNAPSHOT_LIST,
        SNAPSHOT_CLOSE, /* not restored by itself until it is saved again */
        SNAPSHOT_PRUNE, /* what has expired, of everyone */
        _SNAPSHOT_VERB_MAX,
} SnapshotVerb;

typedef struct SnapshotBounds {
        uint64_t max_bytes, user_max_bytes, keep;
        uint64_t expire_seconds; /* UINT32_MAX: never, in effect */
} SnapshotBounds;

/* What came of it. */
typedef struct SnapshotResult {
        const char *error; /* NULL: done. A word of the program's, or "missing", "died", "timeout", "bad-answer" */
        const char *why;   /* a sentence; with an error never NULL */
        json_object *json; /* the whole answer, borrowed; NULL when there was none */
} SnapshotResult;

typedef struct SnapshotRequest {
        SnapshotVerb verb;
        uid_t uid;
        const char *key;   /* NULL: all of the user (LIST) */
        const char *id;    /* LOAD; NULL: the newest that is good */
        bool automatic;    /* LOAD: not what was closed */
        json_object *head; /* SAVE: what is kept about the session; borrowed */
        uint64_t deadline_usec; /* for the process, from its start */
        /* SAVE, LOAD: it runs, and this is the agent's end of its channel. Takes fd. */
        void (*on_started)(SnapshotJob *job, int fd, void *userdata);
        /* Once, when the process is gone, and never from within snapshot_job_new(); the job is gone after it. */
        void (*on_done)(SnapshotJob *job, const SnapshotResult *result, void *userdata);
        void *userdata;
} SnapshotRequest;

/* SHA-256 of the project, a NUL and the name, cut. */
void snapshot_key(const char *project, const char *name, char ret[static SNAPSHOT_KEY_LENGTH + 1]);

/* root: the directory of all snapshots. program NULL: beside the daemon's own, else in LIBEXECDIR. */
int snapshot_runner_new(sd_event *event, const char *root, const char *program, const SnapshotBounds *bounds,
                        SnapshotRunner **ret);
/* Kills what runs, and calls nobody. */
SnapshotRunner *snapshot_runner_free(SnapshotRunner *r);

const char *snapshot_runner_root(const SnapshotRunner *r);

/* snapshot-directory.c. Whether there may be snapshots of a session, by a look at its directory; *ret_closed as the
 * verb left it. */
bool snapshot_exists(const SnapshotRunner *r, uid_t uid, const char *key, bool *ret_closed);
/* Whether one of them has not been removed. */
bool snapshot_is_there(const SnapshotRunner *r, uid_t uid, const char *key, const char *id);
/* Those who have any. The array is the caller's. */
int snapshot_users(const SnapshotRunner *r, uid_t **ret, size_t *ret_n);
bool snapshot_runner_is_idle(const SnapshotRunner *r);

/* -EBUSY: too many of the user wait already. */
int snapshot_job_new(SnapshotRunner *r, const SnapshotRequest *request, SnapshotJob **ret);
/* Nobody waits for it any more: on_done is not called. */
void snapshot_job_cancel(SnapshotJob *job);
