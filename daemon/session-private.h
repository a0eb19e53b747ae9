/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of the session object (session.c, session-start.c, session-turns.c, session-bounds.c) share
 * with each other only. */

#include "daemon/event-log.h"
#include "daemon/session.h"

#define SESSION_START_TRIES 3U
#define SESSION_START_USEC (20 * USEC_PER_SEC)

/* The one writer of s->state: asserts the table, logs, tells the event log. detail may be NULL; by is who
 * asked for it, NULL: sandboxd itself. */
void session_set_state(Session *s, SessionState state, const char *detail, const uid_t *by);

/* session-event.c: something happened to it, for the event log and the audit trail (event-log.h). */
void session_event(Session *s, const char *event, const char *detail);
void session_event_full(Session *s, const char *event, const char *detail, const uid_t *by,
                        const EventField *fields);
/* exec_turn; detail, if not NULL, says in a word what is not as it should be. */
void session_event_turn(Session *s, const Turn *t, const char *detail);
/* usage_metered: what it used in all, as the kernel told last. */
void session_event_usage(Session *s);

/* session-bounds.c. session_arm_timer() makes sure that the timer fires by the earliest deadline there is;
 * cheap when it is armed for an earlier time already. */
void session_arm_timer(Session *s);
/* Those of the configuration become its own. */
void session_arm_bounds(Session *s);
void session_reap(Session *s, Bound b); /* it has hit one */
int session_on_timer(sd_event_source *source, uint64_t usec, void *userdata);

/* session-standby.c */
uint64_t session_standby_next_deadline(const Session *s);
void session_standby_on_time(Session *s, uint64_t now);

/* session-hits.c */
void session_read_throttled(Session *s); /* what was before is no matter of the next turn */
void session_hits_before_turn(Session *s, uint64_t now);
void session_hits_after_turn(Session *s, Turn *t);
bool session_hits_memory(Session *s); /* since the last turn; told as an event */

/* session-start.c */
void session_start_on_time(Session *s, uint64_t now); /* retry or give up */
void session_kill_jail(Session *s);                   /* SIGKILL to all of it */
void session_drop_jail(Session *s);                   /* forget link, pid and descriptors */

int session_watch_jail(Session *s);                   /* for its end */

/* session-keep.c */
void session_keep_later(Session *s); /* what the next daemon had better know, but need not */
void session_keep_on_time(Session *s, uint64_t now);
void session_keep_socket(Session *s, int fd);
void session_forget_socket(Session *s);
void session_forget(Session *s);

/* session-adopt.c */
void session_on_attached(Session *s, const AgentHello *hello);
void session_attach_on_thaw(Session *s);
void session_attach_on_time(Session *s, uint64_t now);
void session_attach_cancel(Session *s);

/* session-save-reply.c; parts are what a snapshot has. */
int save_skipped_notice(json_object *parts, char **ret); /* NULL: all was saved */
int session_save_reply_new(const SessionSave *v, bool unchanged, json_object *parts, json_object **ret);
void session_save_answer_done(SessionSave *v, json_object *parts);
void session_save_answer_failed(Session *s, const char *error, const char *why);

/* session-turns.c */
void session_turns_dispatch(Session *s);      /* start the next turn if it can be */
void session_turns_on_hello(Session *s);
void session_turns_on_agent_lost(Session *s); /* before the jail is started again: back into the queue */
void session_turns_on_time(Session *s, uint64_t now);
void session_turns_fail_all(Session *s, const char *error, json_object *parameters);
/* The same, but the running one goes on for nobody. */
void session_turns_fail_waiting(Session *s, const char *error, json_object *parameters);
/* The turns that wait, as a list, to another session. */
Turn *session_turns_take_queue(Session *s);
void session_turns_give_queue(Session *s, Turn *first);
uint64_t session_turns_next_deadline(const Session *s);
void session_turns_lose_agent(Session *s, const char *why); /* it cannot be talked to any more */

/* session-result.c */
extern const AgentLinkHandlers session_agent_handlers;

/* session-operation.c */
void session_operations_dispatch(Session *s); /* begin the next one if it can be; part of session_turns_dispatch() */
void session_on_operated(Session *s, const AgentOperated *operated);
void session_operations_on_time(Session *s, uint64_t now);
void session_operations_fail_all(Session *s, const char *error, const char *text);
uint64_t session_operations_next_deadline(const Session *s);
bool session_operations_hold_turns(const Session *s); /* the next turn has to wait for one */

/* session.c */
/* SessionEnded, to all who wait for turns; keep_running as session_turns_fail_waiting(). */
void session_fail_turns_ended(Session *s, const char *reason, bool keep_running);
/* One without a jail; id NULL: a new one. */
int session_alloc(Manager *m, const SessionRequest *request, const char *id, Session **ret);
void session_on_hello(Session *s);
void session_on_agent_gone(Session *s, const char *why);
