/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The last things that happened to sessions, in order, and who follows them. In memory and bounded; holds
 * no code and no output. Each event has a sequence number, so that a follower sees gaps. Everything that is
 * to be known of a session goes through event_log_add(), which also hands it to the audit trail.
 *
 * The words of a session's life, in order: session_created, sandbox_started, restored where it began with a saved
 * state, then exec_turn, frozen, thawed, limit_hit, file_get, file_put, saved, rolled_back as they come, killed,
 * usage_metered, torn_down.
 */

#include <sys/types.h>

#include "lib/json.h"
#include "lib/macro.h"
#include "lib/varlink-server.h"

#define EVENT_LOG_MAX 1024U

/* Something about an event that is a value: a word, or where that is NULL, a number. */
typedef struct EventField {
        const char *key; /* NULL: the end of a list */
        const char *text;
        uint64_t number;
} EventField;

/* One event, as it is told. All borrowed; what is left out is 0. */
typedef struct EventRecord {
        const char *event;        /* a static word */
        const char *session;      /* id; NULL: about the daemon */
        const char *name;         /* NULL: ephemeral */
        const char *project;      /* as the caller named it */
        uid_t uid;                /* whose session */
        const char *detail;       /* a word or a short sentence, never code or output */
        const uid_t *by;          /* who asked for it; NULL: sandboxd itself */
        const EventField *fields; /* what there is besides */
        const char *code;         /* of a turn, for the audit trail only, if the admin wants that */
        size_t code_size;
} EventRecord;

/* Who gets each event besides the followers. */
typedef void (*EventSink)(const EventRecord *record, uint64_t time_usec, void *userdata);

typedef struct Event {
        uint64_t seq;
        uint64_t time_usec; /* CLOCK_REALTIME */
        const char *event;  /* static */
        char session[16];
        char *name; /* NULL: ephemeral */
        uid_t uid;
        bool asked;
        uid_t by;     /* if asked */
        char *detail; /* the record's and its fields; NULL: none */
} Event;

typedef struct EventFollower EventFollower;

/* Ends are kept apart from the ring, which a busy session's turns fill. */
typedef struct EventEnd {
        char session[16];
        uid_t uid;
        char *reason;
} EventEnd;

typedef struct EventLog {
        Event ring[EVENT_LOG_MAX];
        uint64_t next_seq; /* ring[seq % EVENT_LOG_MAX] */
        EventEnd ends[EVENT_LOG_MAX];
        uint64_t n_ends; /* the same */
        EventFollower *followers;
        EventSink sink; /* NULL: none */
        void *sink_userdata;
} EventLog;

/* Records it and tells sink and followers. OOM loses the event for followers, not the session. */
void event_log_add(EventLog *l, const EventRecord *record);

/* A new array of Event objects of one uid; all_users: of everyone. */
int event_log_to_json(const EventLog *l, uid_t uid, bool all_users, json_object **ret);

/* Keeps a call of `Events` open until its peer goes away. */
int event_log_follow(EventLog *l, VarlinkLink *link, bool all_users);

/* Why the session of this id ended; NULL when that is not known (any more). */
const char *event_log_end_reason(const EventLog *l, uid_t uid, const char *session);
void event_log_done(EventLog *l);
