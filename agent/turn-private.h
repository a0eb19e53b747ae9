/* SPDX-License-Identifier: MIT */
#pragma once

/* Steps of a turn that turn.c and turn-checkpoint.c take for each other; errors as in turn.h. */

#include "agent/turn.h"

void turn_enter(Turn *t, TurnStage stage, uint64_t usec);
void turn_enter_running(Turn *t);
int turn_execute(Turn *t);
/* Another process runs the code: it was not run yet. */
int turn_start(Turn *t);
/* Tries that again and again, for a while. */
void turn_wait_to_start(Turn *t);
/* Kills the interpreter; the turn ends when it has ended. */
void turn_kill(Turn *t);
int turn_finish(Turn *t);

/* The ladder, step by step. */
void turn_interrupt_code(Turn *t);
void turn_kill_children(Turn *t);
void turn_kill_all(Turn *t);

/* What the request says of checkpoints; and whether one had to go on since the last turn. */
void turn_take_state(Turn *t, const ExecuteRequest *request);
/* Before the RESULT: the state is that after this turn, or else what is to be said of it. */
void turn_note_state(Turn *t);
/* Before the code goes out: asks for a checkpoint, if the code may put an end to the state. */
int turn_secure_state(Turn *t);
/* Asks for a checkpoint, if it is time for one. After the RESULT, so that nobody waits for it. */
int turn_consider_checkpoint(Turn *t, Interpreter *i);
int turn_on_copy(Turn *t, Interpreter *i, const Report *report);
/* 1: the report was on a checkpoint. */
int turn_on_checkpoint_done(Turn *t, Interpreter *i, const Report *report);
int turn_on_promote_deadline(Turn *t);

/* The interpreter's process has ended: its newest checkpoint goes on instead. When it does, the code is run, or the
 * turn finished. Where there is none, another process is started, or the state is lost. */
int turn_promote(Turn *t, bool code_was_run);
