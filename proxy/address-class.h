/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which addresses are special: not of a host somewhere in the internet, but of this machine, its networks, the
 * cloud that it is in, or of nobody. A name that a session may reach can be made to resolve to any address (DNS
 * rebinding), so the address that would be connected to is judged, and refused when it is special, unless the
 * allow-list has the address itself. What the host's own addresses are is in own-addresses.h. Pure.
 */

#include "lib/network-host.h"

typedef enum AddressClass {
        ADDRESS_PUBLIC,
        ADDRESS_UNSPECIFIED,
        ADDRESS_LOOPBACK,
        ADDRESS_LINK_LOCAL,
        ADDRESS_PRIVATE,
        ADDRESS_SHARED,
        ADDRESS_METADATA,
        ADDRESS_TRANSLATED,
        ADDRESS_DOCUMENTATION,
        ADDRESS_MULTICAST,
        ADDRESS_RESERVED,
        ADDRESS_OWN,            /* these two are found by address_judge() of own-addresses.h only */
        ADDRESS_ATTACHED,
        _ADDRESS_CLASS_MAX,
        _ADDRESS_CLASS_INVALID = -EINVAL,
} AddressClass;

/* How it goes on after "ADDRESS is ": "a loopback address". */
const char *address_class_to_string(AddressClass c);

/* How many bits an address of a family has: 32 or 128. */
unsigned address_bits(int family);

/* Whether both are of the same family and begin with the same bits. */
bool address_has_prefix(const NetworkAddress *a, const NetworkAddress *prefix, unsigned bits);

/*
 * The IPv4 address that packets to an IPv6 address end at, where the address tells: IPv4-mapped and -compatible,
 * 6to4, NAT64 with the well-known prefix. False: there is none.
 */
bool address_inside(const NetworkAddress *a, NetworkAddress *ret);

/*
 * ADDRESS_PUBLIC or why it is special, by its range alone. Where there is an address inside that is special, it is
 * of the class of that one. An address of no known family is ADDRESS_RESERVED.
 */
AddressClass address_classify(const NetworkAddress *a);
