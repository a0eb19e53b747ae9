/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One execution inside a session: what was asked, what came out so far, who waits for it. A turn is owned by
 * its session: queued, running, or finished and kept until someone waits for it. Waiters are varlink calls:
 * the call that asked for the turn (its owner: when it goes away the turn is stopped) and later Wait calls.
 */

#include "daemon/agent-link.h"
#include "daemon/turn-values.h"
#include "lib/buffer.h"
#include "lib/json.h"
#include "lib/text.h"
#include "lib/varlink-server.h"

typedef struct Turn Turn;

/* What a turn knows of its session; lives in it. */
typedef struct TurnContext {
        const char *session_id;
        const char *session_name; /* NULL: ephemeral */
        const char *environment;
        /* The call that asked for the turn has gone away. The turn may be freed in it. */
        void (*on_abandoned)(Turn *t, void *userdata);
        void *userdata;
} TurnContext;

/* What a session was to the turn's caller; a static table of the API's words. */
typedef enum SessionOrigin {
        SESSION_ORIGIN_EPHEMERAL,
        SESSION_ORIGIN_CREATED,
        SESSION_ORIGIN_RESUMED,
        SESSION_ORIGIN_RESTORED,
        _SESSION_ORIGIN_MAX,
} SessionOrigin;

const char *session_origin_to_string(SessionOrigin o);
SessionOrigin session_origin_from_string(const char *s); /* may be NULL; resumed for what is unknown */

typedef struct TurnWaiter {
        struct TurnWaiter *next;
        Turn *turn;
        VarlinkLink *link; /* a reference */
        bool owner;
        bool stream;        /* wants output as it comes */
        uint64_t answer_at; /* CLOCK_MONOTONIC: answer "still running" then; USEC_INFINITY: never */
} TurnWaiter;

typedef struct TurnOutput {
        Buffer text; /* head, later all; valid UTF-8 */
        Utf8Decoder decoder;
        size_t head_size; /* bytes that were decoded */
        Buffer tail;      /* bytes, until it is known whether anything is missing before them */
        uint64_t omitted;
        char *file;
} TurnOutput;

struct Turn {
        Turn *next;                 /* in the session's queue */
        const TurnContext *context; /* borrowed */
        uint64_t number;            /* 0 until it starts */
        Interpreter interpreter;
        SessionOrigin origin;
        char *tag; /* the caller's word for it, or NULL */
        uint64_t timeout_usec;
        char *code;
        size_t code_size;
        TurnWaiter *waiters;

        uint64_t started; /* CLOCK_MONOTONIC */
        uint64_t started_realtime;
        bool interrupt_sent;
        bool abandoned; /* nobody will ask for its result */
        bool finished;
        bool told; /* it was over, and an event, before this daemon began */

        TurnOutput output[_OUTPUT_STREAM_MAX];
        TurnValues values;
        Buffer notice; /* sentences, one a line */
        int exit_code;
        int signal;
        bool timed_out;
        bool lost;
        bool rolled_back; /* its state is that after an earlier turn, or was when it began */
        const char *full; /* place without room; static; NULL: none */
        uint64_t duration_usec;
};

int turn_new(const TurnContext *context, Interpreter interpreter, SessionOrigin origin,
             uint64_t timeout_usec, const char *code, size_t code_size, Turn **ret);
/* Does not answer waiters: they must have been answered or failed. */
Turn *turn_free(Turn *t);
DEFINE_TRIVIAL_CLEANUP_FUNC(Turn *, turn_free);

/* Names it for Wait; tag may be NULL. */
int turn_set_tag(Turn *t, const char *tag);

/* Adds a sentence to what the reply says. */
int turn_add_notice(Turn *t, const char *format, ...) _printf_(2, 3);

/* Makes a call wait for the turn. */
int turn_add_waiter(Turn *t, VarlinkLink *link, bool owner, bool stream, uint64_t answer_at);

int turn_take_output(Turn *t, OutputStream stream, bool tail, const char *data, size_t size);
/* Takes over a result: codes, counts, and the sentences that follow from them. */
int turn_take_result(Turn *t, const AgentResult *result);

/* Answers all waiters: with the finished turn; or the ones whose answer_at has come, with the turn as it is.
 * Returns how many were answered, or negative errno. */
int turn_answer(Turn *t, uint64_t now);
/* The earliest answer_at; USEC_INFINITY when nobody set one. */
uint64_t turn_next_answer(const Turn *t);
/* Answers all waiters with an error; parameters is borrowed. */
void turn_fail(Turn *t, const char *error, json_object *parameters);
