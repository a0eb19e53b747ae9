/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The session's way to the network, as pid 1 has it: the jail has a loopback and nothing else; on that the agent
 * listens for connections, which a process of its own, the relay (relay.h), hands to the proxy outside. Without the
 * proxy's descriptor there is none of all this.
 */

#include <sys/types.h>

#include "agent/relay.h"

typedef struct Network {
        int proxy_fd;                           /* -EBADF: none */
        int listeners[RELAY_LISTENERS_MAX];
        pid_t relay;                            /* 0: does not run */
        uint64_t started_at, start_at;          /* USEC_INFINITY: not again */
        uint64_t pause;
} Network;

/* Takes the descriptor over, listens, and tells the interpreters that are to come by their environment. The relay
 * starts later, on time. */
int network_init(Network *n, int proxy_fd);
uint64_t network_deadline(const Network *n);
void network_on_deadline(Network *n);
void network_on_death(Network *n, pid_t pid);

/* Pure: how long to wait after a relay that has lived so long; pause is what was waited before it. */
uint64_t network_next_pause(uint64_t lived, uint64_t pause);
