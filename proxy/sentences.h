/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a client is told when it gets no connection: one plain sentence or two, for a person or a model that has only
 * seen a program fail. Allocated; NULL when memory is short. Pure.
 */

#include "lib/network-policy.h"
#include "proxy/address-class.h"
#include "proxy/meter.h"

/* where: "HOST:PORT". address and class are for NETWORK_REFUSED_SPECIAL_ADDRESS, and for an exception that the address
 * is; else NULL. class: _ADDRESS_CLASS_INVALID if that could not be found out. */
char *sentence_refused(NetworkVerdict verdict, const char *where, const char *address, AddressClass class);

char *sentence_bound(MeterVerdict verdict, const char *where);
/* Of CONNECT and SOCKS to where a credential is for. */
char *sentence_secret(const char *where);
char *sentence_unresolved(const char *where, int error);
char *sentence_unreachable(const char *where, int error);
