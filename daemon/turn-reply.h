/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a turn says to its caller: the JSON of Run's and Wait's replies, and the sentences of `notice`. Pure.
 * Each sentence says what happened, what was kept or lost, and what to do next.
 */

#include "daemon/cgroup.h"
#include "daemon/turn.h"

/* A reply of a streaming call that holds only output. */
int turn_output_to_json(OutputStream stream, const char *text, size_t size, json_object **ret);

/* Appends the result as text; of a turn that is not finished, with exit_code null and the output so far. */
int turn_reply_append(const Turn *t, Buffer *b);

/* Adds the sentences that follow from a result. */
int turn_describe_result(Turn *t, const AgentResult *result);

/* Adds the sentences about limits that were hit between two readings of the session's counters. */
int turn_describe_limits(Turn *t, const Limits *limits, const CgroupCounters *before,
                         const CgroupCounters *after);
