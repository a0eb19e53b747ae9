/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line, which sandboxd makes. */

#include <sys/types.h>

#include "lib/macro.h"

#define KEY_LENGTH 32U /* hex digits */

typedef enum Verb {
        VERB_SAVE,
        VERB_LOAD,
        VERB_LIST,
        VERB_CLOSE,
        VERB_PRUNE,
        _VERB_MAX,
} Verb;

/* Strings are argv's. */
typedef struct Options {
        Verb verb;
        const char *root;
        uid_t uid;                      /* of whom the snapshots are; not with prune */
        const char *key;                /* NULL with prune and --all-keys */
        uint64_t max_bytes;             /* of one snapshot; save only */
        uint64_t user_max_bytes;        /* of all of a user's; save only */
        uint64_t keep;                  /* save and prune */
        uint64_t expire_usec;           /* not with close */
        const char *id;                 /* load; NULL: the newest good one */
        bool automatic;                 /* load: not when the session was closed */
        bool all_keys;                  /* list */
} Options;

/* -EINVAL with a sentence about what is wrong; allocated. -ENOMEM. */
int options_parse(int argc, char **argv, Options *ret, char **reterr_why);

bool key_is_valid(const char *key);
