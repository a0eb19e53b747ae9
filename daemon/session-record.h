/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a daemon must know of a session to take it over from another one: a JSON object in the runtime
 * directory (record-directory.h). Whoever can write there is trusted; but a file may be torn, old, or of
 * another version, so what is read is typed and bounded. Pure.
 */

#include <sys/types.h>

#include "daemon/bounds.h"
#include "daemon/environment.h"
#include "daemon/history.h"
#include "daemon/limits.h"
#include "daemon/project.h"
#include "daemon/session-state.h"

#define SESSION_RECORD_SIZE_MAX (2 * MIB)
#define SESSION_RECORD_GROUPS_MAX 65536U

/* The turn that ran when the record was written, as far as the agent does not know it. number 0: none. */
typedef struct SessionRecordTurn {
        uint64_t number;
        JsonBytes code;   /* its beginning, for the history */
        JsonBytes notice; /* what its reply was to say already */
} SessionRecordTurn;

/* What a session that lives needs of its environment, where that is gone, or another one has its name. */
typedef struct SessionRecordArtifact {
        const char *source; /* environment_origin(); NULL: the environment is of the host */
        bool is_users;      /* found in a directory of the user's own */
        Interpreter interpreters[_INTERPRETER_MAX];
        size_t n_interpreters; /* 0: a daemon wrote it that did not say so of the host's */
} SessionRecordArtifact;

/* Strings are borrowed: from a living session, or, once parsed, from the record's own json. */
typedef struct SessionRecord {
        const char *id;
        uid_t uid; /* who made it */
        gid_t gid;
        gid_t *groups;
        size_t n_groups;
        const char *project;
        ProjectMode project_mode;
        const char *name; /* NULL: none */
        const char *environment;
        SessionRecordArtifact artifact;
        Limits limits;
        Bounds bounds; /* all 0: a daemon wrote it that did not know of them */
        uint64_t workspace_mb;
        uint64_t created;          /* CLOCK_MONOTONIC */
        uint64_t created_realtime;
        uint64_t idle_since;       /* CLOCK_MONOTONIC */
        SessionState state;
        uint64_t frozen_realtime; /* of one that is frozen by hand */
        uid_t frozen_by;
        uint64_t pid;              /* of the jail's monitor; 0: none yet */
        uint64_t turns;            /* the last number given */
        uint64_t turn_usec;
        uint64_t interpreters;     /* bits */
        SessionRecordTurn turn;
        /* What its last snapshot has; "" or NULL: there is none. */
        const char *snapshot;
        uint64_t snapshot_bytes;
        uint64_t saved_turns;
        bool changed;   /* more than turns since */
        bool restoring; /* half of a state may be in it */
        bool restored;
        History history;
        json_object *network; /* session-network.h; NULL: it has none */

        json_object *json; /* owned, NULL if not parsed */
} SessionRecord;

/* Whether it can be the id of a session, and so the name of a file and of a group. */
bool session_id_is_valid(const char *id);

int session_record_to_json(const SessionRecord *r, json_object **ret);

/* -EBADMSG or -EINVAL: no record of the session of this id. On success session_record_done() frees. */
int session_record_parse(const char *id, const char *data, size_t size, SessionRecord *ret);
void session_record_done(SessionRecord *r);
