/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who may see and act on a session. Pure: decided from the kernel's credentials of the peer, nothing else.
 * A session that the peer may not see is answered exactly like one that does not exist.
 */

#include <sys/types.h>

#include "lib/macro.h"

static inline bool policy_may_use_session(uid_t peer, uid_t owner) {
        return peer == owner || peer == 0;
}

/* Everything of everyone: `list -a`, events of all users. */
static inline bool policy_may_see_all(uid_t peer) {
        return peer == 0;
}
