/* SPDX-License-Identifier: MIT */

/* show: all about one session; history: its turns. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

static void show_line(const char *name, const char *format, ...) _printf_(2, 3);
static void show_line(const char *name, const char *format, ...) {
        _cleanup_free_ char *text = NULL, *safe = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
                die_oom();
        safe = printable(text);
        printf("%14s  %s\n", name, safe);
}

static void show_session(json_object *s) {
        show_line("name", "%s", get_string(s, "name", "- (a run without a session)"));
        show_line("id", "%s", get_string(s, "id", "-"));
        show_line("user", "%s", format_user(get_uint(s, "uid")));
        show_line("project", "%s", get_string(s, "project", "-"));
        show_line("environment", "%s", get_string(s, "environment", "-"));
        show_line("state", "%s%s", get_string(s, "state", "-"),
                  get_bool(s, "busy") ? ", a turn is running" : "");
        show_line("created", "%s", format_time(get_uint(s, "created_usec")));
        show_line("idle for", "%s", format_duration(get_uint(s, "idle_usec")));
        show_line("turns", "%" PRIu64 ", %" PRIu64 " waiting", get_uint(s, "turns"), get_uint(s, "queued"));
        show_line("turn time", "%s", format_duration(get_uint(s, "turn_usec")));
        if (has_value(s, "cpu_usec"))
                show_line("cpu time", "%s of %g CPUs", format_duration(get_uint(s, "cpu_usec")),
                          get_number(s, "cpus"));
        if (has_value(s, "memory_bytes"))
                show_line("memory", "%s of %" PRIu64 " MB", format_bytes(get_uint(s, "memory_bytes")),
                          get_uint(s, "memory_mb"));
        if (has_value(s, "processes"))
                show_line("processes", "%" PRIu64 " of %" PRIu64, get_uint(s, "processes"),
                          get_uint(s, "processes_max"));
        show_line("/workspace", "at most %" PRIu64 " MB, in memory", get_uint(s, "workspace_mb"));
        show_line("turn timeout", "%g s", get_number(s, "timeout_seconds"));
        show_line("cgroup", "%s", get_string(s, "cgroup", "none"));
}

int verb_show(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *session;
        bool done;
        int r;

        r = fetch(c, "io.nixsandbox.Show", params_session(c, one_session(argc, argv)), &reply, &done);
        if (!done && json_object_object_get_ex(reply.parameters, "session", &session))
                show_session(session);
        return r;
}

int verb_history(Context *c, int argc, char *argv[]) {
        static const char *const titles[] = { ">TURN", "TIME", "INTERPRETER", ">EXIT", ">TOOK", "CODE" };
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_(table_freep) Table *t = NULL;
        json_object *entries;
        bool done;
        int r;

        r = fetch(c, "io.nixsandbox.History", params_session(c, one_session(argc, argv)), &reply, &done);
        if (done)
                return r;

        entries = get_array(reply.parameters, "entries");
        t = table_new();
        for (size_t i = 0; i < ELEMENTSOF(titles); i++)
                table_column(t, titles[i]);
        for (size_t i = 0; i < json_object_array_length(entries); i++) {
                json_object *e = json_object_array_get_idx(entries, i);
                const char *code = get_string(e, "code", "");
                size_t line = strcspn(code, "\n");

                table_add(t, "%" PRIu64, get_uint(e, "turn"));
                table_add(t, "%s", format_time(get_uint(e, "time_usec")));
                table_add(t, "%s", get_string(e, "interpreter", "-"));
                table_add(t, "%" PRIu64, get_uint(e, "exit_code"));
                table_add(t, "%.0f ms", get_number(e, "duration_ms"));
                table_add(t, "%.*s%s", (int) MIN(line, (size_t) 70), code,
                          line > 70 || code[line] ? " …" : "");
        }
        if (table_rows(t) == 0)
                puts("No turns yet.");
        else
                table_print(t, terminal_columns());
        return EXIT_SUCCESS;
}
