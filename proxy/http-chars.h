/* SPDX-License-Identifier: MIT */
#pragma once

/* Which characters HTTP has where: see lib/slice.h for the slices. */

#include "lib/slice.h"

/* What a host may have of bytes at most: a DNS name in text form is 253, 254 with the dot at its end. */
#define HOST_TEXT_MAX 255U

/* tchar of RFC 9110, section 5.6.2. */
bool char_is_token(char c);
bool slice_is_token(Slice a);

/* What may be in a field's value (RFC 9110, section 5.5): no control character but the tab. */
bool char_is_field(char c);

/* Whether it is made of what names and IPv4 addresses are made of: letters, digits, '-', '.', '_'; not empty, also
 * without the dot at its end; at most HOST_TEXT_MAX bytes. Neither percent signs nor UTF-8: who speaks to a proxy
 * sends the ASCII form of a name. Whether it is a good name, lib/network-host says. */
bool slice_is_host_name(Slice a);
