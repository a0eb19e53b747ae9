/* SPDX-License-Identifier: MIT */

#include "ctl/session-view.h"

#include "ctl/format.h"

const char *session_state_word(json_object *s) {
        return get_bool(s, "busy") ? "busy" : get_string(s, "state", "-");
}

Style session_style(json_object *s) {
        static const struct {
                const char *state;
                Style style;
        } table[] = {
                { "busy",     STYLE_GOOD  },
                { "running",  STYLE_PLAIN },
                { "starting", STYLE_WARN  },
                { "stopping", STYLE_WARN  },
                { "standby",  STYLE_DIM   },
                { "frozen",   STYLE_COLD  },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (streq(session_state_word(s), table[i].state))
                        return table[i].style;
        return STYLE_PLAIN;
}

const char *session_label(json_object *s) {
        return get_string(s, "name", NULL) ?: get_string(s, "id", "-");
}

const char *user_label(const Context *c, uint64_t uid) {
        return c->host ? format_number(uid) : format_user(uid);
}

const char *session_user(const Context *c, json_object *s) {
        return user_label(c, get_uint(s, "uid"));
}

uint64_t megabytes(uint64_t mb) {
        return mb < UINT64_MAX / MIB ? mb * MIB : UINT64_MAX;
}
