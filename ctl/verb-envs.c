/* SPDX-License-Identifier: MIT */

/* envs: the environments that sessions can be made from, and what was found and is none. */

#include <inttypes.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/die.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

#define NETWORK_COLUMNS 40

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

/* There may be many rules; all of a session's are shown by 'show'. */
static void add_network(Table *t, const char *network) {
        size_t n = text_fit(network, NETWORK_COLUMNS);

        table_add(t, "%.*s%s", (int) n, network, network[n] ? "…" : "");
}

static void print_broken(json_object *list) {
        _cleanup_(table_freep) Table *t = table_new();

        if (json_object_array_length(list) == 0)
                return;
        table_column(t, "PASSED OVER");
        table_column(t, "REASON");
        for (size_t i = 0; i < json_object_array_length(list); i++) {
                json_object *b = json_object_array_get_idx(list, i);

                table_add(t, "%s", get_string(b, "path", "-"));
                table_add(t, "%s", get_string(b, "reason", "-"));
        }
        putchar('\n');
        table_print(t, terminal_columns());
}

int verb_envs(Context *c, int argc, char *argv[]) {
        static const char *const titles[] = { "NAME",    "INTERPRETERS", ">TIMEOUT", ">MEMORY",
                                              "NETWORK", "DESCRIPTION" };
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
        t = table_new();
        for (size_t i = 0; i < ELEMENTSOF(titles); i++)
                table_column(t, titles[i]);
        for (size_t i = 0; i < json_object_array_length(list); i++) {
                json_object *e = json_object_array_get_idx(list, i);
                _cleanup_free_ char *interpreters = interpreter_list(e);

                table_add(t, "%s", get_string(e, "name", "-"));
                table_add(t, "%s", interpreters);
                table_add(t, "%g s", get_number(e, "timeout_seconds"));
                table_add(t, "%" PRIu64 " MB", get_uint(e, "memory_mb"));
                add_network(t, get_string(e, "network", "-"));
                table_add(t, "%s", get_string(e, "description", ""));
        }
        table_print(t, terminal_columns());
        print_broken(get_array(reply.parameters, "broken"));
        return EXIT_SUCCESS;
}
