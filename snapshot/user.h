/* SPDX-License-Identifier: MIT */
#pragma once

/* All snapshots of one user: what there is, and removing what has to go. */

#include "snapshot/keep.h"

typedef struct UserSnapshots {
        DirectoryName *keys;
        size_t n_keys;
        Kept *kept;             /* one run for each key, in their order */
        size_t n;
} UserSnapshots;

/* With added, it is counted as the newest one of the key that has this name, and its member key is set. */
int user_scan(int user, const char *key, Kept *added, UserSnapshots *ret);
void user_snapshots_done(UserSnapshots *u);

/* keep_mark_key() for one of the keys. */
void user_mark_key(UserSnapshots *u, size_t key, const KeepRules *rules, bool spare_newest);

/* Removes what is marked; the user directory's lock is held. Goes on after an error and returns the last one. */
int user_remove_marked(int user, const UserSnapshots *u, uint64_t *ret_removed);

bool user_name_is_valid(const char *name);
