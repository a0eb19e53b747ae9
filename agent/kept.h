/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the daemon was told of the running or last turn. Should another daemon take over the session, with
 * bytes lost in the first one's memory, it is told all of it again. Kept until the next turn begins: the
 * output in the interpreter's Outputs, the rest here. Part of the Turn.
 */

#include "agent/interpreter.h"
#include "agent/message.h"
#include "agent/values.h"

typedef struct Kept {
        uint64_t turn;                  /* 0: there was none yet */
        bool running;
        Interpreter *interpreter;       /* whose output is kept; NULL: there is none */
        char request[REQUEST_HEAD_MAX + 1];     /* its JSON; "": the request was none */
        uint64_t begun_usec;
        uint64_t duration_usec;
        uint64_t total_usec;            /* of all turns before */
        Values values;
        Buffer result;
} Kept;

/* Forgets the last turn. request is the text of a valid one, or NULL with interpreter NULL. */
void kept_begin(Kept *k, uint64_t turn, Interpreter *interpreter, const char *request);
/* Appends the RESULT frame, and keeps what it says. */
int kept_finish(Kept *k, const TurnResult *result, Buffer *frames);

/* Appends the hello of an agent that has been running, and all frames of the turn. */
int kept_replay(const Kept *k, Buffer *frames);
