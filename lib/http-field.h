/* SPDX-License-Identifier: MIT */
#pragma once

/* Which characters HTTP's header fields have, and which fields a proxy may be told to add. Pure. */

#include "slice.h"

/* tchar of RFC 9110, section 5.6.2. */
bool char_is_token(char c);
bool slice_is_token(Slice a);

/* What may be in a field's value (RFC 9110, section 5.5): no control character but the tab. */
bool char_is_field(char c);

/* Whether it is a field's name, and none of those that say how a message is read, which the proxy writes itself. */
bool http_field_may_be_added(const char *name);
