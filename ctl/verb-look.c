/* SPDX-License-Identifier: MIT */

/* The verbs that only look: list, show, history, events, envs, doctor. */

#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/die.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

static void no_arguments(int argc, char *argv[]) {
        if (argc > 1)
                die_usage("%s: takes no argument", argv[0]);
}

/* One flag letter, or nothing. */
static bool parse_flag(int argc, char *argv[], const char *letter) {
        bool set = false;

        for (int i = 1; i < argc; i++)
                if (argv[i][0] == '-' && streq(argv[i] + 1, letter))
                        set = true;
                else
                        die_usage("%s: unexpected argument '%s'", argv[0], argv[i]);
        return set;
}

/* Names are the client's business: the daemon never blocks on a directory service. */
static const char *user_name(uint64_t uid) {
        static char text[24];
        const struct passwd *pw = getpwuid((uid_t) uid);

        if (pw)
                return pw->pw_name;
        (void) snprintf(text, sizeof(text), "%" PRIu64, uid);
        return text;
}

/* Ends every reply that has an error, and with --json shows the others as they are. */
static int fetch(Context *c, const char *method, json_object *params, VarlinkReply *ret, bool *ret_done) {
        int r = call(c, method, params, ret);

        *ret_done = r != 0;
        if (r == 0 && c->json) {
                print_json(ret->parameters);
                *ret_done = true;
        }
        return r;
}

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
                table_add(t, "%s", user_name(get_uint(s, "uid")));
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
        show_line("user", "%s", user_name(get_uint(s, "uid")));
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

static const char *one_session(int argc, char *argv[]) {
        if (argc != 2 || argv[1][0] == '-')
                die_usage("%s: name one session (see 'sandboxctl list')", argv[0]);
        return argv[1];
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
        static const char *const titles[] = {
                ">TURN", "TIME", "INTERPRETER", ">EXIT", ">TOOK", "CODE", NULL
        };
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_(table_freep) Table *t = NULL;
        json_object *entries;
        bool done;
        int r;

        r = fetch(c, "io.nixsandbox.History", params_session(c, one_session(argc, argv)), &reply, &done);
        if (done)
                return r;

        entries = get_array(reply.parameters, "entries");
        t = table_new(titles);
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
                table_print(t);
        return EXIT_SUCCESS;
}

static void print_events(json_object *events) {
        for (size_t i = 0; i < json_object_array_length(events); i++) {
                json_object *e = json_object_array_get_idx(events, i);
                _cleanup_free_ char *name = printable(get_string(e, "name", "-")),
                                    *detail = printable(get_string(e, "detail", ""));

                printf("%s  %-12s  %-16s  %-15s  %s\n", format_time(get_uint(e, "time_usec")),
                       get_string(e, "session", "-"), name, get_string(e, "event", "-"), detail);
        }
        (void) fflush(stdout);
}

int verb_events(Context *c, int argc, char *argv[]) {
        bool follow = parse_flag(argc, argv, "f");
        json_object *p = params_new();
        VarlinkFlags flags;
        int r;

        param_bool(p, "follow", follow);
        r = call_begin(c, "io.nixsandbox.Events", p, follow ? VARLINK_MORE : 0);
        while (r == 0) {
                _cleanup_(varlink_reply_done) VarlinkReply reply = {};

                r = call_next(c, &reply);
                if (r != 0)
                        return r;
                if (c->json)
                        print_json(reply.parameters);
                else
                        print_events(get_array(reply.parameters, "events"));
                (void) fflush(stdout);
                flags = reply.flags;
                if (!(flags & VARLINK_CONTINUES))
                        return EXIT_SUCCESS;
        }
        return r;
}

/* "python, bash, node", with those that are not installed marked. */
static char *interpreter_list(json_object *e) {
        json_object *names = get_array(e, "interpreters"), *missing = get_array(e, "missing");
        char *text = must_alloc(strdup(""));

        for (size_t i = 0; i < json_object_array_length(names); i++) {
                const char *name = json_object_get_string(json_object_array_get_idx(names, i));
                const char *mark = "";
                char *longer;

                for (size_t k = 0; k < json_object_array_length(missing); k++)
                        if (streq(json_object_get_string(json_object_array_get_idx(missing, k)), name))
                                mark = " (not installed)";
                if (asprintf(&longer, "%s%s%s%s", text, i > 0 ? ", " : "", name, mark) < 0)
                        die_oom();
                free(text);
                text = longer;
        }
        return text;
}

int verb_envs(Context *c, int argc, char *argv[]) {
        static const char *const titles[] = { "NAME",    "INTERPRETERS", ">TIMEOUT", ">MEMORY",
                                              "NETWORK", "DESCRIPTION",  NULL };
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_(table_freep) Table *t = NULL;
        json_object *list;
        bool done;
        int r;

        no_arguments(argc, argv);
        r = fetch(c, "io.nixsandbox.Environments", params_new(), &reply, &done);
        if (done)
                return r;

        list = get_array(reply.parameters, "environments");
        t = table_new(titles);
        for (size_t i = 0; i < json_object_array_length(list); i++) {
                json_object *e = json_object_array_get_idx(list, i);
                _cleanup_free_ char *interpreters = interpreter_list(e);

                table_add(t, "%s", get_string(e, "name", "-"));
                table_add(t, "%s", interpreters);
                table_add(t, "%g s", get_number(e, "timeout_seconds"));
                table_add(t, "%" PRIu64 " MB", get_uint(e, "memory_mb"));
                table_add(t, "%s", get_string(e, "network", "-"));
                table_add(t, "%s", get_string(e, "description", ""));
        }
        table_print(t);
        return EXIT_SUCCESS;
}

/* Status 1 when something is an error, so that scripts can ask. */
int verb_doctor(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *checks;
        int r, status = EXIT_SUCCESS;

        no_arguments(argc, argv);
        r = call(c, "io.nixsandbox.Doctor", params_new(), &reply);
        if (r != 0)
                return r;
        if (c->json)
                print_json(reply.parameters);

        checks = get_array(reply.parameters, "checks");
        for (size_t i = 0; i < json_object_array_length(checks); i++) {
                json_object *k = json_object_array_get_idx(checks, i);
                const char *verdict = get_string(k, "verdict", "-"), *fix = get_string(k, "fix", NULL);
                _cleanup_free_ char *detail = printable(get_string(k, "detail", ""));

                if (streq(verdict, "error"))
                        status = EXIT_FAILURE;
                if (c->json)
                        continue;
                printf("%-8s %-20s %s\n", verdict, get_string(k, "name", "-"), detail);
                if (fix)
                        printf("%-29s → %s\n", "", fix);
        }
        return c->json ? EXIT_SUCCESS : status;
}
