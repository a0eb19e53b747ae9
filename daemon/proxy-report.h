/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a proxy says of a session (lib/proxy-protocol.h). It runs as the user, so every word may be anybody's: typed
 * and capped here. Pure.
 */

#include "lib/json.h"
#include "lib/network-policy.h"
#include "lib/network-usage.h"

/* What code in the session asked for and was refused. Borrowed from the report's JSON; printable. */
typedef struct ProxyRefusal {
        const char *host;       /* canonical, or a quoted text where it is no host */
        uint16_t port;
        const char *address;    /* what the name leads to, where that was the reason, else NULL */
        NetworkVerdict verdict; /* not NETWORK_ALLOWED */
        uint64_t count;         /* how often, since it was last told */
} ProxyRefusal;

/* -EINVAL or -EBADMSG: it is none. On success json_object_put() of *ret_json ends what is borrowed. */
int proxy_report_parse_refusal(const char *data, size_t size, ProxyRefusal *ret, json_object **ret_json);
int proxy_report_parse_usage(const char *data, size_t size, NetworkUsage *ret);
