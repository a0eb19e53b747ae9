/* SPDX-License-Identifier: MIT */

/* A short list: there are as many entries as users with living sessions. */

#include "daemon/user.h"

const User *user_find(const User *users, uid_t uid) {
        for (const User *u = users; u; u = u->next)
                if (u->uid == uid)
                        return u;
        return NULL;
}

static User *user_new(User **users, uid_t uid) {
        User *u;

        u = calloc(1, sizeof(*u));
        if (!u)
                return NULL;

        u->uid = uid;
        u->next = *users;
        *users = u;
        return u;
}

User *user_charge(User **users, uid_t uid, uint64_t memory_mb) {
        User *u = (User *) user_find(*users, uid) ?: user_new(users, uid);

        if (!u)
                return NULL;
        u->n_sessions++;
        u->memory_mb += memory_mb;
        return u;
}

void user_recharge(User *u, uint64_t old_memory_mb, uint64_t memory_mb) {
        assert(u->memory_mb >= old_memory_mb);

        u->memory_mb = u->memory_mb - old_memory_mb + memory_mb;
}

void user_release(User **users, User *u, uint64_t memory_mb) {
        assert(u->n_sessions > 0);
        assert(u->memory_mb >= memory_mb);

        u->n_sessions--;
        u->memory_mb -= memory_mb;
        if (u->n_sessions > 0)
                return;

        for (User **p = users; *p; p = &(*p)->next)
                if (*p == u) {
                        *p = u->next;
                        break;
                }
        free(u);
}
