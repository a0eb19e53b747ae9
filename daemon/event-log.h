/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The last things that happened to sessions, in order, and who follows them. In memory and bounded; holds
 * no code and no output. Each event has a sequence number, so that a follower sees gaps.
 */

#include <sys/types.h>

#include "lib/json.h"
#include "lib/macro.h"
#include "lib/varlink-server.h"

#define EVENT_LOG_MAX 1024U

typedef struct Event {
        uint64_t seq;
        uint64_t time_usec; /* CLOCK_REALTIME */
        const char *event;  /* static */
        char session[16];
        char *name; /* NULL: ephemeral */
        uid_t uid;
        char *detail; /* NULL: none */
} Event;

typedef struct EventFollower EventFollower;

typedef struct EventLog {
        Event ring[EVENT_LOG_MAX];
        uint64_t next_seq; /* ring[seq % EVENT_LOG_MAX] */
        EventFollower *followers;
} EventLog;

/* Records it and tells the followers. event is a static word; detail may be NULL. OOM loses the event, not
 * the session. */
void event_log_add(EventLog *l, const char *event, const char *session, const char *name, uid_t uid,
                   const char *detail);

/* A new array of Event objects of one uid; all_users: of everyone. */
int event_log_to_json(const EventLog *l, uid_t uid, bool all_users, json_object **ret);

/* Keeps a call of `Events` open until its peer goes away. */
int event_log_follow(EventLog *l, VarlinkLink *link, bool all_users);

/* Why the session of this id ended; NULL when that is not known (any more). */
const char *event_log_end_reason(const EventLog *l, uid_t uid, const char *session);
void event_log_done(EventLog *l);
