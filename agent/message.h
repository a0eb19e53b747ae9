/* SPDX-License-Identifier: MIT */
#pragma once

/* The JSON in the frames of lib/agent-protocol.h, parsed and printed. Pure. */

#include <errno.h>

#include "agent/driver-protocol.h"
#include "agent/outbox.h"
#include "agent/output.h"
#include "lib/buffer.h"

#define REQUEST_TIMEOUT_USEC_MAX (UINT64_C(7) * 24 * 3600 * USEC_PER_SEC)
#define REQUEST_HEAD_MAX 511U           /* bytes of its JSON */

typedef enum CheckpointMode {
        CHECKPOINTS_NEVER,
        CHECKPOINTS_AUTO,
        CHECKPOINTS_ALWAYS,
        _CHECKPOINTS_MODE_MAX,
        _CHECKPOINTS_MODE_INVALID = -EINVAL,
} CheckpointMode;

typedef struct ExecuteRequest {
        char interpreter[16];
        uint64_t timeout_usec;
        CheckpointMode checkpoints;     /* never, unless it is said */
        uint64_t checkpoint_bytes;      /* what copies may hold */
        const char *code;               /* borrowed from the payload */
        size_t code_size;
} ExecuteRequest;

/* -EBADMSG or -EINVAL: not a request. */
int request_parse(const char *payload, size_t size, ExecuteRequest *ret);

/* Of a RESULT, where it is not the interpreter's own. */
#define EXIT_CODE_FAILED 1
#define EXIT_CODE_TIMED_OUT 124
#define EXIT_CODE_MISSING 127
#define EXIT_CODE_SIGNAL 128
#define EXIT_CODE_INTERRUPTED 130

/* Why a turn that lost the state had no checkpoint to go back to. */
typedef enum CheckpointObstacle {
        CHECKPOINT_NO_OBSTACLE,
        CHECKPOINT_NOT_FORKED = PARK_NOT_FORKED,
        CHECKPOINT_THREADS = PARK_THREADS,
        CHECKPOINT_LOCKED = PARK_LOCKED,
        CHECKPOINT_LARGE = PARK_LARGE,
        CHECKPOINT_NOT_WORTH_IT,        /* in mode auto, after short turns */
        _CHECKPOINT_OBSTACLE_MAX,
} CheckpointObstacle;

typedef struct TurnResult {
        int exit_code;
        int signal;
        bool timed_out, interrupted;
        bool lost;                      /* the interpreter's state */
        bool rolled_back;               /* it is that after an earlier turn */
        uint64_t rolled_back_to;        /* which, also if that was so before the code was run; 0: neither */
        unsigned gone;                  /* what that state cannot have: WAKE_* */
        CheckpointObstacle obstacle;    /* of a turn that lost the state */
        bool restarted;
        bool late;
        OutputSummary out, err;
        const char *full;               /* place without room; static; NULL: none, or not looked for */
        uint64_t duration_usec;
        uint64_t values_dropped;
        const Outbox *outbox;           /* borrowed; NULL: not looked at */
        const char *error;              /* static; NULL: none */
        char error_text[160];
} TurnResult;

/* Says that the turn could not run, in one of the protocol's words (static) and in a sentence. */
void result_set_error(TurnResult *result, const char *error, const char *format, ...) _printf_(3, 4);

/* What a daemon that takes over an agent must know of it. */
typedef struct HelloState {
        uint64_t turn;                  /* the running or last one; 0: none yet */
        bool running;
        uint64_t total_usec;            /* of the turns before it */
        uint64_t age_usec;              /* since it began */
        const char *request;            /* its JSON, or "" */
} HelloState;

/* Appends a whole frame. state NULL: of an agent that has just started. */
int hello_append(const HelloState *state, Buffer *frames);
/* Appends the payload of a RESULT frame. */
int result_print(const TurnResult *result, Buffer *b);
