/* SPDX-License-Identifier: MIT */
#pragma once

/* Which snapshots of a user have to go. Pure. */

#include "snapshot/directory.h"

typedef struct Kept {
        SnapshotId id;
        size_t key;             /* which of the user's keys */
        uint64_t time_usec;     /* what the manifest says, or, where it cannot, the name */
        uint64_t bytes;
        bool good;              /* as far as can be seen without reading all; also one of a later nix-sandbox */
        bool remove;
} Kept;

typedef struct KeepRules {
        uint64_t keep;
        uint64_t expire_usec;
        uint64_t now_usec;
} KeepRules;

/* Expired is what is not restored any more, whether or not somebody has removed it yet. */
bool keep_is_expired(uint64_t time_usec, uint64_t expire_usec, uint64_t now_usec);

/* Marks what is surplus or expired among the n snapshots of one key, which ascend. Of the good ones so many are
 * kept; what is damaged goes when it is older than those. The newest good one stays with spare_newest, whatever its
 * age. */
void keep_mark_key(Kept *kept, size_t n, const KeepRules *rules, bool spare_newest);

/* Marks more of them, the oldest of all first, until the rest holds no more than max bytes, but never the newest good
 * one of a key. All keys, each in one run of the array and ascending. False when that is not enough. */
bool keep_mark_total(Kept *kept, size_t n, uint64_t max);
