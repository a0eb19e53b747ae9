/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a session was refused and the daemon has not been told yet. Code that asks again and again makes a number
 * grow, and not a message each time; code that asks for ever new hosts is told of up to PROXY_REFUSALS_KEPT at a time.
 * Pure; times are µs of CLOCK_MONOTONIC. Zero-initialise; memory is taken with the first refusal.
 */

#include "lib/network-policy.h"
#include "lib/proxy-protocol.h"

/* The text of a host, or of what is none, quoted and cut. */
#define REFUSAL_HOST_SIZE 272U
#define REFUSAL_ADDRESS_SIZE 64U

typedef struct Refusal {
        char host[REFUSAL_HOST_SIZE];
        char address[REFUSAL_ADDRESS_SIZE]; /* "": the host itself was the reason */
        uint16_t port;
        NetworkVerdict verdict;
        uint64_t count;         /* since it was last told */
        uint64_t told;          /* when; 0: never */
} Refusal;

typedef struct Refusals {
        Refusal *items;         /* PROXY_REFUSALS_KEPT; in no order */
        size_t n;
        uint64_t told[PROXY_REFUSALS_PER_SECOND]; /* the last times, in a ring */
        uint64_t n_told;
} Refusals;

/* Texts that are too long are cut. One for which there is no place is not kept. address: NULL or "" is none.
 * -ENOMEM. */
int refusals_add(Refusals *r, const char *host, uint16_t port, const char *address, NetworkVerdict verdict);

/*
 * One that is to be told now, which then counts as told; false: there is none, and *ret_next is when to ask again,
 * USEC_INFINITY if there is nothing to tell. One and the same is told once a second at most.
 */
bool refusals_next(Refusals *r, uint64_t now, Refusal *ret, uint64_t *ret_next);

void refusals_done(Refusals *r);
