/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names to addresses, without waiting: c-ares on an event loop. It asks the servers of /etc/resolv.conf, and looks
 * into /etc/hosts first; where resolv.conf has changed since, what is asked from then on goes to the new servers.
 * Names are looked up as they are, never with a search domain: a host's rule is about one name.
 */

#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "lib/macro.h"

/* More are dropped: whoever has connected to none of so many will not to the next. */
#define RESOLVER_ADDRESSES_MAX 16U

typedef struct Resolver Resolver;
typedef struct ResolverQuery ResolverQuery;

typedef struct ResolverAddresses {
        struct sockaddr_storage list[RESOLVER_ADDRESSES_MAX]; /* AF_INET and AF_INET6 by turns, with the port */
        size_t n;
} ResolverAddresses;

/*
 * Called once, never from inside resolver_lookup(), and not after resolver_cancel(); the query is freed when it
 * returns. error: 0, with one address at least; -ENOENT: there is no such name, or it has no address; -ETIMEDOUT;
 * -EIO: no server gave an answer that is one; -ENOMEM.
 */
typedef void (*ResolverDone)(ResolverQuery *q, int error, const ResolverAddresses *addresses, void *userdata);

/* servers: "ADDRESS[:PORT],…", or NULL for those of /etc/resolv.conf. Negative errno. */
int resolver_new(sd_event *event, const char *servers, Resolver **ret);
/* Ends what is asked, without on_done. Not from inside an on_done. */
Resolver *resolver_free(Resolver *r);
DEFINE_TRIVIAL_CLEANUP_FUNC(Resolver *, resolver_free);

/* It ends by itself after about 15 s at the latest. */
int resolver_lookup(Resolver *r, const char *name, uint16_t port, ResolverDone on_done, void *userdata,
                    ResolverQuery **ret);
/* The answer is of no interest any more. */
void resolver_cancel(ResolverQuery *q);
