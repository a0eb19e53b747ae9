/* SPDX-License-Identifier: MIT */

/*
 * What turns have to do with checkpoints: after one, the driver is asked to make one; when the interpreter dies
 * in one, the newest goes on. A copy that does not answer, or dies on the way, is followed by the next older one.
 */

#include <errno.h>

#include "agent/turn-private.h"
#include "lib/text.h"

/* For all that are tried, so that the turn ends before the daemon's backstop. */
#define PROMOTE_USEC (3 * USEC_PER_SEC)

void turn_take_state(Turn *t, const ExecuteRequest *request) {
        Interpreter *i = t->interpreter;

        i->checkpoints.mode = request->checkpoints;
        i->checkpoints.max_bytes = request->checkpoint_bytes;

        t->result.restarted = i->revival.turn > 0;
        t->result.rolled_back_to = i->revival.turn;
        t->result.gone = i->revival.gone;
        i->revival.turn = i->revival.gone = 0;
}

void turn_note_state(Turn *t) {
        Checkpoints *c = &t->interpreter->checkpoints;

        if (t->result.lost && c->obstacle == CHECKPOINT_NO_OBSTACLE && c->mode == CHECKPOINTS_AUTO)
                t->result.obstacle = CHECKPOINT_NOT_WORTH_IT;
        else if (t->result.lost)
                t->result.obstacle = c->obstacle;
        else if (!t->result.rolled_back)
                c->state_turn = t->id;
}

int turn_secure_state(Turn *t) {
        Interpreter *i = t->interpreter;

        if (!checkpoints_wanted(&i->checkpoints) ||
            !interpreter_may_end(i, buffer_data(&t->code), buffer_size(&t->code)))
                return 0;
        return interpreter_ask_checkpoint(i);
}

int turn_consider_checkpoint(Turn *t, Interpreter *i) {
        Checkpoints *c = &i->checkpoints;

        if (!interpreter_can_park(i))
                return 0;
        if (c->mode == CHECKPOINTS_NEVER)
                checkpoints_drop_all(c);
        return checkpoints_turn_over(c, t->result.duration_usec) ? interpreter_ask_checkpoint(i) : 0;
}

int turn_on_copy(Turn *t, Interpreter *i, const Report *report) {
        Checkpoints *c = &i->checkpoints;
        bool text = report->kind == REPORT_COPY;

        /* One request, one copy, whatever code says besides. */
        if (!c->asked || c->parked || !streq(report->token, c->token) || text != c->texts ||
            (text ? report->size == 0 : i->passed_fd < 0))
                return 0;

        c->parked = true;
        if (text)
                return checkpoints_add_text(c, report->value, report->size);
        checkpoints_add(c, report->pid, TAKE_FD(i->passed_fd));
        return 0;
}

static void checkpoint_made(Interpreter *i, int status) {
        Checkpoints *c = &i->checkpoints;

        if (c->parked) {
                c->obstacle = CHECKPOINT_NO_OBSTACLE;
                checkpoints_limit_memory(c, i->pid);
        } else {
                c->obstacle = status > PARK_NOT_FORKED && status <= PARK_LARGE ? (CheckpointObstacle) status
                                                                               : CHECKPOINT_NOT_FORKED;
                /* What it takes is for the living. */
                if (c->obstacle == CHECKPOINT_NOT_FORKED && c->n > 0)
                        checkpoints_drop_oldest(c);
        }
        checkpoints_paid(c, now_monotonic() - c->asked_usec, c->parked);
        checkpoints_forget_request(c);
}

int turn_promote(Turn *t, bool code_was_run) {
        Interpreter *i = t->interpreter;
        Checkpoint checkpoint;
        int r;

        t->code_was_run = code_was_run;
        if (checkpoints_take(&i->checkpoints, &checkpoint) < 0)
                return code_was_run ? turn_finish(t) : turn_start(t);

        if (t->stage != TURN_PROMOTING)
                turn_enter(t, TURN_PROMOTING, PROMOTE_USEC);
        t->promoted_turn = checkpoint.turn;

        r = interpreter_wake(i, &checkpoint, t->token);
        if (r < 0 && i->pid == 0)
                return turn_promote(t, code_was_run);
        if (r == -EPIPE) {
                interpreter_kill(i); /* and the next one when it has ended */
                return 0;
        }
        return r;
}

static int turn_on_promoted(Turn *t, Interpreter *i, int gone) {
        int r;

        interpreter_awake(i, t->promoted_turn);
        t->result.lost = false;
        t->result.rolled_back_to = t->promoted_turn;
        t->result.gone = (unsigned) gone;
        t->result.rolled_back = t->code_was_run;
        if (t->code_was_run || t->result.interrupted)
                return turn_finish(t);

        t->result.restarted = true;
        r = interpreter_make_token(t->token);
        if (r >= 0)
                r = turn_execute(t);
        if (r == -EPIPE) {
                interpreter_kill(i);
                return 0;
        }
        turn_enter_running(t);
        return r;
}

static void turn_on_revived(Turn *t, Interpreter *i, int gone) {
        /* Whoever it was revived for may have given up, and a turn may have begun. */
        *(t->interpreter == i ? &t->result.gone : &i->revival.gone) = (unsigned) gone;
        i->revival.token[0] = 0;
}

int turn_on_checkpoint_done(Turn *t, Interpreter *i, const Report *report) {
        if (t->stage == TURN_PROMOTING && t->interpreter == i && streq(report->token, t->token))
                return turn_on_promoted(t, i, report->status) ?: 1;
        if (streq(report->token, i->revival.token)) {
                turn_on_revived(t, i, report->status);
                return 1;
        }
        if (i->checkpoints.asked && streq(report->token, i->checkpoints.token)) {
                checkpoint_made(i, report->status);
                return 1;
        }
        return 0;
}

int turn_on_promote_deadline(Turn *t) {
        Interpreter *i = t->interpreter;

        checkpoints_drop_all(&i->checkpoints);
        turn_kill(t);
        if (!t->code_was_run)
                turn_wait_to_start(t);
        return 0;
}
