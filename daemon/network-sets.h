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

void network_sets_done(NetworkSets *s);
