/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The states of a session and the two tables that rule them: which state may follow which, and which verb
 * is legal in which state. Pure. Freezing is one write that is not waited for, so there are no states
 * between running and frozen.
 */

#include "lib/macro.h"

#define SESSION_ID_LENGTH 12U /* hex digits */
#define SESSION_PROJECT_MAX 4096U

typedef enum SessionState {
        SESSION_STARTING, /* the jail is being built; turns queue */
        SESSION_RUNNING,  /* the agent is there: idle, or running a turn */
        SESSION_STANDBY,  /* frozen because it was idle: the next turn thaws it */
        SESSION_FROZEN,   /* frozen by hand: turns are refused until it is thawed by hand */
        SESSION_STOPPING, /* being killed: no verb reaches it, its name is free again */
        SESSION_DEAD,     /* nothing of it is left; waits for the gc queue */
        _SESSION_STATE_MAX,
} SessionState;

typedef enum SessionVerb {
        SESSION_VERB_RUN,
        SESSION_VERB_FREEZE,
        SESSION_VERB_THAW,
        SESSION_VERB_KILL,
        SESSION_VERB_SET,  /* limits */
        SESSION_VERB_SHOW, /* show, history: anything that only looks */
        SESSION_VERB_WAIT,
        SESSION_VERB_INTERRUPT,
        SESSION_VERB_OPERATE, /* files, snapshots, variables: what its agent does beside turns */
        SESSION_VERB_SAVE,
        _SESSION_VERB_MAX,
} SessionVerb;

const char *session_state_to_string(SessionState s);
const char *session_verb_to_string(SessionVerb v);
bool session_state_may_follow(SessionState from, SessionState to);
bool session_verb_allowed(SessionState s, SessionVerb v);
