/* SPDX-License-Identifier: MIT */

/* What an interpreter's process has to do with its copies: it is asked for one, and replaced by one. */

#include <errno.h>

#include "agent/interpreter.h"
#include "lib/fd-util.h"
#include "lib/text.h"

int interpreter_ask_checkpoint(Interpreter *i) {
        Checkpoints *c = &i->checkpoints;
        const char *mode = c->mode == CHECKPOINTS_ALWAYS ? "always" : "auto";
        int r;

        if (!i->ready || i->killed || c->mode == CHECKPOINTS_NEVER)
                return 0;

        r = interpreter_make_token(c->token);
        if (r >= 0)
                r = interpreter_command(i, "park", c->token, mode, strlen(mode));
        if (r < 0)
                return r == -EPIPE ? 0 : r;

        c->asked = true;
        c->parked = false;
        c->asked_turn = c->state_turn;
        c->asked_usec = now_monotonic();
        return 0;
}

int interpreter_wake(Interpreter *i, Checkpoint *checkpoint, char ret_token[DRIVER_TOKEN_LENGTH + 1]) {
        _cleanup_(buffer_done) Buffer text = checkpoint->text;
        int r;

        checkpoint->text = (Buffer) {};
        if (i->checkpoints.texts) {
                r = i->pid == 0 ? interpreter_start(i) : 0;
                if (r < 0)
                        return r;
        } else {
                assert(i->pid == 0);
                i->pid = checkpoint->pid;
                i->control = TAKE_FD(checkpoint->channel);
        }

        r = interpreter_make_token(ret_token);
        return r < 0 ? r : interpreter_command(i, "wake", ret_token, buffer_data(&text), buffer_size(&text));
}

void interpreter_awake(Interpreter *i, uint64_t turn) {
        i->ready = true;
        i->lost = false;
        i->checkpoints.state_turn = turn;
        i->checkpoints.due = true;
}

int interpreter_revive(Interpreter *i) {
        Checkpoint checkpoint;
        int r;

        if (i->checkpoints.n == 0)
                return -ESRCH;
        /* First, so that a limit that is reached costs no checkpoint. */
        r = i->checkpoints.texts ? interpreter_start(i) : 0;
        if (r < 0)
                return r == -ENOMEM ? -EAGAIN : r;
        if (checkpoints_take(&i->checkpoints, &checkpoint) < 0)
                return -ESRCH;

        r = interpreter_wake(i, &checkpoint, i->revival.token);
        if (r < 0) {
                if (i->pid > 0)
                        interpreter_kill(i);
                return r;
        }
        interpreter_awake(i, checkpoint.turn);
        i->revival.turn = checkpoint.turn;
        return interpreter_ask_checkpoint(i);
}

void interpreters_on_death(Interpreter table[INTERPRETERS_MAX], pid_t pid) {
        for (size_t k = 0; k < INTERPRETERS_MAX; k++)
                checkpoints_on_death(&table[k].checkpoints, pid);
}

int interpreters_tell_checkpoints(Interpreter table[INTERPRETERS_MAX], bool again, Buffer *frames) {
        int r = 0;

        for (size_t k = 0; r >= 0 && k < INTERPRETERS_MAX; k++) {
                Checkpoints *c = &table[k].checkpoints;

                if (c->texts || (!c->changed && !(again && c->n > 0)))
                        continue;
                c->changed = false;
                r = checkpoints_append(interpreter_name(&table[k]), c, frames);
        }
        return r;
}
