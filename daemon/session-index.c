/* SPDX-License-Identifier: MIT */

/*
 * Two tables of chains. Their size is fixed: with the most sessions that a machine has, chains are short, and
 * names that a user chooses to collide are at most as many as he may have sessions.
 */

#include "daemon/session-index.h"

/* FNV-1a, over the terminating NUL too, so that ("a", "bc") is not ("ab", "c"). */
static uint64_t hash_text(uint64_t h, const char *s) {
        do
                h = (h ^ (unsigned char) *s) * UINT64_C(0x100000001b3);
        while (*s++);
        return h;
}

static size_t bucket_of_id(const char *id) {
        return hash_text(UINT64_C(0xcbf29ce484222325), id) % SESSION_INDEX_BUCKETS;
}

static size_t bucket_of_name(uid_t uid, const char *project, const char *name) {
        return hash_text(hash_text(UINT64_C(0xcbf29ce484222325) ^ uid, project), name) % SESSION_INDEX_BUCKETS;
}

static size_t session_name_bucket(const Session *s) {
        return bucket_of_name(s->user->uid, s->project, s->name);
}

void session_index_add(SessionIndex *x, Session *s) {
        Session **by_id = &x->by_id[bucket_of_id(s->id)];

        s->next_by_id = *by_id;
        *by_id = s;

        if (s->name) {
                Session **by_name = &x->by_name[session_name_bucket(s)];

                s->next_by_name = *by_name;
                *by_name = s;
        }
}

void session_index_remove(SessionIndex *x, Session *s) {
        for (Session **p = &x->by_id[bucket_of_id(s->id)]; *p; p = &(*p)->next_by_id)
                if (*p == s) {
                        *p = TAKE_PTR(s->next_by_id);
                        break;
                }

        if (!s->name)
                return;
        for (Session **p = &x->by_name[session_name_bucket(s)]; *p; p = &(*p)->next_by_name)
                if (*p == s) {
                        *p = TAKE_PTR(s->next_by_name);
                        break;
                }
}

Session *session_index_find_id(const SessionIndex *x, const char *id) {
        for (Session *s = x->by_id[bucket_of_id(id)]; s; s = s->next_by_id)
                if (streq(s->id, id))
                        return s;
        return NULL;
}

Session *session_index_find_named(const SessionIndex *x, uid_t uid, const char *project, const char *name) {
        for (Session *s = x->by_name[bucket_of_name(uid, project, name)]; s; s = s->next_by_name)
                if (s->user->uid == uid && streq(s->name, name) && streq(s->project, project))
                        return s;
        return NULL;
}
