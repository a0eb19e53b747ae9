/* SPDX-License-Identifier: MIT */
#pragma once

/* What a session was refused and no turn has told yet, and the sentences of it. Pure. Zero-initialise. */

#include "daemon/proxy-report.h"
#include "lib/buffer.h"

#define NETWORK_REFUSALS_TOLD_MAX 8U /* different ones in one notice */

typedef struct NetworkRefusal {
        char *where; /* "registry.example:443" */
        char *address; /* as in ProxyRefusal */
        NetworkVerdict verdict;
        uint64_t count;
} NetworkRefusal;

typedef struct NetworkRefusals {
        NetworkRefusal items[NETWORK_REFUSALS_TOLD_MAX];
        size_t n;
        bool more; /* there were others */
} NetworkRefusals;

/* -ENOMEM. */
int network_refusals_add(NetworkRefusals *r, const ProxyRefusal *refusal);

/* Appends a line for each, none to begin with, and forgets them. -ENOMEM: some of them are told. */
int network_refusals_tell(NetworkRefusals *r, const char *environment, Buffer *ret);

void network_refusals_done(NetworkRefusals *r);
