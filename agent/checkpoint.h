/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The checkpoints of an interpreter: copies, each with the state after a turn. When the process dies, the newest
 * one goes on in its place. Those of python are processes, which its driver has forked and which wait; those of
 * bash are texts, from which a new shell makes the state.
 *
 * Such a process is a child of the agent's, by adoption: the agent reaps it, and as long as it has not, its pid
 * means nobody else. What a driver says of one is not believed but for that.
 *
 * A checkpoint costs time: the fork itself, and every page that is written for the first time after it. So in
 * mode auto they are paid for with a share of the time that turns take, and there are none after short turns.
 */

#include <sys/types.h>

#include "agent/driver-protocol.h"
#include "agent/message.h"
#include "lib/agent-protocol.h"

/* One of the present state, and three to go back to. */
#define CHECKPOINTS_MAX AGENT_CHECKPOINTS_MAX

typedef struct Checkpoint {
        pid_t pid;                      /* 0: it is a text */
        int channel;                    /* its control socket */
        Buffer text;
        uint64_t turn;                  /* whose state it has */
} Checkpoint;

typedef struct Checkpoints {
        Checkpoint copies[CHECKPOINTS_MAX];     /* the oldest first */
        size_t n;
        bool texts;                     /* that is what they are, and no processes */
        CheckpointMode mode;            /* these two: of the last turn */
        uint64_t max_bytes;             /* what the copies may hold */
        uint64_t state_turn;            /* the last turn that is in the state of the living process; 0: none */

        /* The one that the driver was asked for last. */
        char token[DRIVER_TOKEN_LENGTH + 1];    /* "": none yet */
        uint64_t asked_turn, asked_usec;
        bool asked;                     /* and has not said "done" */
        bool parked;                    /* but has named the copy */
        CheckpointObstacle obstacle;    /* why there was none, if so */
        bool changed;                   /* the copies, since that was looked at */

        bool due;                       /* one was used up, so the next is made whatever it costs */
        uint64_t cost_usec;             /* of one, as measured; 0: not yet */
        uint64_t unsaved_usec;          /* time of turns since the last one */
        int64_t allowance_usec;         /* what may be spent; below 0 after one that cost more than was thought */
} Checkpoints;

/* Pure: a turn took that long. Whether a checkpoint is to be made now. */
bool checkpoints_turn_over(Checkpoints *c, uint64_t turn_usec);
/* Pure: one was made, or tried, in that time. */
void checkpoints_paid(Checkpoints *c, uint64_t usec, bool made);
/* Pure: whether one is to be made before code that may well end its interpreter, since there is none of the present
 * state. */
bool checkpoints_wanted(const Checkpoints *c);

/* The process that was asked has answered, or will not any more. */
void checkpoints_forget_request(Checkpoints *c);

/* Takes channel. pid is what a driver says, and not looked at before it is used. Where there is no room the oldest
 * one goes. */
void checkpoints_add(Checkpoints *c, pid_t pid, int channel);
/* The same of a text, which is copied. -ENOMEM. */
int checkpoints_add_text(Checkpoints *c, const char *text, size_t size);
/* Ends copies. */
void checkpoints_drop_oldest(Checkpoints *c);
void checkpoints_drop_all(Checkpoints *c);
/* Drops the oldest ones until what they hold, and the living process does not, is no more than it may be. */
void checkpoints_limit_memory(Checkpoints *c, pid_t living);
/* Drops the newest ones until the newest that is left is that many states before the present one. False, and
 * nothing is dropped: there is none. */
bool checkpoints_go_back(Checkpoints *c, uint64_t states);
/* Hands over the newest one, which has no place in the table any more; channel and text belong to the caller.
 * -ENOENT. */
int checkpoints_take(Checkpoints *c, Checkpoint *ret);
/* A process has ended and is about to be reaped. */
void checkpoints_on_death(Checkpoints *c, pid_t pid);

/* Appends the EVENT frame that says which there are. */
int checkpoints_append(const char *interpreter, const Checkpoints *c, Buffer *frames);
