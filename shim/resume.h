/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How a call goes on when its connection breaks because sandboxd was restarted. A run has a tag: the new
 * daemon is asked for the turn of that tag, and says whether it runs, has never begun (then it is sent
 * again, once) or is lost. What only looks is just sent again. Pure but for the tag's randomness.
 */

#include "lib/varlink.h"

#include "tools.h"

/* How long, from the first break on. Socket activation starts a daemon within that. */
#define RESUME_USEC (15 * USEC_PER_SEC)

typedef struct Resume {
        uint64_t until;         /* 0: nothing has broken yet */
        uint64_t retry_at;      /* not to be sent before; 0: at once */
        uint64_t pause;
        char tag[25];
        bool asking;            /* for the turn, instead of asking to run it */
        bool sent_again;
} Resume;

/* Gives a run its tag. */
void resume_init(Resume *r, ToolCall *call);

/* The connection is gone, or none could be made. False: it cannot go on. */
bool resume_lost(Resume *r, const ToolCall *call, uint64_t now);

/* What to send. The parameters are a new reference. */
const char *resume_method(const Resume *r, const ToolCall *call);
json_object *resume_parameters(const Resume *r, const ToolCall *call);

typedef enum ResumeVerdict {
        RESUME_DONE,            /* the reply is the call's */
        RESUME_SEND,            /* the turn never began: send the run again */
        RESUME_LOST,            /* nobody knows what became of it */
} ResumeVerdict;

/* A last reply. It may get a notice of what happened. */
ResumeVerdict resume_on_reply(Resume *r, VarlinkReply *reply);
