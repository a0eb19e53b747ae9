/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What one uid uses of the daemon (row R5): charged when a session is made, released when it is gone, in the
 * session's destructor, so that no path can forget it.
 */

#include <sys/types.h>

#include "lib/macro.h"

typedef struct User {
        struct User *next;
        uid_t uid;
        unsigned n_sessions;
        uint64_t memory_mb; /* sum of its sessions' limits */
} User;

User *user_charge(User **users, uid_t uid, uint64_t memory_mb);
/* Frees the user with its last session. */
void user_release(User **users, User *u, uint64_t memory_mb);
/* A session of his has another limit now. */
void user_recharge(User *u, uint64_t old_memory_mb, uint64_t memory_mb);
const User *user_find(const User *users, uid_t uid);
