/* SPDX-License-Identifier: MIT */

/* A list of prefixes, gone through from its start: a host has few, and one with many does not connect often enough for
 * it to matter. Pure; own-addresses-read.c fills it. */

#include "proxy/own-addresses.h"

#include <netinet/in.h>

/* They are whole structures of their family, as getifaddrs(3) gives them. */
static int read_sockaddr(const struct sockaddr *sa, NetworkAddress *ret) {
        if (!sa)
                return -EINVAL;
        return network_address_from_sockaddr(sa, sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
                                     sizeof(struct sockaddr_in), ret);
}

/* Without a mask, or with one that is so wide that it is no network, it is the address alone. */
static unsigned network_bits(const NetworkAddress *a, const struct sockaddr *sa) {
        unsigned n = 0, all = address_bits(a->family),
                 least = a->family == AF_INET ? OWN_NETWORK_BITS_MIN_V4 : OWN_NETWORK_BITS_MIN_V6;
        NetworkAddress mask;

        if (read_sockaddr(sa, &mask) < 0 || mask.family != a->family)
                return all;
        while (n < all && mask.bytes[n / 8] & (0x80 >> n % 8))
                n++;
        return n < least ? all : n;
}

static int add(OwnAddresses *o, const NetworkAddress *prefix, unsigned bits, AddressClass class) {
        OwnAddress *items;

        for (size_t i = 0; i < o->n; i++)
                if (o->items[i].bits == bits && o->items[i].class == class &&
                    address_has_prefix(prefix, &o->items[i].prefix, bits))
                        return 0;
        if (o->n >= OWN_ADDRESSES_MAX)
                return -E2BIG;

        items = realloc(o->items, (o->n + 1) * sizeof(*items));
        if (!items)
                return -ENOMEM;
        o->items = items;
        o->items[o->n++] = (OwnAddress) { *prefix, bits, class };
        return 0;
}

int own_addresses_add(OwnAddresses *o, const struct sockaddr *address, const struct sockaddr *mask,
                      const struct sockaddr *peer) {
        NetworkAddress a, p;
        unsigned bits;
        int r;

        if (read_sockaddr(address, &a) < 0)
                return 0;
        r = add(o, &a, address_bits(a.family), ADDRESS_OWN);
        bits = network_bits(&a, mask);
        if (r >= 0 && bits < address_bits(a.family))
                r = add(o, &a, bits, ADDRESS_ATTACHED);
        /* Of a point-to-point interface the mask is that of the other end's network. */
        if (r >= 0 && read_sockaddr(peer, &p) >= 0)
                r = add(o, &p, network_bits(&p, mask), ADDRESS_ATTACHED);
        return r;
}

static AddressClass find(const OwnAddresses *o, const NetworkAddress *a) {
        AddressClass found = ADDRESS_PUBLIC;

        for (size_t i = 0; i < o->n; i++)
                if (address_has_prefix(a, &o->items[i].prefix, o->items[i].bits)) {
                        if (o->items[i].class == ADDRESS_OWN)
                                return ADDRESS_OWN;
                        found = o->items[i].class;
                }
        return found;
}

/* Own before attached, and with IPv6 also what the address inside is. */
static AddressClass find_through(const OwnAddresses *o, const NetworkAddress *a) {
        AddressClass found = find(o, a), found_inside;
        NetworkAddress inside;

        if (found == ADDRESS_OWN || !address_inside(a, &inside))
                return found;
        found_inside = find(o, &inside);
        return found_inside == ADDRESS_PUBLIC ? found : found_inside;
}

bool own_addresses_contains(const OwnAddresses *o, const NetworkAddress *a) {
        return find_through(o, a) != ADDRESS_PUBLIC;
}

/* "A private network" says more than "a network that the host is in", but less than "the host itself"; that loopback
 * is the host itself everyone knows. */
AddressClass address_judge(const OwnAddresses *o, const NetworkAddress *a) {
        AddressClass by_range = address_classify(a), by_host = find_through(o, a);

        if (by_range == ADDRESS_PUBLIC || (by_host == ADDRESS_OWN && by_range != ADDRESS_LOOPBACK))
                return by_host;
        return by_range;
}

void own_addresses_done(OwnAddresses *o) {
        free(o->items);
        *o = (OwnAddresses) {};
}
