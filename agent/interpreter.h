/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One of the session's persistent interpreters: which program it is, its process when there is one, and what
 * connects it to the agent. The three of a session live in a table that main owns.
 *
 * The output pipes are made at the first start and outlive the process: the agent keeps the write ends for
 * the next one, so that background processes of a dead interpreter neither get SIGPIPE nor go unread, and
 * the agent never sees end of file. The control socket is the process's own.
 */

#include <sys/types.h>

#include "agent/checkpoint.h"
#include "agent/output.h"
#include "agent/report.h"
#include "lib/buffer.h"

typedef enum InterpreterStream {
        INTERPRETER_STDOUT,
        INTERPRETER_STDERR,
        _INTERPRETER_STREAM_MAX,
} InterpreterStream;

typedef struct InterpreterKind InterpreterKind;

typedef struct OutputPipe {
        int read_fd, write_fd;
        Output output;
} OutputPipe;

/* A checkpoint that has gone on between turns. */
typedef struct Revival {
        uint64_t turn;                  /* whose state it has; 0: none, or the next turn was told */
        unsigned gone;                  /* what that does not have: WAKE_* */
        char token[DRIVER_TOKEN_LENGTH + 1];    /* of "wake"; "": it has answered */
} Revival;

typedef struct Interpreter {
        const InterpreterKind *kind;
        pid_t pid;                      /* also its process group and session; 0: no process */
        int control;                    /* -EBADF: no process, or one that has closed its end */
        bool ready;                     /* its driver has said so */
        bool killed;                    /* by us; it is not used any more, only reaped */
        bool unread;                    /* it is gone and has not read all that it was sent */
        bool loaded;                    /* its driver was sent what it needs for commands */
        bool lost;                      /* one that had been ready is gone, and no turn was told so yet */
        ReportReader reports;
        Buffer unsent;                  /* what the control socket did not take */
        int passed_fd;                  /* the descriptor that came last and nobody has asked for; -EBADF: none */
        Checkpoints checkpoints;
        Revival revival;
        OutputPipe pipes[_INTERPRETER_STREAM_MAX];
} Interpreter;

#define INTERPRETERS_MAX 3

void interpreters_init(Interpreter table[INTERPRETERS_MAX], SpoolDirectory *directory);
Interpreter *interpreter_find(Interpreter table[INTERPRETERS_MAX], const char *name);
Interpreter *interpreter_find_pid(Interpreter table[INTERPRETERS_MAX], pid_t pid);
const char *interpreter_name(const Interpreter *i);
/* Whether there is a driver that takes commands. */
static inline bool interpreter_is_live(const Interpreter *i) {
        return i->pid > 0 && i->ready && !i->killed;
}
/* Whether it has a state, or had one, so that something is to be said of it. */
static inline bool interpreter_has_begun(const Interpreter *i) {
        return i->ready || i->lost;
}

/* Starts its process. Errors as launch_process() has them. */
int interpreter_start(Interpreter *i);
/* Kills it; its end is noted by interpreter_ended(), which comes when it was reaped. */
void interpreter_kill(Interpreter *i);
void interpreter_ended(Interpreter *i);

/* Whether its driver knows of checkpoints. */
bool interpreter_can_park(const Interpreter *i);
/* Whether code looks as if it might put an end to this interpreter. */
bool interpreter_may_end(const Interpreter *i, const char *code, size_t size);
/* Asks for a checkpoint of the present state. Where there is no process that can be asked, nothing happens. */
int interpreter_ask_checkpoint(Interpreter *i);
/* Puts a checkpoint, which it takes, into the place of a process that has ended, and says "wake" with a new
 * token. One that is a text goes to a process that has just been started, if there is one. Errors as those of
 * interpreter_command(), and, without a process, of interpreter_start(). When it has answered, it is the
 * interpreter. */
int interpreter_wake(Interpreter *i, Checkpoint *checkpoint, char ret_token[DRIVER_TOKEN_LENGTH + 1]);
void interpreter_awake(Interpreter *i, uint64_t turn);
/* There is no process, and no turn runs: the newest checkpoint goes on, and the next turn is to tell so. It is live at
 * once, its commands wait until it is awake. -ESRCH: there is none; -EAGAIN: there is no room for a process; else
 * errors as those of interpreter_wake(). */
int interpreter_revive(Interpreter *i);

/* A process has ended and is about to be reaped: was it a checkpoint, it is none any more. */
void interpreters_on_death(Interpreter table[INTERPRETERS_MAX], pid_t pid);
/* Appends an EVENT for each interpreter whose checkpoints have changed; again: that has any. Only of those that can
 * go back to them on request. */
int interpreters_tell_checkpoints(Interpreter table[INTERPRETERS_MAX], bool again, Buffer *frames);

/* The secret of a new turn or other command. -EIO. */
int interpreter_make_token(char ret[DRIVER_TOKEN_LENGTH + 1]);

/* Sends the driver a command, "execute" or another. Never blocks; what did not fit goes out by interpreter_flush().
 * -EPIPE: there is no driver any more; -ENOMEM. */
int interpreter_command(Interpreter *i, const char *verb, const char *token, const char *data, size_t size);
void interpreter_flush(Interpreter *i);

/* Receives from the driver. 1: reports may be complete now, 0: nothing there, -EPIPE: it hung up. */
int interpreter_receive(Interpreter *i);

/* Reads a piece of a stream: into frames as output of the running turn, or, if that is NULL, to be held for
 * the next one. The number of bytes, or -ENOMEM. */
ssize_t interpreter_read(Interpreter *i, InterpreterStream stream, Buffer *frames);
/* Reads all that was written to the stream before the call, and no more. */
int interpreter_drain(Interpreter *i, InterpreterStream stream, Buffer *frames);
