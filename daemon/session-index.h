/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Finds living sessions by id and by (uid, project, name): every turn does both, and a walk over a thousand
 * sessions costs more than the rest of what the daemon does for a turn. Sessions are linked through members of
 * their own, so that nothing here can fail. All borrowed.
 */

#include "daemon/session.h"

#define SESSION_INDEX_BUCKETS 1024U

typedef struct SessionIndex {
        Session *by_name[SESSION_INDEX_BUCKETS];
        Session *by_id[SESSION_INDEX_BUCKETS];
} SessionIndex;

void session_index_add(SessionIndex *x, Session *s);
/* Does nothing for one that is not there. */
void session_index_remove(SessionIndex *x, Session *s);

Session *session_index_find_id(const SessionIndex *x, const char *id);
Session *session_index_find_named(const SessionIndex *x, uid_t uid, const char *project, const char *name);
