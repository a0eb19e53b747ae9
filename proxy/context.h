/* SPDX-License-Identifier: MIT */
#pragma once

/* What all sessions of the process have in common: the event loop, the resolver, the addresses of the host. */

#include <systemd/sd-event.h>

#include "proxy/own-addresses.h"
#include "proxy/resolver.h"

/* The host's addresses may be so old when they are judged by. */
#define CONTEXT_OWN_USEC (2 * USEC_PER_SEC)

typedef struct Context {
        sd_event *event;
        Resolver *resolver;     /* NULL: no name can be looked up */
        uid_t uid;              /* whoever connects is this user */
        OwnAddresses own;
        bool is_read;
        uint64_t read_at;
} Context;

/* Takes neither. */
void context_init(Context *c, sd_event *event, Resolver *resolver);

/* address_judge() with addresses that are fresh. Negative errno: they cannot be had, so whatever it is may be ours. */
int context_judge(Context *c, const NetworkAddress *a, AddressClass *ret);

void context_done(Context *c);
