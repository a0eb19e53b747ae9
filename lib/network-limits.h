/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a session's network may be used for: read by the daemon from its configuration, and told by it to the proxy
 * in the same words. Pure.
 *
 *     {"connections": 64, "rate_mbps": 0, "transfer_mb": 0, "idle_seconds": 60, "total_seconds": 3600}
 */

#include "json.h"

typedef struct NetworkLimits {
        uint64_t connections;           /* at once */
        uint64_t bytes_per_second;      /* of both directions; these two: UINT64_MAX is no bound (0 in JSON) */
        uint64_t bytes;                 /* of the session's life, both directions */
        uint64_t idle_usec;             /* of a connection through which nothing goes */
        uint64_t total_usec;            /* of a connection */
} NetworkLimits;

extern const NetworkLimits network_limits_default;

/* In the units of the configuration, as other bounds there: MiB, MiB/s, seconds; the latter two may have a fraction. A
 * double holds all numbers up to these, also in bytes and µs. */
#define NETWORK_CONNECTIONS_MAX 1024U
#define NETWORK_RATE_MBPS_MIN 0.001
#define NETWORK_RATE_MBPS_MAX (UINT64_C(1) << 20)
#define NETWORK_TRANSFER_MB_MAX (UINT64_C(1) << 24)
#define NETWORK_IDLE_SECONDS_MIN 1
#define NETWORK_SECONDS_MAX 31536000

/*
 * What a member does not say, or says null, is as it was in *ret. -EINVAL: *reterr_why is an allocated sentence that
 * names the member and what would be right, or NULL when memory is short; *ret is unchanged.
 */
int network_limits_from_json(json_object *o, NetworkLimits *ret, char **reterr_why);

/* A new object with all members, from which network_limits_from_json() makes the same. -ENOMEM. */
int network_limits_to_json(const NetworkLimits *l, json_object **ret);
