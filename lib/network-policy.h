/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whether a session may reach a host. Pure; who asks makes the connection, or does not.
 *
 * Three lists have a say. The environment's is what its author or the administrator thinks code in it needs.
 * The caller who starts a session may narrow that by a list of its own, never widen it: both must allow.
 * Exceptions of either refuse. What an administrator granted to this one session is above both: whatever it
 * lists is allowed and its exceptions refuse; about the rest the others decide.
 */

#include "network-rule.h"

typedef struct NetworkPolicy {
        NetworkList environment;
        bool narrowed;          /* else caller does not count, exceptions included */
        NetworkList caller;     /* empty allows nothing */
        NetworkList granted;
} NetworkPolicy;

typedef enum NetworkVerdict {
        NETWORK_ALLOWED,
        NETWORK_REFUSED_NOT_LISTED,     /* by the environment, or a grant */
        NETWORK_REFUSED_NARROWED,       /* the environment would allow it, but the caller's list does not */
        NETWORK_REFUSED_EXCEPTION,
        NETWORK_REFUSED_SPECIAL_ADDRESS, /* an allowed name led to an address that is not of the public network */
        _NETWORK_VERDICT_MAX,
        _NETWORK_VERDICT_INVALID = -EINVAL,
} NetworkVerdict;

/* A word, such as "not-listed". */
const char *network_verdict_to_string(NetworkVerdict v);
NetworkVerdict network_verdict_from_string(const char *word);

NetworkVerdict network_policy_decide(const NetworkPolicy *p, const NetworkHost *host, uint16_t port);

/*
 * Whether a connection for host may be made to address, the one that host stands for just now; to be asked
 * about each. It includes network_policy_decide() of host. An exception for the address itself refuses, but
 * where a grant lists the address. A special address (private, loopback, ...; the caller knows) must be allowed
 * as if it had been asked for by its number, for whoever owns a listed name can point it anywhere. If host is
 * an address, it is that one or refused.
 */
NetworkVerdict network_policy_decide_address(const NetworkPolicy *p, const NetworkHost *host,
                                             const NetworkAddress *address, uint16_t port, bool special);

void network_policy_done(NetworkPolicy *p);
