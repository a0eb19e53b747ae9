/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A host of the network, as configuration or a hostile jail writes it, in the one form that it is compared in.
 * Pure; values, nothing to free.
 *
 * Names are what UTS #46 (non-transitional) with the checks of IDNA2008 (RFC 5891) makes of them: ASCII, lower
 * case, non-ASCII labels as xn--, full-width and ideographic dots as dots, what UTS #46 ignores (soft hyphens)
 * left out. xn-- labels are held to the same: one that no name would become is refused. So are emoji, which
 * IDNA2008 has not. One dot at the end is dropped. Labels have 1 to 63 letters, digits and hyphens, none at
 * either end (RFC 952, RFC 1123); hyphens in the third and fourth place are no fault without xn, since such
 * hosts are in use (r3---sn-x.googlevideo.com). ASCII labels may have underscores, too: no rule of host names,
 * but of the DNS (RFC 2181, 11), and URL parsers, resolvers and real hosts have them.
 *
 * A name whose last label URL parsers take for a number ("ends in a number" of the WHATWG URL standard: all
 * digits, or 0x and hex digits) is an IPv4 address, strictly written as four decimal numbers without leading
 * zeros, or nothing: what inet_aton(3) would make of 127.1 or 0177.0.0.1 is not to depend on who looks. IPv6
 * addresses are as inet_pton(3) reads them, with or without brackets, without zones. ::ffff:a.b.c.d reaches
 * a.b.c.d, so that is what it becomes.
 */

#include <netinet/in.h>
#include <sys/socket.h>

#include "macro.h"

#define NETWORK_NAME_MAX 253U           /* RFC 1035, 2.3.4, as text without the last dot */
#define NETWORK_LABEL_MAX 63U
#define NETWORK_HOST_SIZE (NETWORK_NAME_MAX + 1) /* for the text of any host; an address needs less */

/* Every character is at least one of an ASCII name, so only what is mostly left out is longer than this. */
#define NETWORK_HOST_INPUT_MAX 1024U

typedef struct NetworkAddress {
        int family;             /* AF_INET, AF_INET6; AF_UNSPEC is none */
        union {
                struct in_addr v4;
                struct in6_addr v6; /* never v4-mapped */
                uint8_t bytes[16];  /* in network order; of AF_INET four */
        };
} NetworkAddress;

typedef struct NetworkHost {
        bool is_address;
        NetworkAddress address;
        char name[NETWORK_HOST_SIZE]; /* "" for an address */
} NetworkHost;

/* -EINVAL if it is no host, -ENOMEM; then *ret is as it was. text may hold anything. */
int network_host_parse(const char *text, size_t size, NetworkHost *ret);

/* The canonical text, which parses to the same host; IPv6 in brackets. Returns ret. */
const char *network_host_format(const NetworkHost *h, char ret[static NETWORK_HOST_SIZE]);
const char *network_address_format(const NetworkAddress *a, char ret[static NETWORK_HOST_SIZE]);

bool network_host_equal(const NetworkHost *a, const NetworkHost *b);
bool network_address_equal(const NetworkAddress *a, const NetworkAddress *b);

/* Of what a socket or a resolver gave. The second is an IPv4 address where v6 is mapped. */
NetworkAddress network_address_v4(struct in_addr v4);
NetworkAddress network_address_v6(const struct in6_addr *v6);

/* -EINVAL: it is neither of AF_INET nor of AF_INET6, or too short for that. Scopes are not looked at. */
int network_address_from_sockaddr(const struct sockaddr *sa, size_t size, NetworkAddress *ret);
/* Returns the size of what was written. */
socklen_t network_address_to_sockaddr(const NetworkAddress *a, uint16_t port, struct sockaddr_storage *ret);

NetworkHost network_host_of_address(const NetworkAddress *a);
