/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a turn can give back besides its output: one result, pictures and pages. Words and limits that drivers,
 * agent and daemon share. Pure.
 */

#include "macro.h"

typedef enum AgentValueKind {
        AGENT_VALUE_RESULT,     /* JSON text; the last one of a turn counts */
        AGENT_VALUE_PNG,
        AGENT_VALUE_JPEG,
        AGENT_VALUE_SVG,        /* UTF-8, like HTML */
        AGENT_VALUE_HTML,
        _AGENT_VALUE_MAX,
        _AGENT_VALUE_INVALID = -EINVAL,
} AgentValueKind;

#define AGENT_VALUES_MAX 16U                    /* of one turn, the dropped ones not counted */
#define AGENT_VALUES_SIZE (4U * 1024U * 1024U)  /* bytes of all: as base64 they fit in one varlink message */

/* "result", or the media type. */
const char *agent_value_to_string(AgentValueKind k);
AgentValueKind agent_value_from_string(const char *s);
/* Bytes of one. */
size_t agent_value_max(AgentValueKind k);

/* Files that /workspace/out has after a turn. */
#define AGENT_OUT_MAX 32U
#define AGENT_OUT_NAME_MAX 255U

/* Whether it can be shown: no path, UTF-8, not too long, no control characters. */
bool agent_out_name_is_valid(const char *name);
