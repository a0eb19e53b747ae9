/* SPDX-License-Identifier: MIT */

/* The interrupt ladder: the three steps that stop a turn. */

#include <signal.h>

#include "agent/children.h"
#include "agent/turn-private.h"

/* The turn's children get the signal as well: an interpreter that waits for one
 * (subprocess.run(), execFileSync(), a foreground command) goes on only when that one has ended. */
void turn_interrupt_code(Turn *t) {
        Interpreter *i = t->interpreter;
        Children c;

        children_find(i->pid, t->begun_ticks, &c);
        (void) kill(i->pid, SIGINT);
        children_signal(&c, SIGINT);
        turn_enter(t, TURN_INTERRUPTED, AGENT_INTERRUPT_GRACE_USEC);
}

/* An interpreter that waited for none of them may have got the signal before its driver began. */
void turn_kill_children(Turn *t) {
        Interpreter *i = t->interpreter;
        Children c;

        children_find(i->pid, t->begun_ticks, &c);
        children_kill_found(&c, i->pid, t->begun_ticks);
        if (c.n == 0)
                (void) kill(i->pid, SIGINT);
        turn_enter(t, TURN_CHILDREN_KILLED, AGENT_INTERRUPT_GRACE_USEC);
}

void turn_kill_all(Turn *t) {
        Interpreter *i = t->interpreter;

        (void) kill(-i->pid, SIGKILL);
        children_kill(i->pid, t->begun_ticks);
        turn_kill(t);
}
