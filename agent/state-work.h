/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the child of an operation does with the session's state: it moves all bytes between the channel and the parts
 * (part.h), and reads what may be hostile. That pid 1 does neither is why it cannot be blocked or crashed by them.
 */

#include "agent/operation-child.h"
#include "agent/state-fifo.h"

typedef struct StateWork {
        const Interpreter *interpreters;        /* as they were when the child was forked */
        char fifos[FIFO_DIRECTORY_LENGTH + 1];
        int talk;                               /* to the agent */
        unsigned interpreter;                   /* of a question */
} StateWork;

/* OperationWork; userdata is a StateWork. */
void state_save(int channel, OperationResult *result, void *userdata);
void state_restore(int channel, OperationResult *result, void *userdata);
/* list and show: the answer goes into the channel as it is. */
void state_answer(int channel, OperationResult *result, void *userdata);
