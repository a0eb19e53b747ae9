/* SPDX-License-Identifier: MIT */

/* list: a line for each session. */

#include <inttypes.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/format.h"
#include "ctl/session-view.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

static void add_columns(Table *t, bool users, bool projects) {
        table_column(t, "SESSION");
        table_column(t, "ID");
        table_column(t, "STATE");
        table_column(t, "ENV");
        if (users)
                table_column(t, "USER");
        table_column(t, ">CPU");
        table_column(t, ">MEMORY");
        table_column(t, ">TURNS");
        table_column(t, ">IDLE");
        if (projects)
                table_column(t, "PROJECT");
}

static void add_row(Table *t, const Context *c, json_object *s, bool users, bool projects) {
        table_add(t, "%s", get_string(s, "name", "-"));
        table_add(t, "%s", get_string(s, "id", "-"));
        table_add_styled(t, session_style(s), "%s", session_state_word(s));
        table_add(t, "%s", get_string(s, "environment", "-"));
        if (users)
                table_add(t, "%s", session_user(c, s));
        table_add(t, "%s", has_value(s, "cpu_usec") ? format_clock(get_uint(s, "cpu_usec")) : "-");
        table_add(t, "%s/%s", has_value(s, "memory_bytes") ? format_size(get_uint(s, "memory_bytes")) : "-",
                  format_size(megabytes(get_uint(s, "memory_mb"))));
        table_add(t, "%" PRIu64, get_uint(s, "turns"));
        table_add(t, "%s", get_bool(s, "busy") ? "-" : format_duration(get_uint(s, "idle_usec")));
        if (projects)
                table_add(t, "%s", get_string(s, "project", "-"));
}

static bool has_several_projects(json_object *sessions) {
        const char *first = NULL;

        for (size_t i = 0; i < json_object_array_length(sessions); i++) {
                const char *project = get_string(json_object_array_get_idx(sessions, i), "project", "");

                if (first && !streq(first, project))
                        return true;
                first = project;
        }
        return false;
}

int verb_list(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_(table_freep) Table *t = NULL;
        bool all = take_flags(&argc, argv, "a"), projects, done;
        json_object *sessions;
        int r;

        no_arguments(argc, argv);
        r = fetch(c, "io.nixsandbox.List", params_list(c, all), &reply, &done);
        if (done)
                return r;

        sessions = get_array(reply.parameters, "sessions");
        projects = has_several_projects(sessions);
        t = table_new();
        add_columns(t, all, projects);
        for (size_t i = 0; i < json_object_array_length(sessions); i++)
                add_row(t, c, json_object_array_get_idx(sessions, i), all, projects);

        if (table_rows(t) == 0)
                puts("No sessions.");
        else
                table_print(t, terminal_columns());
        return EXIT_SUCCESS;
}
