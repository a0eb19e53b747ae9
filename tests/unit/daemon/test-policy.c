/* SPDX-License-Identifier: MIT */

/* Which action a verb on somebody else's session needs, and that the policy file for polkit has them all. */

#include <fcntl.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "daemon/policy.h"
#include "lib/fd-util.h"

Test(policy, only_root_is_granted_everything) {
        cr_assert(policy_is_granted_everything(0));
        cr_assert_not(policy_is_granted_everything(1));
        cr_assert_not(policy_is_granted_everything(1000));
        cr_assert_not(policy_is_granted_everything((uid_t) -2));
}

Test(policy, verbs) {
        cr_assert_eq(policy_action_for_verb(SESSION_VERB_SHOW), POLICY_LIST_OTHERS);
        cr_assert_eq(policy_action_for_verb(SESSION_VERB_KILL), POLICY_MANAGE_OTHERS);
        cr_assert_eq(policy_action_for_verb(SESSION_VERB_FREEZE), POLICY_MANAGE_OTHERS);
        cr_assert_eq(policy_action_for_verb(SESSION_VERB_THAW), POLICY_MANAGE_OTHERS);
        cr_assert_eq(policy_action_for_verb(SESSION_VERB_INTERRUPT), POLICY_MANAGE_OTHERS);
        cr_assert_eq(policy_action_for_verb(SESSION_VERB_SET), POLICY_MANAGE_OTHERS);
        cr_assert_lt(policy_action_for_verb(SESSION_VERB_RUN), 0);
        cr_assert_lt(policy_action_for_verb(SESSION_VERB_WAIT), 0);
        cr_assert_lt(policy_action_for_verb(_SESSION_VERB_MAX), 0);
}

Test(policy, every_verb_has_a_name) {
        for (SessionVerb v = 0; v < _SESSION_VERB_MAX; v++)
                cr_assert_gt(strlen(session_verb_to_string(v)), 0);
}

Test(policy, actions_are_those_of_the_policy_file) {
        _cleanup_free_ char *text = NULL;
        size_t n = 0;

        cr_assert_eq(read_file_at(AT_FDCWD, "polkit/io.nixsandbox.policy", 64 * KIB, &text, NULL), 0);

        for (PolicyAction a = 0; a < _POLICY_ACTION_MAX; a++) {
                char tag[128];

                (void) snprintf(tag, sizeof(tag), "<action id=\"%s\">", policy_action_to_string(a));
                cr_assert_not_null(strstr(text, tag), "%s", tag);
        }
        for (const char *s = text; (s = strstr(s, "<action id=")); s++)
                n++;
        cr_assert_eq(n, _POLICY_ACTION_MAX);
        for (const char *s = text; (s = strstr(s, ">unix-user:nix-sandbox</annotate>")); s++)
                n--;
        cr_assert_eq(n, 0, "every action belongs to the daemon's user");
}
