/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who may see and act on a session. Pure. Everyone may do everything with sessions of his own and root with
 * everyone's, by the kernel's credentials of the peer and nothing else; for all others there are actions that
 * polkit may grant (polkit.h, polkit/io.nixsandbox.policy). A session that the peer may not see is answered
 * exactly like one that does not exist.
 */

#include <sys/types.h>

#include "daemon/session-state.h"
#include "lib/macro.h"

typedef enum PolicyAction {
        POLICY_LIST_OTHERS,   /* see sessions of other users */
        POLICY_MANAGE_OTHERS, /* end, freeze, interrupt, change them */
        POLICY_EXCEED_LIMITS, /* set limits beyond the configured maxima */
        POLICY_ALLOW_NETWORK, /* let a session reach more than its environment allows */
        POLICY_MANAGE_SYSTEM, /* what concerns the whole service */
        _POLICY_ACTION_MAX,
        _POLICY_ACTION_INVALID = -EINVAL,
} PolicyAction;

/* "io.nixsandbox.list-others". */
const char *policy_action_to_string(PolicyAction a);

/* What must be granted for a verb on a session of someone else; _POLICY_ACTION_INVALID: nobody may, not even
 * root, who can become that user if he must. */
PolicyAction policy_action_for_verb(SessionVerb v);

/* Without asking polkit. */
static inline bool policy_is_granted_everything(uid_t peer) {
        return peer == 0;
}
