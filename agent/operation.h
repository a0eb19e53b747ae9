/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The operation that runs, if one does: from the daemon's OPERATE to the OPERATED (lib/agent-protocol.h). There is
 * one Operation, owned by main. What an operation does is its type's matter, in a file of its own; a type that has
 * begun is called when something of its own has happened, until it ends the operation by operation_end() or
 * operation_fail(), from inside any of these calls. All functions return 0, or a negative errno (out of memory)
 * that ends the agent.
 */

#include <json-c/json.h>

#include "agent/operation-child.h"
#include "agent/turn.h"

typedef struct Operation Operation;

typedef enum OperationChannel {
        OPERATION_NO_CHANNEL,
        OPERATION_WRITES,       /* to the daemon; that it closes its end gives the operation up */
        OPERATION_READS,        /* from the daemon */
} OperationChannel;

typedef struct OperationType {
        const char *name;
        OperationChannel channel;
        bool drivers;           /* it needs the interpreters: not while a turn runs, and no turn begins meanwhile */
        /* request is borrowed, and typed by the type. */
        int (*begin)(Operation *o, json_object *request);
        /* Its child has ended; result is what it left. NULL: that is the operation's answer. */
        int (*on_child)(Operation *o, const OperationResult *result);
        int (*on_talk)(Operation *o);           /* there is something at o->talk */
        /* The driver has done a command whose token is no turn's. NULL: of no interest, as are the others. */
        int (*on_report)(Operation *o, Interpreter *i, const Report *report);
        int (*on_interpreter_ended)(Operation *o, Interpreter *i);
        int (*on_deadline)(Operation *o);
        /* However it ended, also when it was given up: frees o->state, leaves nothing behind. */
        void (*done)(Operation *o);
} OperationType;

extern const OperationType operation_get, operation_put, operation_rollback;
extern const OperationType operation_save, operation_restore, operation_variables, operation_variable;

struct Operation {
        Turn *turn;                     /* borrowed, as are frames and interpreters */
        Interpreter *interpreters;
        Buffer *frames;

        const OperationType *type;      /* NULL: none runs */
        uint64_t id;
        int channel;
        OperationChild child;
        int talk;                       /* what the type wants to be watched, and closes itself; -EBADF: nothing */
        bool holds_turns;               /* at first, what type->drivers says */
        uint64_t deadline_usec;         /* when on_deadline() is to be called, for the type to set; 0: never */
        void *state;                    /* the type's */
};

void operation_init(Operation *o, Turn *turn, Interpreter interpreters[INTERPRETERS_MAX], Buffer *frames);

/* Gives up one that runs. Takes fd, the channel; -EBADF: there came none. */
int operation_begin(Operation *o, uint64_t id, const char *payload, size_t size, int fd);
/* Answers that it was given up. */
int operation_give_up(Operation *o);

/* What has happened. Whether it has to do with the operation is found out here. */
int operation_on_channel(Operation *o);
int operation_on_talk(Operation *o);
int operation_on_death(Operation *o, pid_t pid, int status);
int operation_on_report(Operation *o, Interpreter *i, const Report *report);
int operation_on_interpreter_ended(Operation *o, Interpreter *i);
uint64_t operation_deadline(const Operation *o);        /* USEC_INFINITY: none */
int operation_on_deadline(Operation *o);

/* The descriptor to look at for errors, or -EBADF. */
static inline int operation_watched_fd(const Operation *o) {
        return o->type && o->type->channel == OPERATION_WRITES ? o->channel : -EBADF;
}

static inline bool operation_holds_turns(const Operation *o) {
        return o->type && o->holds_turns;
}

/* For types. Runs work() in a child, with the channel and what else it is to keep; one child at a time. It is -EAGAIN
 * or -ENOMEM at a limit. */
int operation_start_child(Operation *o, OperationWork work, void *userdata, const int *keep, size_t n_keep);
/* The whole operation is work() in a child, whose result is the answer; one that cannot be started, too. */
int operation_work(Operation *o, OperationWork work, void *userdata);
int operation_refuse_request(Operation *o);
/* Ends it well; report is the text of a JSON object, or NULL. */
int operation_end(Operation *o, const char *report, size_t size);
/* Ends it; error is one of AGENT_OPERATION_ERRORS. */
int operation_fail(Operation *o, const char *error, const char *format, ...) _printf_(3, 4);
