/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * When the state of a session is saved, and what is known of the last time. A save is a process (snapshot.h) and an
 * operation of the agent (session-operation.h) with a pipe between them, and is over when both are. Turns go on
 * meanwhile: only between the beginning and the operation's sending is none started, so that a busy session can be
 * saved at all.
 */

#include "daemon/snapshot.h"
#include "lib/varlink-server.h"

typedef struct Manager Manager;
typedef struct Session Session;
typedef struct SessionOperation SessionOperation;

#define SESSION_END_IDLE "idle" /* a turn that comes while it is being saved keeps it */

/* Words of the manifest. */
typedef enum SaveReason {
        SAVE_BY_HAND,
        SAVE_PERIODIC,
        SAVE_STANDBY,
        SAVE_IDLE,
        SAVE_LIFETIME,
        SAVE_TURN_BUDGET,
        SAVE_SHUTDOWN,
        _SAVE_REASON_MAX,
} SaveReason;

/* Lives in the session; zero-initialise. */
typedef struct SessionSave {
        /* What it has to be saved for: turns, and files that were put there. */
        uint64_t changes;
        uint64_t saved_changes; /* of those in the last snapshot */
        uint64_t changed_at;    /* CLOCK_MONOTONIC, the first one that is not */
        uint64_t saved_turns;   /* turns that had run then */
        char snapshot[SNAPSHOT_ID_LENGTH + 1]; /* the last one, or what it was restored from; "": none */
        uint64_t bytes;                        /* of it; 0: unknown */

        bool wanted; /* when no turn runs */
        uint64_t wanted_until; /* by hand: then it is refused; else USEC_INFINITY */
        SaveReason reason;

        SnapshotJob *job; /* under way, as is the operation */
        SessionOperation *operation;
        uint64_t saving_changes, saving_turns, idle_since;
        uint64_t hold_until; /* no turn is started before the operation is sent, but for a moment; 0: none is held */
        char *operation_why; /* how that failed */

        unsigned failures; /* since the last success */
        uint64_t retry_at; /* not by itself before */
        bool gave_up;      /* not for standby and ends before the next change */
        bool told;         /* of these failures */
        char *notice;      /* for the next turn */
        char *skipped;     /* what the last one has left out, as it was told */

        const char *retire; /* the session ends for this reason when it is saved; static; NULL: it does not */
        uint64_t retire_at; /* and then in any case */

        VarlinkLink **waiters; /* calls of Save; references */
        size_t n_waiters;
} SessionSave;

const char *save_reason_to_string(SaveReason r);

/* A turn ran, or a file was put. */
void session_save_changed(Session *s);
/* It is just as a snapshot has it. */
void session_save_is(Session *s, const char *snapshot, uint64_t bytes);
/* As another daemon left it. */
void session_save_was(Session *s, const char *snapshot, uint64_t bytes, bool changed);
static inline bool session_save_is_changed(const SessionSave *v) {
        return v->changes > v->saved_changes;
}

/* Whether its snapshot, if it has one, cannot be had under its name: it has expired, or it is of another session. */
bool session_save_is_lost(const Session *s);

/* Answers a call of Save when it is done; unchanged sessions at once. */
int session_save_by_hand(Session *s, VarlinkLink *link);

/* Begins what is due now that no turn runs. Whether turns have to wait a moment. */
bool session_save_dispatch(Session *s);

/* Whether it is wanted or under way: then the session does not go to sleep. */
static inline bool session_save_is_busy(const SessionSave *v) {
        return v->wanted || v->job || v->operation;
}

/* For session-retire.c: begins when no turn runs; USEC_INFINITY, or until a moment that it looks at. */
void session_save_want(Session *s, SaveReason reason, uint64_t until);
void session_save_too_late(Session *s);

/* session-retire.c. Before standby: whether a save was begun, after which it is asked again. */
bool session_save_before_standby(Session *s);

/* Saves it if it has to be, then ends it; a turn that comes meanwhile keeps one that ends because it is idle. */
void session_retire(Session *s, const char *reason, SaveReason why, uint64_t patience_usec);
void session_unretire_idle(Session *s);
/* Whether it ends in any case: no turn begins in it. */
static inline bool session_retire_is_final(const SessionSave *v) {
        return v->retire && !streq(v->retire, SESSION_END_IDLE);
}

uint64_t session_save_next_deadline(const Session *s);
void session_save_on_time(Session *s, uint64_t now);

/* It ends: nothing is waited for any more. */
void session_save_cancel(Session *s);
/* One of that name was ended by hand: it is not restored by itself. */
void session_close_snapshots(Manager *m, uid_t uid, const char *project, const char *name);
