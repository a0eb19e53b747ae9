/* SPDX-License-Identifier: MIT */
#pragma once

/* The JSON in the frames of lib/agent-protocol.h, parsed and printed. Pure. */

#include "agent/output.h"
#include "lib/buffer.h"

#define REQUEST_TIMEOUT_USEC_MAX (UINT64_C(7) * 24 * 3600 * USEC_PER_SEC)

typedef struct ExecuteRequest {
        char interpreter[16];
        uint64_t timeout_usec;
        const char *code;               /* borrowed from the payload */
        size_t code_size;
} ExecuteRequest;

/* -EBADMSG or -EINVAL: not a request. */
int request_parse(const char *payload, size_t size, ExecuteRequest *ret);

typedef struct TurnResult {
        int exit_code;
        int signal;
        bool timed_out, interrupted;
        bool lost;                      /* the interpreter's state */
        bool restarted;
        bool late;
        OutputSummary out, err;
        uint64_t duration_usec;
        const char *error;              /* static; NULL: none */
        char error_text[160];
} TurnResult;

/* Each appends one whole frame. */
int hello_append(Buffer *frames);
int result_append(const TurnResult *result, uint64_t turn, Buffer *frames);
