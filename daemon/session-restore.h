/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A session that is made from a snapshot: before its first turn the state goes from the disk into the jail, by a
 * process (snapshot.h) and an operation of the agent with a pipe between them. Turns wait for it, within a bound. What
 * cannot be restored makes a fresh session, and the next reply says so; one that was half filled is replaced.
 */

#include "daemon/snapshot.h"
#include "lib/varlink-server.h"

typedef struct Session Session;
typedef struct SessionRestore SessionRestore;

typedef struct SessionRestoreRequest {
        const char *key;   /* whose snapshots */
        const char *id;    /* NULL: the newest that is good */
        bool automatic;    /* because its name was used, and not by hand */
        VarlinkLink *link; /* by hand: the call that is answered when it is done; a failure ends the session */
} SessionRestoreRequest;

/* For a session that has not been started. */
int session_restore_begin(Session *s, const SessionRestoreRequest *request);
/* Goes on with it when the session is up; part of session_turns_dispatch(). */
void session_restore_dispatch(Session *s);

uint64_t session_restore_next_deadline(const Session *s);
void session_restore_on_time(Session *s, uint64_t now);

/* The session is lost while it is restored: whether another one has taken its place. */
bool session_restore_on_lost(Session *s, const char *why);
/* It ends: nothing is waited for any more. */
void session_restore_cancel(Session *s);
