/* SPDX-License-Identifier: MIT */

/* The two tables, against the sentences that rule them rather than against themselves. */

#include <criterion/criterion.h>

#include "daemon/session-state.h"

Test(session_state, names) {
        static const char *const names[_SESSION_STATE_MAX] = {
                "starting", "running", "standby", "frozen", "stopping", "dead",
        };

        for (SessionState s = 0; s < _SESSION_STATE_MAX; s++)
                cr_assert_str_eq(session_state_to_string(s), names[s]);
}

Test(session_state, no_state_follows_itself) {
        for (SessionState s = 0; s < _SESSION_STATE_MAX; s++)
                cr_assert_not(session_state_may_follow(s, s));
}

Test(session_state, the_end_is_one_way) {
        for (SessionState s = 0; s < _SESSION_STATE_MAX; s++) {
                cr_assert_not(session_state_may_follow(SESSION_DEAD, s));
                cr_assert_eq(session_state_may_follow(SESSION_STOPPING, s), s == SESSION_DEAD);
                cr_assert_eq(session_state_may_follow(s, SESSION_DEAD), s == SESSION_STOPPING);
                cr_assert_not(session_state_may_follow(s, SESSION_STARTING), "a session starts once");
        }
}

Test(session_state, everything_alive_can_be_stopped) {
        for (SessionState s = SESSION_STARTING; s < SESSION_STOPPING; s++)
                cr_assert(session_state_may_follow(s, SESSION_STOPPING));
}

Test(session_state, freezing) {
        cr_assert(session_state_may_follow(SESSION_STARTING, SESSION_RUNNING));
        cr_assert_not(session_state_may_follow(SESSION_STARTING, SESSION_STANDBY));
        cr_assert_not(session_state_may_follow(SESSION_STARTING, SESSION_FROZEN));
        cr_assert(session_state_may_follow(SESSION_RUNNING, SESSION_STANDBY));
        cr_assert(session_state_may_follow(SESSION_RUNNING, SESSION_FROZEN));
        cr_assert(session_state_may_follow(SESSION_STANDBY, SESSION_RUNNING));
        cr_assert(session_state_may_follow(SESSION_STANDBY, SESSION_FROZEN));
        cr_assert(session_state_may_follow(SESSION_FROZEN, SESSION_RUNNING));
        cr_assert_not(session_state_may_follow(SESSION_FROZEN, SESSION_STANDBY), "by hand is by hand");
}

Test(session_state, no_verb_reaches_what_is_gone) {
        for (SessionVerb v = 0; v < _SESSION_VERB_MAX; v++) {
                cr_assert_not(session_verb_allowed(SESSION_STOPPING, v));
                cr_assert_not(session_verb_allowed(SESSION_DEAD, v));
        }
}

Test(session_state, verbs) {
        for (SessionState s = SESSION_STARTING; s < SESSION_STOPPING; s++) {
                cr_assert(session_verb_allowed(s, SESSION_VERB_KILL));
                cr_assert(session_verb_allowed(s, SESSION_VERB_SET));
                cr_assert(session_verb_allowed(s, SESSION_VERB_SHOW));
                cr_assert(session_verb_allowed(s, SESSION_VERB_WAIT));
                cr_assert(session_verb_allowed(s, SESSION_VERB_INTERRUPT));
                cr_assert_eq(session_verb_allowed(s, SESSION_VERB_RUN), s != SESSION_FROZEN);
                cr_assert_eq(session_verb_allowed(s, SESSION_VERB_FREEZE), s != SESSION_STARTING);
                cr_assert_eq(session_verb_allowed(s, SESSION_VERB_THAW), s != SESSION_STARTING);
        }
}
