/* SPDX-License-Identifier: MIT */

/*
 * The stages of a turn and what moves it from one to the next. All functions return 0, or a negative errno
 * (out of memory) that ends the agent: no turn can be reported any more.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "agent/children.h"
#include "agent/places.h"
#include "agent/turn-private.h"
#include "lib/text.h"

#define START_RETRY_USEC (2 * USEC_PER_SEC)     /* at a limit of processes or memory */
#define START_BACKOFF_USEC (20 * USEC_PER_MSEC)
#define END_USEC (1 * USEC_PER_SEC)             /* from SIGKILL to the end of the process */
#define DEATHS_MAX 2U
/* SIGINT does nothing before the driver has begun with the turn, which nobody can see from outside. */
#define SETTLE_USEC (20 * USEC_PER_MSEC)
#define REPORTS_MAX 64U                         /* pieces read from a driver that is dead */
#define LOOK_USEC (5 * USEC_PER_MSEC)           /* what turns of less do has to cost nothing */

void turn_init(Turn *t, Interpreter interpreters[INTERPRETERS_MAX], Buffer *frames) {
        *t = (Turn) { .interpreters = interpreters, .frames = frames };
}

void turn_enter(Turn *t, TurnStage stage, uint64_t usec) {
        t->stage = stage;
        t->deadline_usec = now_monotonic() + usec;
}

int turn_finish(Turn *t) {
        Interpreter *i = t->interpreter;
        TurnResult *result = &t->result;
        int r = 0;

        if (i) {
                r = output_finish(&i->pipes[INTERPRETER_STDOUT].output, t->frames, &result->out);
                if (r >= 0)
                        r = output_finish(&i->pipes[INTERPRETER_STDERR].output, t->frames, &result->err);
        }

        if (result->timed_out)
                result->exit_code = EXIT_CODE_TIMED_OUT;
        else if (result->interrupted)
                result->exit_code = EXIT_CODE_INTERRUPTED;
        result->duration_usec = now_monotonic() - t->begun_usec;
        if (result->exit_code != 0 || result->err.bytes > 0 || result->duration_usec >= LOOK_USEC)
                result->full = places_find_full();
        if (i)
                turn_note_state(t);
        outbox_finish(&t->outbox);
        result->outbox = &t->outbox;
        result->values_dropped = t->kept.values.dropped;
        if (r >= 0)
                r = kept_finish(&t->kept, result, t->frames);

        output_summary_done(&result->out);
        output_summary_done(&result->err);
        buffer_consume(&t->code, buffer_size(&t->code));
        t->interpreter = NULL;
        t->stage = TURN_IDLE;
        return r < 0 || !i ? r : turn_consider_checkpoint(t, i);
}

/* The output pipes, as of now. What comes later is the next turn's. */
static int turn_drain(Turn *t) {
        int r = 0;

        for (InterpreterStream k = 0; r >= 0 && k < _INTERPRETER_STREAM_MAX; k++)
                r = interpreter_drain(t->interpreter, k, t->frames);
        return r;
}

void turn_kill(Turn *t) {
        interpreter_kill(t->interpreter);
        turn_enter(t, TURN_ENDING, END_USEC);
}

static int turn_fail_start(Turn *t, int error) {
        const char *name = interpreter_name(t->interpreter);

        if (error == -ENOENT)
                result_set_error(&t->result, "missing", "there is no %s here", name);
        else
                result_set_error(&t->result, "start", "%s could not be started: %s", name, strerrordesc_np(-error));
        return turn_finish(t);
}

int turn_execute(Turn *t) {
        return interpreter_command(t->interpreter, "execute", t->token, buffer_data(&t->code), buffer_size(&t->code));
}

void turn_enter_running(Turn *t) {
        turn_enter(t, TURN_RUNNING, MAX(t->timeout_usec, SETTLE_USEC));
        t->settled_usec = t->deadline_usec - MAX(t->timeout_usec, SETTLE_USEC) + SETTLE_USEC;
}

void turn_wait_to_start(Turn *t) {
        t->backoff_usec = START_BACKOFF_USEC;
        t->start_until_usec = now_monotonic() + START_RETRY_USEC;
        turn_enter(t, TURN_WAITING, t->backoff_usec);
}

/* The code goes out with the start: by the time the driver can read, it is there. */
int turn_start(Turn *t) {
        Interpreter *i = t->interpreter;
        int r;

        if (i->pid == 0 && i->checkpoints.n > 0)
                return turn_promote(t, /* code_was_run= */ false);

        /* One that was killed may still be on its way out. */
        r = i->pid > 0 ? -EAGAIN : interpreter_start(i);
        if ((r == -EAGAIN || r == -ENOMEM) && now_monotonic() < t->start_until_usec) {
                turn_enter(t, TURN_WAITING, t->backoff_usec);
                t->backoff_usec *= 2;
                return 0;
        }
        if (r < 0)
                return turn_fail_start(t, r);

        t->stage = TURN_STARTING;
        t->deadline_usec = t->begun_usec + AGENT_START_USEC;
        r = turn_execute(t);
        return r == -EPIPE ? 0 : r;
}

static int turn_begin_output(Turn *t) {
        int r = 0;

        for (InterpreterStream k = 0; r >= 0 && k < _INTERPRETER_STREAM_MAX; k++) {
                r = output_begin(&t->interpreter->pipes[k].output, t->id, t->frames);
                t->result.late = t->result.late || r > 0;
        }
        return r;
}

int turn_begin(Turn *t, uint64_t id, const char *payload, size_t size) {
        ExecuteRequest request;
        int r;

        if (t->stage != TURN_IDLE)
                return -EPROTO;

        t->id = id;
        t->result = (TurnResult) {};
        t->begun_usec = now_monotonic();
        t->begun_ticks = children_clock();
        outbox_begin(&t->outbox);

        r = request_parse(payload, size, &request);
        if (r >= 0)
                t->interpreter = interpreter_find(t->interpreters, request.interpreter);
        kept_begin(&t->kept, id, t->interpreter, t->interpreter ? payload : NULL);
        if (!t->interpreter) {
                result_set_error(&t->result, "protocol", "the request cannot be understood");
                return turn_finish(t);
        }

        t->timeout_usec = request.timeout_usec;
        turn_take_state(t, &request);
        r = interpreter_make_token(t->token);
        if (r >= 0)
                r = turn_begin_output(t);
        if (r >= 0)
                r = buffer_append(&t->code, request.code, request.code_size);
        if (r < 0)
                return r;

        t->deaths = 0;
        t->backoff_usec = START_BACKOFF_USEC;
        t->start_until_usec = t->begun_usec + START_RETRY_USEC;
        if (interpreter_is_live(t->interpreter)) {
                r = turn_secure_state(t);
                if (r >= 0)
                        r = turn_execute(t);
                if (r >= 0)
                        turn_enter_running(t);
                if (r != -EPIPE)
                        return r;
                /* It died unnoticed: another one can run the code. */
                interpreter_kill(t->interpreter);
        }
        return turn_start(t);
}

int turn_interrupt(Turn *t, uint64_t id) {
        if (id == t->id && t->stage == TURN_PROMOTING && !t->code_was_run)
                t->result.interrupted = true;
        if (id != t->id || t->stage == TURN_IDLE || t->stage > TURN_RUNNING)
                return 0;

        t->result.interrupted = true;
        if (t->stage == TURN_WAITING)
                return turn_finish(t);
        if (t->stage == TURN_STARTING)
                turn_kill(t);
        else
                t->deadline_usec = t->settled_usec;
        return 0;
}

static void turn_on_ready(Turn *t, Interpreter *i) {
        if (i->ready)
                return;

        i->ready = true;
        if (t->interpreter != i || t->stage != TURN_STARTING)
                return;

        /* Only now does the turn's own time begin. */
        t->result.restarted = i->lost;
        t->result.rolled_back_to = t->result.gone = 0;
        i->lost = false;
        turn_enter_running(t);
}

static bool turn_has_code_running(const Turn *t, const Interpreter *i) {
        return t->interpreter == i && t->stage >= TURN_RUNNING && t->stage < TURN_ENDING;
}

static int turn_on_done(Turn *t, Interpreter *i, const Report *report) {
        int r;

        if (t->stage > TURN_RUNNING)
                children_kill(i->pid, t->begun_ticks);

        r = turn_drain(t);
        if (r < 0)
                return r;

        t->result.exit_code = report->status;
        t->result.lost = report->lost;
        return turn_finish(t);
}

static int turn_on_report(Turn *t, Interpreter *i, const Report *report) {
        bool mine;
        int r;

        if (report->kind == REPORT_READY) {
                turn_on_ready(t, i);
                return 0;
        }
        if (report->kind == REPORT_PARKED || report->kind == REPORT_COPY)
                return turn_on_copy(t, i, report);

        mine = turn_has_code_running(t, i) && streq(report->token, t->token);
        if (report->kind == REPORT_VALUE)
                return mine ? values_take(&t->kept.values, t->id, report, t->frames) : 0;
        if (mine)
                return turn_on_done(t, i, report);
        r = turn_on_checkpoint_done(t, i, report);
        if (r != 0)
                return MIN(r, 0);
        /* Of an earlier turn, of an operation, or made up. */
        return t->on_other_report ? t->on_other_report(i, report, t->userdata) : 0;
}

/* A driver whose socket says what no driver does, or nothing ever again, is of no use. */
static void turn_on_broken_driver(Turn *t, Interpreter *i) {
        if (!turn_has_code_running(t, i)) {
                interpreter_kill(i);
                return;
        }

        t->result.exit_code = EXIT_CODE_FAILED;
        turn_kill(t);
}

int turn_on_control(Turn *t, Interpreter *i) {
        Report report;
        int r, received;

        received = interpreter_receive(i);

        while ((r = report_next(&i->reports, &report)) > 0) {
                r = turn_on_report(t, i, &report);
                if (r < 0)
                        return r;
        }

        /* Hanging up is different while code runs: it may have called exec, or closed every descriptor, and
         * goes on until it ends or is timed out. */
        if (r < 0 || (received < 0 && !turn_has_code_running(t, i)))
                turn_on_broken_driver(t, i);
        return 0;
}

int turn_on_output(Turn *t, Interpreter *i, InterpreterStream stream) {
        ssize_t n;

        n = interpreter_read(i, stream, t->interpreter == i ? t->frames : NULL);
        return n < 0 ? (int) n : 0;
}

/* The code was not run, so another process can be given it. */
static int turn_on_early_death(Turn *t, int status) {
        bool killed = WIFSIGNALED(status);

        if (++t->deaths < DEATHS_MAX)
                return turn_start(t);

        result_set_error(&t->result, "start", "%s ended with %s %d while it started", interpreter_name(t->interpreter),
                       killed ? "signal" : "status", killed ? WTERMSIG(status) : WEXITSTATUS(status));
        return turn_finish(t);
}

/* How the interpreter died, as far as that was not our doing. */
static void turn_set_death(Turn *t, int status, bool killed) {
        int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        bool ours = (sig == SIGKILL && killed) || (sig == SIGINT && t->stage > TURN_RUNNING);

        if (ours)
                return;

        t->result.signal = sig;
        t->result.exit_code = sig > 0 ? EXIT_CODE_SIGNAL + sig : WEXITSTATUS(status);
}

int turn_on_death(Turn *t, pid_t pid, int status) {
        bool killed, ready, unread;
        Interpreter *i;
        int r;

        i = interpreter_find_pid(t->interpreters, pid);
        if (!i)
                return 0;

        /* What it said last comes first. */
        for (unsigned k = 0; k < REPORTS_MAX && i->control >= 0; k++) {
                r = turn_on_control(t, i);
                if (r < 0)
                        return r;
        }

        killed = i->killed;
        ready = i->ready;
        unread = i->unread;
        interpreter_ended(i);
        if (t->interpreter != i)
                return 0;

        if (t->stage == TURN_WAITING)
                return turn_start(t);
        if (t->stage == TURN_PROMOTING)
                return turn_promote(t, t->code_was_run);
        r = turn_drain(t);
        if (r < 0)
                return r;
        if (t->stage == TURN_STARTING || (t->stage == TURN_RUNNING && unread))
                return turn_on_early_death(t, status);

        t->result.lost = t->result.lost || ready;
        if (!t->result.error)
                turn_set_death(t, status, killed);
        return ready ? turn_promote(t, /* code_was_run= */ true) : turn_finish(t);
}

uint64_t turn_deadline(const Turn *t) {
        return t->stage == TURN_IDLE ? USEC_INFINITY : t->deadline_usec;
}

int turn_on_deadline(Turn *t) {
        Interpreter *i = t->interpreter;

        switch (t->stage) {
        case TURN_WAITING:
                return turn_start(t);
        case TURN_STARTING:
                result_set_error(&t->result, "start", "%s was not ready within %u seconds", interpreter_name(i),
                               (unsigned) (AGENT_START_USEC / USEC_PER_SEC));
                turn_kill(t);
                return 0;
        case TURN_RUNNING:
                t->result.timed_out = !t->result.interrupted;
                turn_interrupt_code(t);
                return 0;
        case TURN_INTERRUPTED:
                turn_kill_children(t);
                return 0;
        case TURN_CHILDREN_KILLED:
                turn_kill_all(t);
                return 0;
        case TURN_ENDING:
                t->result.lost = t->result.lost || i->ready;
                return turn_finish(t);
        case TURN_PROMOTING:
                return turn_on_promote_deadline(t);
        case TURN_IDLE:
        default:
                return 0;
        }
}
