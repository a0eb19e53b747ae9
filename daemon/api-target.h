/* SPDX-License-Identifier: MIT */
#pragma once

/* What a Run asks for, and where it will run: for api-run.c and api-target.c. */

#include "daemon/api-private.h"

/* Members of a Run call; what was not asked is NULL, 0 or -1. */
typedef struct RunParameters {
        JsonBytes code;
        const char *environment, *interpreter, *session, *project, *project_mode, *tag;
        uint64_t timeout_ms, memory_mb, answer_after_ms;
        double cpus;
        json_object *rules;         /* of "network" */
        const NetworkList *network; /* they; NULL: not asked */
        const RunCall *call; /* to be looked at again later */
        /* Those of all, or with the caller's; the same as long as the call is looked at. */
        const EnvironmentTable *environments;
} RunParameters;

/* Where a turn will run, and what of the request was changed. */
typedef struct RunTarget {
        Session *session;
        Interpreter interpreter;
        SessionOrigin origin;
        uint64_t timeout_usec;
        char *notice;
        const char *gone;               /* why an earlier session of the same name ended; static */
        bool restore;                   /* the session begins with what was saved under its name */
        char *unrestored;               /* why it does not, though something was */
} RunTarget;

static inline uint64_t usec_from_ms(uint64_t ms) {
        return ms > UINT64_MAX / USEC_PER_MSEC / 2 ? UINT64_MAX / 2 : ms * USEC_PER_MSEC;
}

/* Finds or makes the session. 0: *ret is set; 1: refused and answered, or kept; negative errno. */
int run_find_target(VarlinkLink *link, Manager *m, const RunParameters *p, RunTarget *ret);
void run_target_done(RunTarget *t);
