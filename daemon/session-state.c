/* SPDX-License-Identifier: MIT */

/* Tables of session states; default is "no", as in the permission table of OpenSSH's monitor. */

#include "daemon/session-state.h"

#include "lib/macro.h"

static const char *const state_names[_SESSION_STATE_MAX] = {
        [SESSION_STARTING] = "starting", [SESSION_RUNNING] = "running",   [SESSION_STANDBY] = "standby",
        [SESSION_FROZEN] = "frozen",     [SESSION_STOPPING] = "stopping", [SESSION_DEAD] = "dead",
};

static const bool transitions[_SESSION_STATE_MAX][_SESSION_STATE_MAX] = {
        [SESSION_STARTING] = { [SESSION_RUNNING] = true, [SESSION_STOPPING] = true },
        [SESSION_RUNNING] = { [SESSION_STANDBY] = true, [SESSION_FROZEN] = true, [SESSION_STOPPING] = true },
        /* By hand over standby: the freeze becomes sticky. */
        [SESSION_STANDBY] = { [SESSION_RUNNING] = true, [SESSION_FROZEN] = true, [SESSION_STOPPING] = true },
        [SESSION_FROZEN] = { [SESSION_RUNNING] = true, [SESSION_STOPPING] = true },
        [SESSION_STOPPING] = { [SESSION_DEAD] = true },
};

static const char *const verb_names[_SESSION_VERB_MAX] = {
        [SESSION_VERB_RUN] = "run",   [SESSION_VERB_FREEZE] = "freeze", [SESSION_VERB_THAW] = "thaw",
        [SESSION_VERB_KILL] = "kill", [SESSION_VERB_SHOW] = "show",     [SESSION_VERB_WAIT] = "wait",
        [SESSION_VERB_SET] = "set",   [SESSION_VERB_INTERRUPT] = "interrupt", [SESSION_VERB_OPERATE] = "operate",
        [SESSION_VERB_SAVE] = "save",
};

/* What every session that is not on its way out allows. */
#define ALWAYS_ALLOWED                                                                  \
        [SESSION_VERB_KILL] = true, [SESSION_VERB_SET] = true, [SESSION_VERB_SHOW] = true, \
        [SESSION_VERB_WAIT] = true, [SESSION_VERB_INTERRUPT] = true

static const bool verbs[_SESSION_STATE_MAX][_SESSION_VERB_MAX] = {
        [SESSION_STARTING] = { ALWAYS_ALLOWED, [SESSION_VERB_RUN] = true, [SESSION_VERB_OPERATE] = true },
        [SESSION_RUNNING] = { ALWAYS_ALLOWED,
                              [SESSION_VERB_SAVE] = true,
                              [SESSION_VERB_RUN] = true,
                              [SESSION_VERB_OPERATE] = true,
                              [SESSION_VERB_FREEZE] = true,
                              [SESSION_VERB_THAW] = true },
        [SESSION_STANDBY] = { ALWAYS_ALLOWED,
                              [SESSION_VERB_SAVE] = true,
                              [SESSION_VERB_RUN] = true,
                              [SESSION_VERB_OPERATE] = true,
                              [SESSION_VERB_FREEZE] = true,
                              [SESSION_VERB_THAW] = true },
        [SESSION_FROZEN] = { ALWAYS_ALLOWED, [SESSION_VERB_FREEZE] = true, [SESSION_VERB_THAW] = true },
};

const char *session_state_to_string(SessionState s) {
        assert(s >= 0 && s < _SESSION_STATE_MAX);

        return state_names[s];
}

const char *session_verb_to_string(SessionVerb v) {
        assert(v >= 0 && v < _SESSION_VERB_MAX);

        return verb_names[v];
}

bool session_state_may_follow(SessionState from, SessionState to) {
        assert(from >= 0 && from < _SESSION_STATE_MAX);
        assert(to >= 0 && to < _SESSION_STATE_MAX);

        return transitions[from][to];
}

bool session_verb_allowed(SessionState s, SessionVerb v) {
        assert(s >= 0 && s < _SESSION_STATE_MAX);
        assert(v >= 0 && v < _SESSION_VERB_MAX);

        return verbs[s][v];
}
