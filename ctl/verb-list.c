/* SPDX-License-Identifier: MIT */

/* list: a line for each session. */

#include <inttypes.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/format.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

int verb_list(Context *c, int argc, char *argv[]) {
        static const char *const titles[] = {
                "NAME",  "ID",   "USER",    "ENVIRONMENT", "STATE", ">TURNS",
                ">IDLE", ">CPU", ">MEMORY", "PROJECT",     NULL,
        };
        bool all = parse_flag(argc, argv, "a"), done;
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_(table_freep) Table *t = NULL;
        json_object *p = params_new(), *sessions;
        int r;

        if (all)
                param_bool(p, "all", true);
        r = fetch(c, "io.nixsandbox.List", p, &reply, &done);
        if (done)
                return r;

        sessions = get_array(reply.parameters, "sessions");
        t = table_new(titles);
        for (size_t i = 0; i < json_object_array_length(sessions); i++) {
                json_object *s = json_object_array_get_idx(sessions, i);

                table_add(t, "%s", get_string(s, "name", "-"));
                table_add(t, "%s", get_string(s, "id", "-"));
                table_add(t, "%s", format_user(get_uint(s, "uid")));
                table_add(t, "%s", get_string(s, "environment", "-"));
                table_add(t, "%s", get_bool(s, "busy") ? "busy" : get_string(s, "state", "-"));
                table_add(t, "%" PRIu64, get_uint(s, "turns"));
                table_add(t, "%s", format_duration(get_uint(s, "idle_usec")));
                table_add(t, "%s",
                          has_value(s, "cpu_usec") ? format_duration(get_uint(s, "cpu_usec")) : "-");
                table_add(t, "%s",
                          has_value(s, "memory_bytes") ? format_bytes(get_uint(s, "memory_bytes")) : "-");
                table_add(t, "%s", get_string(s, "project", "-"));
        }
        if (table_rows(t) == 0)
                puts("No sessions.");
        else
                table_print(t);
        return EXIT_SUCCESS;
}
