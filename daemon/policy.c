/* SPDX-License-Identifier: MIT */

/* The actions and what needs them; default is "nobody". */

#include "daemon/policy.h"

static const char *const action_names[_POLICY_ACTION_MAX] = {
        [POLICY_LIST_OTHERS] = "io.nixsandbox.list-others",
        [POLICY_MANAGE_OTHERS] = "io.nixsandbox.manage-others",
        [POLICY_EXCEED_LIMITS] = "io.nixsandbox.exceed-limits",
        [POLICY_ALLOW_NETWORK] = "io.nixsandbox.allow-network",
        [POLICY_MANAGE_SYSTEM] = "io.nixsandbox.manage-system",
};

const char *policy_action_to_string(PolicyAction a) {
        assert(a >= 0 && a < _POLICY_ACTION_MAX);

        return action_names[a];
}

PolicyAction policy_action_for_verb(SessionVerb v) {
        switch (v) {
        case SESSION_VERB_SHOW:
                return POLICY_LIST_OTHERS;
        case SESSION_VERB_KILL:
        case SESSION_VERB_FREEZE:
        case SESSION_VERB_THAW:
        case SESSION_VERB_INTERRUPT:
        case SESSION_VERB_SAVE: /* on this machine, where only the owner can have it restored */
        case SESSION_VERB_SET:
                return POLICY_MANAGE_OTHERS;
        case SESSION_VERB_RUN:  /* code would run as the owner, with what he keeps there */
        case SESSION_VERB_OPERATE: /* what he keeps there is his */
        case SESSION_VERB_WAIT: /* takes away a result that the owner waits for */
        case _SESSION_VERB_MAX:
        default:
                return _POLICY_ACTION_INVALID;
        }
}
