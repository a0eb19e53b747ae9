/* SPDX-License-Identifier: MIT */
#pragma once

/* Which characters HTTP has where: besides those of lib/http-field.h. */

#include "lib/http-field.h"

/* What a host may have of bytes at most: a DNS name in text form is 253, 254 with the dot at its end. */
#define HOST_TEXT_MAX 255U

/* Whether it is made of what names and IPv4 addresses are made of: letters, digits, '-', '.', '_'; not empty, also
 * without the dot at its end; at most HOST_TEXT_MAX bytes. Neither percent signs nor UTF-8: who speaks to a proxy
 * sends the ASCII form of a name. Whether it is a good name, lib/network-host says. */
bool slice_is_host_name(Slice a);
