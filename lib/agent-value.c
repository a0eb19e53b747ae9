/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include "agent-value.h"
#include "text.h"

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

/* What is no text but does something to it: the second set of control characters (U+0080 to U+009F), ends of lines
 * and paragraphs (U+2028 and after), and what turns its direction around (up to U+202E; U+2066 to U+2069). */
static bool is_control(const uint8_t *p) {
        if (*p == 0xc2)
                return p[1] < 0xa0;
        if (*p == 0xe2 && p[1] == 0x80)
                return p[2] >= 0xa8 && p[2] <= 0xae;
        if (*p == 0xe2 && p[1] == 0x81)
                return p[2] >= 0xa6 && p[2] <= 0xa9;
        return *p < ' ' || *p == 0x7f;
}

bool agent_out_name_is_valid(const char *name) {
        size_t n = strlen(name);

        if (n == 0 || n > AGENT_OUT_NAME_MAX || streq(name, ".") || streq(name, "..") || !utf8_is_valid(name, n, NULL))
                return false;
        for (const uint8_t *p = (const uint8_t *) name; *p; p++)
                if (*p == '/' || is_control(p))
                        return false;
        return true;
}
