/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a session's network was used for. The proxy counts, and tells the daemon, which does not trust it: it runs as
 * the user. Pure.
 *
 *     {"connections_open": 2, "connections": 17, "refused": 1, "failed": 0, "bytes_in": 5120, "bytes_out": 880}
 */

#include "json.h"

/* Sums stop here: whoever reads them further on (varlink) has signed numbers. */
#define NETWORK_USAGE_MAX ((uint64_t) INT64_MAX)

typedef struct NetworkUsage {
        uint64_t connections_open;      /* now */
        uint64_t connections;           /* in all, also those that failed, not those that were refused */
        uint64_t refused;               /* because of the allow-list, the address, or a bound */
        uint64_t failed;                /* allowed, but the other side was not reached */
        uint64_t bytes_in;              /* to the session */
        uint64_t bytes_out;             /* from it */
} NetworkUsage;

/* a + b, and not more than NETWORK_USAGE_MAX. */
uint64_t network_usage_add(uint64_t a, uint64_t b);

/* Bytes of both directions. */
uint64_t network_usage_bytes(const NetworkUsage *u);

/* A new object with all members. -ENOMEM. */
int network_usage_to_json(const NetworkUsage *u, json_object **ret);

/*
 * -EINVAL, and *ret is unchanged, unless all members are there, no others, and they can be true: none over
 * NETWORK_USAGE_MAX, no more connections open than were made nor than a session may have, no more failed than made.
 */
int network_usage_from_json(json_object *o, NetworkUsage *ret);
