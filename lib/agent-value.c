/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include "agent-value.h"

static const struct {
        const char *name;
        size_t max;
} kinds[_AGENT_VALUE_MAX] = {
        [AGENT_VALUE_RESULT] = { "result", 256 * KIB },
        [AGENT_VALUE_PNG] = { "image/png", 2 * MIB },
        [AGENT_VALUE_JPEG] = { "image/jpeg", 2 * MIB },
        [AGENT_VALUE_SVG] = { "image/svg+xml", 2 * MIB },
        [AGENT_VALUE_HTML] = { "text/html", 2 * MIB },
};

const char *agent_value_to_string(AgentValueKind k) {
        assert(k >= 0 && k < _AGENT_VALUE_MAX);

        return kinds[k].name;
}

AgentValueKind agent_value_from_string(const char *s) {
        for (AgentValueKind k = 0; k < _AGENT_VALUE_MAX; k++)
                if (streq(s, kinds[k].name))
                        return k;
        return _AGENT_VALUE_INVALID;
}

size_t agent_value_max(AgentValueKind k) {
        assert(k >= 0 && k < _AGENT_VALUE_MAX);

        return kinds[k].max;
}
