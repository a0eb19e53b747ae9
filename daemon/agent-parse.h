/* SPDX-License-Identifier: MIT */
#pragma once

/* The JSON in the frames of an agent (lib/agent-protocol.h). Pure. Strings are borrowed from the object. -EINVAL. */

#include "daemon/agent-link.h"
#include "lib/json.h"

int agent_parse_result(json_object *o, AgentResult *ret);
/* Of an agent that was running before. */
int agent_parse_hello(json_object *o, AgentHello *ret);
/* The EVENT on checkpoints. */
int agent_parse_checkpoints(json_object *o, uint64_t ret_turns[AGENT_CHECKPOINTS_MAX], size_t *ret_n);
int agent_parse_operated(json_object *o, AgentOperated *ret);
