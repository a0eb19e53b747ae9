/* SPDX-License-Identifier: MIT */

/* Decisions about the network: see the header for who has what say. */

#include "network-policy.h"

static const char *const verdict_table[_NETWORK_VERDICT_MAX] = {
        [NETWORK_ALLOWED] = "allowed",
        [NETWORK_REFUSED_NOT_LISTED] = "not-listed",
        [NETWORK_REFUSED_NARROWED] = "narrowed",
        [NETWORK_REFUSED_EXCEPTION] = "exception",
        [NETWORK_REFUSED_SPECIAL_ADDRESS] = "special-address",
};

const char *network_verdict_to_string(NetworkVerdict v) {
        assert(v >= 0 && v < _NETWORK_VERDICT_MAX);

        return verdict_table[v];
}

NetworkVerdict network_verdict_from_string(const char *word) {
        for (NetworkVerdict v = 0; v < _NETWORK_VERDICT_MAX; v++)
                if (streq(verdict_table[v], word))
                        return v;

        return _NETWORK_VERDICT_INVALID;
}

NetworkVerdict network_policy_decide(const NetworkPolicy *p, const NetworkHost *host, uint16_t port) {
        NetworkMatch granted, environment, caller;

        granted = network_list_match(&p->granted, host, port);
        if (granted == NETWORK_MATCH_EXCEPTION)
                return NETWORK_REFUSED_EXCEPTION;
        if (granted == NETWORK_MATCH_ALLOW)
                return NETWORK_ALLOWED;

        environment = network_list_match(&p->environment, host, port);
        caller = p->narrowed ? network_list_match(&p->caller, host, port) : environment;

        /* Before anything is not listed: an address is asked about that only exceptions know. */
        if (environment == NETWORK_MATCH_EXCEPTION || caller == NETWORK_MATCH_EXCEPTION)
                return NETWORK_REFUSED_EXCEPTION;
        if (environment == NETWORK_MATCH_NONE)
                return NETWORK_REFUSED_NOT_LISTED;
        return caller == NETWORK_MATCH_NONE ? NETWORK_REFUSED_NARROWED : NETWORK_ALLOWED;
}

NetworkVerdict network_policy_decide_address(const NetworkPolicy *p, const NetworkHost *host,
                                             const NetworkAddress *address, uint16_t port, bool special) {
        NetworkHost number = network_host_of_address(address);
        NetworkVerdict v;

        v = network_policy_decide(p, host, port);
        if (v != NETWORK_ALLOWED)
                return v;
        if (host->is_address)
                return network_host_equal(host, &number) ? NETWORK_ALLOWED : NETWORK_REFUSED_NOT_LISTED;

        /* A public address need not be listed. ("v == A || v == B" with the same end is wrong code of gcc 14.2.) */
        v = network_policy_decide(p, &number, port);
        if (v == NETWORK_REFUSED_EXCEPTION)
                return v;
        return special && v != NETWORK_ALLOWED ? NETWORK_REFUSED_SPECIAL_ADDRESS : NETWORK_ALLOWED;
}

void network_policy_done(NetworkPolicy *p) {
        network_list_done(&p->environment);
        network_list_done(&p->caller);
        network_list_done(&p->granted);
}
