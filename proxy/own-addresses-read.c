/* SPDX-License-Identifier: MIT */

/* The part of own-addresses.h that asks the kernel. */

#include <errno.h>
#include <ifaddrs.h>

#include "proxy/own-addresses.h"

/* The last one is a union of the other end and the broadcast address, and the C library tells which only by flags that
 * do not cover an address with a peer on an interface that has broadcasts. Either is refused rightly. */
static int add_all(OwnAddresses *o, const struct ifaddrs *list) {
        int r = 0;

        for (const struct ifaddrs *i = list; r >= 0 && i; i = i->ifa_next)
                r = own_addresses_add(o, i->ifa_addr, i->ifa_netmask, i->ifa_dstaddr);
        return r;
}

int own_addresses_read(OwnAddresses *o) {
        _cleanup_(own_addresses_done) OwnAddresses read = {};
        struct ifaddrs *list;
        int r;

        if (getifaddrs(&list) < 0)
                return -errno;
        r = add_all(&read, list);
        freeifaddrs(list);
        if (r < 0)
                return r;

        own_addresses_done(o);
        *o = read;
        read = (OwnAddresses) {};
        return 0;
}
