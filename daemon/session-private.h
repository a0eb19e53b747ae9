/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of the session object (session.c, session-start.c, session-turns.c) share with each other only. */

#include "daemon/session.h"

#define SESSION_START_TRIES 3U
#define SESSION_START_USEC (20 * USEC_PER_SEC)

/* The one writer of s->state: asserts the table, logs, tells the event log. detail may be NULL. */
void session_set_state(Session *s, SessionState state, const char *detail);

/* Makes sure that session_on_time() runs by the earliest deadline there is. Cheap when one is armed already:
 * a timer that fires too early just looks and is armed again, so a turn costs no timer system calls. */
void session_arm_timer(Session *s);

/* session-start.c */
void session_start_on_time(Session *s, uint64_t now);   /* retry or give up */
void session_kill_jail(Session *s);                     /* SIGKILL to all of it */
void session_drop_jail(Session *s);                     /* forget link, pid and descriptors */

/* session-turns.c */
void session_turns_dispatch(Session *s);                /* start the next turn if it can be */
void session_turns_on_agent_lost(Session *s);           /* before the jail is started again: back into the queue */
void session_turns_on_time(Session *s, uint64_t now);
void session_turns_fail_all(Session *s, const char *error, json_object *parameters);
uint64_t session_turns_next_deadline(const Session *s);
extern const AgentLinkHandlers session_agent_handlers;

/* session.c, for the agent handlers */
void session_on_hello(Session *s);
void session_on_agent_gone(Session *s, const char *why);
