/* SPDX-License-Identifier: MIT */

/* history: the turns of a session, and the same turns again in a new one. */

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/run-call.h"
#include "ctl/select.h"
#include "ctl/table.h"
#include "ctl/terminal.h"
#include "ctl/verbs.h"
#include "lib/text.h"

/* Bytes of a first line of code in the table. */
#define LINE_SIZE 70

static void add_turn(Table *t, json_object *e) {
        const char *code = get_string(e, "code", "");
        size_t line = strcspn(code, "\n");

        table_add(t, "%" PRIu64, get_uint(e, "turn"));
        table_add(t, "%s", format_time(get_uint(e, "time_usec")));
        table_add(t, "%s", get_string(e, "interpreter", "-"));
        table_add(t, "%" PRIu64, get_uint(e, "exit_code"));
        table_add(t, "%.0f ms", get_number(e, "duration_ms"));
        table_add(t, "%.*s%s", (int) MIN(line, (size_t) LINE_SIZE), code, line > LINE_SIZE || code[line] ? " …" : "");
}

static void print_table(json_object *entries) {
        static const char *const titles[] = { ">TURN", "TIME", "INTERPRETER", ">EXIT", ">TOOK", "CODE" };
        _cleanup_(table_freep) Table *t = table_new();

        for (size_t i = 0; i < ELEMENTSOF(titles); i++)
                table_column(t, titles[i]);
        for (size_t i = 0; i < json_object_array_length(entries); i++)
                add_turn(t, json_object_array_get_idx(entries, i));

        if (table_rows(t) == 0)
                puts("No turns yet.");
        else
                table_print(t, terminal_columns());
}

/* ---- again ---- */

static int refuse(const Context *c, const char *error, const char *format, ...) _printf_(3, 4);
static int refuse(const Context *c, const char *error, const char *format, ...) {
        _cleanup_free_ char *message = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&message, format, ap);
        va_end(ap);
        if (r < 0)
                die_oom();
        return print_error(c, error, message, NULL);
}

/* A state that part of the turns has made would be none that ever was. 0, or the exit status. */
static int check_entries(const Context *c, json_object *entries) {
        size_t n = json_object_array_length(entries);

        if (n == 0)
                return refuse(c, "io.nixsandbox.NoSuchTurn", "There are no turns to run again.");
        for (size_t i = 0; i < n; i++) {
                json_object *e = json_object_array_get_idx(entries, i);

                if (get_bool(e, "code_truncated"))
                        return refuse(c, "io.nixsandbox.NotSupported",
                                      "Turn %" PRIu64 " was too long to be kept whole, so the turns cannot be run "
                                      "again. 'sandboxctl save' and 'restore' copy a session's state.",
                                      get_uint(e, "turn"));
        }
        if (get_uint(json_object_array_get_idx(entries, 0), "turn") != 1)
                fprintf(stderr, "sandboxctl: the first turns are not in the history any more: what they did is "
                                "missing\n");
        return 0;
}

/* What the copy is to be made like. 0, or the exit status. */
static int find_environment(Context *c, json_object *params, char **ret) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *session;
        int r;

        r = call(c, "io.nixsandbox.Show", json_object_get(params), &reply);
        if (r != 0)
                return r;
        if (!json_object_object_get_ex(reply.parameters, "session", &session))
                return refuse(c, "io.nixsandbox.Internal", "sandboxd does not say what the session is.");
        *ret = must_alloc(strdup(get_string(session, "environment", "default")));
        return 0;
}

/* 0: nothing has that name. */
static int check_name_is_free(Context *c, const char *name) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *sessions, *s;
        int r;

        if (!name_is_valid(name))
                return refuse(c, "io.nixsandbox.BadName",
                              "A session's name is letters, digits, _ and -, at most %u of them.", NAME_MAX_LENGTH);
        r = call(c, "io.nixsandbox.List", params_list(c, /* all= */ false), &reply);
        if (r != 0)
                return r;

        sessions = get_array(reply.parameters, "sessions");
        for (size_t i = 0; i < json_object_array_length(sessions); i++) {
                s = json_object_array_get_idx(sessions, i);
                if (streq(get_string(s, "name", ""), name) && streq(get_string(s, "project", ""), c->project))
                        return refuse(c, "io.nixsandbox.Busy",
                                      "There is a session '%s' already; the turns are to run in a new one. End it "
                                      "with 'sandboxctl kill %s', or use another name.",
                                      name, name);
        }
        return 0;
}

static int run_again(Context *c, json_object *e, const char *name, const char *environment, json_object *results) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *p = params_new(), *code;
        int r;

        if (json_object_object_get_ex(e, "code", &code) &&
            json_put_bytes(p, "code", json_object_get_string(code), (size_t) json_object_get_string_len(code)) < 0)
                die_oom();
        param_string(p, "interpreter", get_string(e, "interpreter", NULL));
        param_string(p, "environment", environment);
        param_string(p, "session", name);
        param_string(p, "project", c->project);

        r = run_call(c, p, !c->json, &reply);
        if (r != 0)
                return r;
        if (c->json)
                return json_array_put(results, json_object_get(reply.parameters)) < 0 ? (die_oom(), 0) : 0;
        fprintf(stderr, "sandboxctl: turn %" PRIu64 ": exit code %" PRIu64 ", was %" PRIu64 "\n", get_uint(e, "turn"),
                get_uint(reply.parameters, "exit_code"), get_uint(e, "exit_code"));
        return 0;
}

static int replay(Context *c, json_object *params, json_object *entries, const char *name) {
        _cleanup_json_ json_object *o = params_new();
        _cleanup_free_ char *environment = NULL;
        json_object *results = must_alloc(json_object_new_array());
        int r;

        if (json_put_object(o, "turns", results) < 0)
                die_oom();
        param_string(o, "session", name);

        r = check_entries(c, entries);
        if (r == 0)
                r = check_name_is_free(c, name);
        if (r == 0)
                r = find_environment(c, params, &environment);
        for (size_t i = 0; r == 0 && i < json_object_array_length(entries); i++)
                r = run_again(c, json_object_array_get_idx(entries, i), name, environment, results);

        if (r == 0 && c->json)
                print_json(o);
        return r;
}

typedef struct HistoryArguments {
        const char *session, *replay;
        bool others;
} HistoryArguments;

static HistoryArguments parse_arguments(int argc, char *argv[]) {
        static const struct option options[] = {
                { "replay", required_argument, NULL, 'r' },
                {},
        };
        HistoryArguments a = {};
        int k;

        optind = 0;
        while ((k = getopt_long(argc, argv, "a", options, NULL)) >= 0)
                switch (k) {
                case 'a':
                        a.others = true;
                        break;
                case 'r':
                        a.replay = optarg;
                        break;
                default:
                        die_usage("%s: see 'sandboxctl --help'", argv[0]);
                }
        if (argc - optind != 1)
                die_usage("%s: name one session (see 'sandboxctl list')", argv[0]);
        a.session = argv[optind];
        return a;
}

int verb_history(Context *c, int argc, char *argv[]) {
        const HistoryArguments a = parse_arguments(argc, argv);
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_json_ json_object *p = NULL;
        int r;

        r = select_one(c, a.session, a.others, &p);
        if (r == 0)
                r = call(c, "io.nixsandbox.History", json_object_get(p), &reply);
        if (r != 0)
                return r;

        if (a.replay)
                return replay(c, p, get_array(reply.parameters, "entries"), a.replay);
        if (c->json)
                print_json(reply.parameters);
        else
                print_table(get_array(reply.parameters, "entries"));
        return EXIT_SUCCESS;
}
