/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The daemon's side of the conversation with the agent of one session (lib/agent-protocol.h). Everything
 * that comes back is hostile: frames are capped, JSON is typed, frames of another turn than the running one
 * are a fault, and a fault ends the link, and with it the session.
 */

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "daemon/environment.h"
#include "lib/agent-protocol.h"
#include "lib/macro.h"

typedef struct AgentLink AgentLink;

typedef enum OutputStream {
        OUTPUT_STDOUT,
        OUTPUT_STDERR,
        _OUTPUT_STREAM_MAX,
} OutputStream;

typedef struct AgentOutputResult {
        uint64_t bytes, omitted, dropped;
        const char *file; /* NULL, or a path in the session; borrowed, printable */
} AgentOutputResult;

typedef struct AgentOutFile {
        const char *name; /* borrowed; agent_out_name_is_valid() */
        uint64_t bytes;
} AgentOutFile;

/* A RESULT frame, typed; strings are borrowed and valid only in the callback. */
typedef struct AgentResult {
        uint64_t exit_code; /* 0…255 */
        uint64_t signal;
        bool timed_out, interrupted, restarted, late;
        bool lost; /* the interpreter's state */
        bool rolled_back;        /* to that after an earlier turn, in the course of this one */
        uint64_t rolled_back_to; /* which; or that it was begun with, because the interpreter was gone; 0: neither */
        bool pipes_gone, children_gone, threads_gone, directory_gone, files_gone; /* what that state does not have */
        const char *obstacle;    /* NULL, or when lost one of AGENT_OBSTACLES; static */
        AgentOutputResult output[_OUTPUT_STREAM_MAX];
        uint64_t duration_usec;
        const char *full;  /* NULL, or one of AGENT_PLACES; static */
        uint64_t values_dropped;
        AgentOutFile out[AGENT_OUT_MAX]; /* new or changed files of /workspace/out */
        size_t n_out;
        uint64_t out_more;
        const char *error; /* NULL, "missing", "start", "protocol" */
        const char *error_text;
} AgentResult;

/* What an agent that was running before this link says of its running or last turn; its request is what
 * agent_link_execute() was once given. Strings are borrowed. */
typedef struct AgentHello {
        uint64_t turn; /* 0: none yet, as of every agent that has just started */
        bool running;
        uint64_t total_usec; /* of the turns before it */
        uint64_t age_usec;   /* since it began */
        Interpreter interpreter;
        uint64_t timeout_usec;
        const char *origin, *tag; /* may be NULL */
} AgentHello;

/* A turn to run. origin and tag are words (name_is_valid()); tag may be NULL. */
typedef struct AgentRequest {
        uint64_t turn;
        Interpreter interpreter;
        uint64_t timeout_usec;
        const char *origin, *tag;
        const char *checkpoints; /* the mode; static; NULL: none are made */
        uint64_t checkpoint_mb;  /* what they may take */
        const char *code;
        size_t size;
} AgentRequest;

/* The answer to an operation. Everything is borrowed, and error_text and report are the jail's words. */
typedef struct AgentOperated {
        const char *error; /* NULL, or one of AGENT_OPERATION_ERRORS; static */
        const char *error_text;
        json_object *report; /* may be NULL */
} AgentOperated;

typedef struct AgentLinkHandlers {
        /* With a turn in it, that turn's output and, if it is over, its result follow at once. */
        void (*on_hello)(AgentLink *l, const AgentHello *hello, void *userdata);
        void (*on_output)(AgentLink *l, OutputStream stream, bool tail, const char *data, size_t size,
                          void *userdata);
        /* A whole value. Its size is within agent_value_max(), and nothing else of it is known. */
        void (*on_value)(AgentLink *l, AgentValueKind kind, const char *data, size_t size, void *userdata);
        void (*on_result)(AgentLink *l, const AgentResult *result, void *userdata);
        void (*on_operated)(AgentLink *l, uint64_t id, const AgentOperated *operated, void *userdata);
        /* The turns whose state python can go back to, the oldest first; at most AGENT_CHECKPOINTS_MAX. */
        void (*on_checkpoints)(AgentLink *l, const uint64_t *turns, size_t n, void *userdata);
        /* The agent is gone or broke the protocol; why is a static sentence. Nothing follows. */
        void (*on_lost)(AgentLink *l, const char *why, void *userdata);
} AgentLinkHandlers;

/* Takes fd, also when it fails. */
int agent_link_new(sd_event *event, int fd, const AgentLinkHandlers *handlers, void *userdata,
                   AgentLink **ret);
AgentLink *agent_link_free(AgentLink *l);
DEFINE_TRIVIAL_CLEANUP_FUNC(AgentLink *, agent_link_free);

/* Takes over from another daemon whose socket this was: on_hello comes when the agent has answered, and
 * nothing may be sent before. The socket itself is not changed by it, so this can be done again and again. */
int agent_link_attach(AgentLink *l);

/* Its socket, to be handed to another daemon. */
int agent_link_fd(const AgentLink *l);

/* Sends a turn; allowed before the hello of an agent that starts, since the socket keeps it. One at a time. */
int agent_link_execute(AgentLink *l, const AgentRequest *request);
/* Asks to stop the running turn. */
int agent_link_interrupt(AgentLink *l);

/* Sends an operation, after the hello; one at a time, each with a higher id, from 1. Takes fd, the agent's end of its
 * channel, also when it fails; -EBADF: it has none. -EMSGSIZE: request is over AGENT_OPERATE_MAX. */
int agent_link_operate(AgentLink *l, uint64_t id, json_object *request, int fd);
/* Its answer is not wanted any more. */
void agent_link_forget_operation(AgentLink *l);
