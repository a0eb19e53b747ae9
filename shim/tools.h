/* SPDX-License-Identifier: MIT */
#pragma once

/* How a call of one of the two tools that an editor sees becomes a varlink call. Pure. */

#include "lib/json.h"

/* A call that has not ended by then is answered with what there is; `session` wait goes on with it. Below
 * the 60 s at which several editors give up on a tool. */
#define TOOL_ANSWER_AFTER_MSEC 50000U

typedef enum ToolAction {
        TOOL_RUN,
        TOOL_LIST,
        TOOL_ENVIRONMENTS,
        TOOL_HISTORY,
        TOOL_WAIT,
        TOOL_INTERRUPT,
        TOOL_ROLLBACK,
        TOOL_KILL,
        TOOL_RESET,
        TOOL_SAVE,
        TOOL_SNAPSHOTS,
        TOOL_RESTORE,
        TOOL_VARIABLES,
        _TOOL_ACTION_MAX,
        _TOOL_ACTION_INVALID = -EINVAL,
} ToolAction;

typedef struct ToolCall {
        ToolAction action;
        const char *method;             /* varlink, static */
        json_object *parameters;        /* of it, owned */
        bool repeatable;                /* may be sent again if it is not known whether it was carried out */
} ToolCall;

/* Conditions that the caller answers. */
enum {
        TOOL_E_UNKNOWN = 1,             /* no such tool */
        TOOL_E_ARGUMENTS,               /* *reterr_why says what is wrong, for the model */
};

/*
 * 0, or a condition of above. arguments may be NULL; project is the directory whose sessions are meant, or
 * NULL. *reterr_why is allocated.
 */
int tool_call_parse(const char *name, json_object *arguments, const char *project, ToolCall *ret,
                    char **reterr_why);
void tool_call_done(ToolCall *t);

/* What it means for a call that its connection is lost. Static. */
const char *tool_call_lost(const ToolCall *t);

/* The session named in a call; NULL for a run without one and for lists. Borrowed. */
const char *tool_call_string(const ToolCall *t, const char *key);
