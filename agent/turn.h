/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The turn that runs, if one does: from the daemon's REQUEST over the driver's report, a time-out or the
 * interpreter's death to the RESULT. There is one Turn, owned by main, used again and again; main calls it
 * when something has happened, and asks it for the time it wants to be called at the latest.
 */

#include "agent/kept.h"

typedef enum TurnStage {
        TURN_IDLE,
        TURN_WAITING,           /* for another try to start the interpreter */
        TURN_STARTING,          /* its process runs, the driver is not ready yet */
        TURN_RUNNING,
        TURN_INTERRUPTED,       /* SIGINT was sent: the driver is given time to report */
        TURN_CHILDREN_KILLED,   /* so were all that the turn had started: given time once more */
        TURN_ENDING,            /* the interpreter was killed: its end is all that is waited for */
        TURN_PROMOTING,         /* it has ended: a checkpoint of it is to go on */
} TurnStage;

/* For reports of commands that are no turn's. */
typedef int (*TurnOtherReport)(Interpreter *i, const Report *report, void *userdata);

typedef struct Turn {
        Interpreter *interpreters;      /* borrowed, as is frames */
        Buffer *frames;                 /* to the daemon */
        TurnOtherReport on_other_report;        /* NULL, or for main to set */
        void *userdata;                 /* its own */

        TurnStage stage;
        uint64_t id;
        Interpreter *interpreter;       /* NULL when idle */
        char token[DRIVER_TOKEN_LENGTH + 1];
        uint64_t begun_usec;
        uint64_t begun_ticks;           /* the same by children_clock() */
        uint64_t timeout_usec;
        uint64_t deadline_usec;         /* of the stage */

        Buffer code;                    /* should it have to be sent to another process */
        uint64_t settled_usec;          /* when the driver will have begun to run it */
        uint64_t backoff_usec;
        uint64_t start_until_usec;      /* when to stop trying */
        unsigned deaths;                /* of interpreters before they had the code */
        bool code_was_run;              /* in the process that a checkpoint is to replace */
        uint64_t promoted_turn;         /* whose state that has */

        TurnResult result;
        Outbox outbox;
        Kept kept;
} Turn;

void turn_init(Turn *t, Interpreter interpreters[INTERPRETERS_MAX], Buffer *frames);

/* -EPROTO: one is running. */
int turn_begin(Turn *t, uint64_t id, const char *payload, size_t size);
/* Of a turn that does not run (any more) it is ignored. */
int turn_interrupt(Turn *t, uint64_t id);

/* Something came from an interpreter, whether the turn is its or not. */
int turn_on_control(Turn *t, Interpreter *i);
int turn_on_output(Turn *t, Interpreter *i, InterpreterStream stream);
/* A child has ended, and is reaped only after this, so that its pid means nobody else; its status as
 * waitpid(2) has it. */
int turn_on_death(Turn *t, pid_t pid, int status);

/* USEC_INFINITY when there is nothing to wait for. */
uint64_t turn_deadline(const Turn *t);
int turn_on_deadline(Turn *t);
