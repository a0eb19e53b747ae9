/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One output stream of an interpreter, as it is told to the daemon: the first OUTPUT_HEAD_MAX bytes of a
 * turn go out as they come, then only the last OUTPUT_TAIL_MAX are kept and follow at the end of the turn;
 * every byte is counted. Between turns up to OUTPUT_LATE_MAX bytes are held for the interpreter's next turn.
 * Owned by the Interpreter. Does no I/O but for the spool file: bytes come in by calls, frames go into a
 * buffer.
 */

#include "agent/spool.h"
#include "lib/agent-protocol.h"

#define OUTPUT_LATE_MAX (64 * KIB)

typedef struct OutputSummary {
        uint64_t bytes, omitted, dropped;
        char *file;                     /* allocated; NULL: none */
} OutputSummary;

typedef struct Output {
        AgentFrameType head_type, tail_type;
        uint64_t turn;
        uint64_t bytes;                 /* of this turn */
        Buffer head;                    /* all that was sent of it; this and the tail stay for a replay */
        char *tail;                     /* ring of OUTPUT_TAIL_MAX bytes, there when the head is full */
        size_t tail_at, tail_size;      /* where the next byte goes; how many there are */
        Buffer late;
        uint64_t dropped;               /* late output over OUTPUT_LATE_MAX */
        Spool spool;
} Output;

void output_init_stdout(Output *o, SpoolDirectory *directory);
void output_init_stderr(Output *o, SpoolDirectory *directory);

/* Begins a turn; what was held becomes its beginning. 1: there was some, 0: none, negative errno. */
int output_begin(Output *o, uint64_t turn, Buffer *frames);
/* Output of the running turn. 0 or -ENOMEM. */
int output_feed(Output *o, const char *data, size_t size, Buffer *frames);
/* Ends the turn: the tail goes into frames. */
int output_finish(Output *o, Buffer *frames, OutputSummary *ret);

/* Appends once more what was told of the turn; of a finished one, its tail too. */
int output_replay(const Output *o, bool finished, Buffer *frames);
/* The turn will not be told again. */
void output_forget(Output *o);

/* Output that comes between turns. */
void output_hold(Output *o, const char *data, size_t size);

void output_summary_done(OutputSummary *s);
