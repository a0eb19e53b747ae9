/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The host's own addresses, and the networks that its interfaces are in. Services that trust their neighbours listen
 * there, also where the range is a public one: so these are refused whatever address-class.h says of them, unless
 * they are listed themselves. The list is the caller's to read again; addresses come and go.
 */

#include "proxy/address-class.h"

/* Of one host. One with more is not judged wrongly, but not at all: it cannot be read. */
#define OWN_ADDRESSES_MAX 4096U

/* An interface that calls more than this its network (VPNs with /0 or /1) is a way out, not a network. */
#define OWN_NETWORK_BITS_MIN_V4 8U
#define OWN_NETWORK_BITS_MIN_V6 16U

typedef struct OwnAddress {
        NetworkAddress prefix;
        unsigned bits;
        AddressClass class;     /* ADDRESS_OWN or ADDRESS_ATTACHED */
} OwnAddress;

/* Zero-initialise. */
typedef struct OwnAddresses {
        OwnAddress *items;
        size_t n;
} OwnAddresses;

/* Asks the kernel (which takes a netlink socket). On error the list stays as it was: -E2BIG, -ENOMEM, or what the
 * kernel says. */
int own_addresses_read(OwnAddresses *o);

/* What one interface has: its address, and, if known, the mask of its network and who is at the other end (or the
 * network's broadcast address). What is of another family than the internet's is passed over. -E2BIG; -ENOMEM. */
int own_addresses_add(OwnAddresses *o, const struct sockaddr *address, const struct sockaddr *mask,
                      const struct sockaddr *peer);

/* Whether an address, or the one inside it (address_inside()), is of the host or of one of its networks. */
bool own_addresses_contains(const OwnAddresses *o, const NetworkAddress *a);

/* The judgement of an address: ADDRESS_PUBLIC, or the reason that says most for why it is refused. */
AddressClass address_judge(const OwnAddresses *o, const NetworkAddress *a);

void own_addresses_done(OwnAddresses *o);
