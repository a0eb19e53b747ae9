/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lists of network rules that the configuration gives names to, for allow lists of environments to use as @NAME. A
 * set has rules, no other sets. Pure.
 */

#include "lib/network-rule.h"

#define NETWORK_SETS_MAX 64U

typedef struct NetworkSet {
        char *name;
        NetworkList rules;
} NetworkSet;

typedef struct NetworkSets {
        NetworkSet *sets;       /* in the order of the file */
        size_t n_sets;
} NetworkSets;

/*
 * With what an allow list is read. A user's lists are read by a daemon that serves others, too, and reading a rule
 * takes time by its length: about 1 µs a byte at worst.
 */
typedef struct NetworkSource {
        const NetworkSets *sets;
        size_t left;            /* so many bytes of rules, or rules of sets, are read still */
} NetworkSource;

#define NETWORK_SOURCE_UNBOUNDED(s) { .sets = (s), .left = SIZE_MAX }
#define NETWORK_SOURCE_USER_MAX (64 * KIB)

/* Takes the rules over, on success. The name is valid and new. -E2BIG: there are NETWORK_SETS_MAX; -ENOMEM. */
int network_sets_add(NetworkSets *s, const char *name, NetworkList *rules);

/*
 * Adds a rule, or those of the set if the text is @NAME. -EINVAL if it is neither, -E2BIG if the list has no room or
 * the source nothing left: then *reterr_why is an allocated sentence. -ENOMEM: it is NULL.
 */
int network_source_add(NetworkSource *source, const char *text, size_t size, NetworkList *l, char **reterr_why);

void network_sets_done(NetworkSets *s);
