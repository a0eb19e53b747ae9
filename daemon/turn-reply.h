/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a turn says to its caller: the JSON of Run's and Wait's replies, and the sentences of `notice`. Pure.
 * Each sentence says what happened, what was kept or lost, and what to do next.
 */

#include "daemon/bounds.h"
#include "daemon/limits.h"
#include "daemon/turn.h"

/* A reply of a streaming call that holds only output. */
int turn_output_to_json(OutputStream stream, const char *text, size_t size, json_object **ret);

/* Appends the result as text; of a turn that is not finished, with exit_code null and the output so far. */
int turn_reply_append(const Turn *t, Buffer *b);

/* Adds the sentences that follow from a result. */
int turn_describe_result(Turn *t, const AgentResult *result);

/* Limits that a turn ran into. */
typedef enum TurnHit {
        TURN_HIT_MEMORY,
        TURN_HIT_USER_MEMORY, /* not the session's own, but that of its user, or the machine's */
        TURN_HIT_PROCESSES,
        TURN_HIT_CPU,
        TURN_HIT_DISK,
        _TURN_HIT_MAX,
} TurnHit;

const char *turn_hit_to_string(TurnHit h);
/* Adds the sentence about one. workspace_mb: how large /workspace is. */
int turn_describe_hit(Turn *t, const Limits *limits, uint64_t workspace_mb, TurnHit hit);
/* Adds that only so much is left until a bound ends the session. */
int turn_describe_bound(Turn *t, Bound bound, uint64_t left_usec);
