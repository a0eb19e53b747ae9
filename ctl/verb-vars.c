/* SPDX-License-Identifier: MIT */

/* vars: the variables of a session as a table, or one of them in full. */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

static void print_notice(json_object *reply) {
        const char *notice = get_string(reply, "notice", NULL);
        _cleanup_free_ char *safe = notice ? printable(notice) : NULL;

        if (safe)
                fprintf(stderr, "sandboxctl: %s\n", safe);
        if (get_uint(reply, "more") > 0)
                fprintf(stderr, "sandboxctl: %" PRIu64 " more are not shown\n", get_uint(reply, "more"));
}

static void print_table(json_object *variables) {
        _cleanup_(table_freep) Table *t = table_new();

        table_column(t, "NAME");
        table_column(t, "INTERPRETER");
        table_column(t, "TYPE");
        table_column(t, ">SIZE");
        table_column(t, "VALUE");
        for (size_t i = 0; i < json_object_array_length(variables); i++) {
                json_object *v = json_object_array_get_idx(variables, i);

                table_add(t, "%s", get_string(v, "name", "-"));
                table_add(t, "%s", get_string(v, "interpreter", "-"));
                table_add(t, "%s", get_string(v, "type", "-"));
                table_add(t, "%s", has_value(v, "size") ? format_size(get_uint(v, "size")) : "-");
                table_add(t, "%s", get_string(v, "text", ""));
        }
        if (table_rows(t) == 0)
                puts("No variables.");
        else
                table_print(t, terminal_columns());
}

/* Its lines stay lines; nothing else in it reaches a terminal. */
static void print_text(json_object *reply) {
        json_object *variable = NULL;
        _cleanup_free_ char *copy = NULL;
        char *rest, *line;

        (void) json_object_object_get_ex(reply, "variable", &variable);
        copy = must_alloc(strdup(get_string(variable, "text", "")));
        rest = copy;
        while ((line = strsep(&rest, "\n"))) {
                _cleanup_free_ char *safe = printable(line);

                puts(safe);
        }
        if (get_bool(variable, "truncated"))
                fputs("sandboxctl: the rest is not shown\n", stderr);
}

int verb_vars(Context *c, int argc, char *argv[]) {
        static const struct option options[] = { { "interpreter", required_argument, NULL, 'i' }, {} };
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        const char *interpreter = NULL, *name;
        json_object *p;
        bool done;
        int k, r;

        optind = 0;
        while ((k = getopt_long(argc, argv, "+i:", options, NULL)) >= 0) {
                if (k != 'i')
                        die_usage("vars: bad option");
                interpreter = optarg;
        }
        if (argc - optind != 1 && argc - optind != 2)
                die_usage("vars: give a session and, to see it in full, the name of a variable");
        name = argc - optind == 2 ? argv[optind + 1] : NULL;

        p = params_session(c, argv[optind]);
        param_string(p, "interpreter", interpreter);
        if (name)
                param_string(p, "name", name);
        r = fetch(c, name ? "io.nixsandbox.Variable" : "io.nixsandbox.Variables", p, &reply, &done);
        if (done)
                return r;

        if (name)
                print_text(reply.parameters);
        else
                print_table(get_array(reply.parameters, "variables"));
        print_notice(reply.parameters);
        return EXIT_SUCCESS;
}
