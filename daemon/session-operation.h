/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What is done in a session beside its turns: files in and out, its state saved, variables read. A session does one
 * operation after the other; bulk data goes through a pipe of the caller's that the agent is given one end of. Giving
 * an operation up is closing one's own end, after session_operation_cancel().
 */

#include "daemon/session.h"

/* Waiting in one session, beside the one that runs. */
#define SESSION_OPERATIONS_MAX 16U

/* Errors beside those of the agent (AGENT_OPERATION_ERRORS); text is then a static sentence, or the end's reason. */
#define SESSION_OPERATION_ENDED "ended"
#define SESSION_OPERATION_TIMED_OUT "timed-out"
#define SESSION_OPERATION_RELOADED "reloaded"

/* It is over, and freed when this returns. error NULL: done; text and report are borrowed, may be NULL, and where the
 * error is one of the agent's they are what a hostile jail says. Never called from inside session_operate(). */
typedef void (*SessionOperationDone)(SessionOperation *op, const char *error, const char *text, json_object *report,
                                     void *userdata);

struct SessionOperation {
        SessionOperation *next;
        Session *session;       /* borrowed; NULL: not queued */
        json_object *request;   /* owned: {"operation":…}, at most AGENT_OPERATE_MAX bytes of text */
        int fd;                 /* owned until it begins: the agent's end of the channel; -EBADF: none */
        bool needs_drivers;     /* it begins when no turn runs, and no turn begins until it is over */
        bool turns_go_on;       /* but for this one, which only begins so: the agent holds back what it must */
        uint64_t deadline;      /* CLOCK_MONOTONIC; the time it waits counts */
        SessionOperationDone on_done;
        void *userdata;
};

/* Takes request and fd, also when it fails. */
int session_operation_new(json_object *request, int fd, SessionOperation **ret);
SessionOperation *session_operation_free(SessionOperation *op);
DEFINE_TRIVIAL_CLEANUP_FUNC(SessionOperation *, session_operation_free);

/* Takes op, also when it fails. A session in standby is thawed for it. -EBUSY: too many wait; -EHOSTDOWN: it is frozen
 * by hand, or on its way out; on_done is not called then. */
int session_operate(Session *s, SessionOperation *op);
/* Without on_done; frees it. */
void session_operation_cancel(SessionOperation *op);
/* Before a reload: all fail. */
void session_operations_abandon(Session *s);
