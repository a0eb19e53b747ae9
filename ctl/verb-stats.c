/* SPDX-License-Identifier: MIT */

/* stats: what sessions have used of what they may. "-" stands for what this daemon or kernel does not count. */

#include <inttypes.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/select.h"
#include "ctl/session-view.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

typedef const char *(*Formatter)(uint64_t value);

static void add_value(Table *t, json_object *s, const char *key, Formatter format) {
        table_add(t, "%s", has_value(s, key) ? format(get_uint(s, key)) : "-");
}

static void add_row(Table *t, json_object *s, bool networks) {
        json_object *network = get_object(s, "network");

        table_add(t, "%s", session_label(s));
        add_value(t, s, "cpu_usec", format_clock);
        add_value(t, s, "throttled_usec", format_clock);
        add_value(t, s, "memory_bytes", format_size);
        add_value(t, s, "memory_peak_bytes", format_size);
        table_add(t, "%s", format_size(megabytes(get_uint(s, "memory_mb"))));
        add_value(t, s, "oom_kills", format_number);
        add_value(t, s, "processes", format_number);
        add_value(t, s, "processes_max", format_number);
        add_value(t, s, "io_read_bytes", format_size);
        add_value(t, s, "io_write_bytes", format_size);
        add_value(t, s, "turns", format_number);
        add_value(t, s, "turn_usec", format_clock);
        if (!networks)
                return;
        add_value(t, network, "bytes_in", format_size);
        add_value(t, network, "bytes_out", format_size);
        add_value(t, network, "refused", format_number);
}

/* All of a session: a list leaves out what costs a read of a file for each. What has ended meanwhile stays as it
 * was in the list. */
static json_object *look_closer(Context *c, bool others, json_object *session) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_json_ json_object *p = params_session(c, get_string(session, "id", ""));
        json_object *all = NULL;
        int r;

        if (others)
                params_others(c, p);
        r = varlink_client_call(c->client, "io.nixsandbox.Show", p, USEC_INFINITY, &reply);
        if (r < 0 || reply.error || !json_object_object_get_ex(reply.parameters, "session", &all))
                all = session;
        return json_object_get(all);
}

/* The sessions that are meant, or all, in a reply like List's. */
static json_object *chosen(Context *c, const Selection *s, json_object *sessions) {
        json_object *o = params_new(), *array = must_alloc(json_object_new_array());

        for (size_t i = 0; i < json_object_array_length(sessions); i++) {
                json_object *session = json_object_array_get_idx(sessions, i);

                if (s->n_words > 0 && !selection_matches(s, session))
                        continue;
                if (json_array_put(array, look_closer(c, s->others, session)) < 0)
                        die_oom();
        }
        if (json_put_object(o, "sessions", array) < 0)
                die_oom();
        return o;
}

static bool any_network(json_object *sessions) {
        for (size_t i = 0; i < json_object_array_length(sessions); i++)
                if (get_object(json_object_array_get_idx(sessions, i), "network"))
                        return true;
        return false;
}

static void print_table(json_object *sessions) {
        static const char *const titles[] = { "SESSION", ">CPU",  ">THROTTLED", ">MEM",  ">PEAK",  ">LIMIT",
                                              ">OOM",    ">PROC", ">MAX",       ">READ", ">WRITE", ">TURNS",
                                              ">TIME" };
        static const char *const network_titles[] = { ">NET IN", ">NET OUT", ">REFUSED" };
        _cleanup_(table_freep) Table *t = table_new();
        bool networks = any_network(sessions);

        for (size_t i = 0; i < ELEMENTSOF(titles); i++)
                table_column(t, titles[i]);
        for (size_t i = 0; networks && i < ELEMENTSOF(network_titles); i++)
                table_column(t, network_titles[i]);
        for (size_t i = 0; i < json_object_array_length(sessions); i++)
                add_row(t, json_object_array_get_idx(sessions, i), networks);
        table_print(t, terminal_columns());
}

int verb_stats(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_json_ json_object *answer = NULL;
        json_object *sessions;
        Selection s = {};
        bool failed;
        size_t n;
        int r;

        s.others = take_flags(&argc, argv, "a");
        s.words = (const char *const *) argv + 1;
        s.n_words = (size_t) argc - 1;

        r = call(c, "io.nixsandbox.List", params_list(c, s.others), &reply);
        if (r != 0)
                return r;
        c->no_ask_password = true; /* once is enough: what is not granted is left out */
        sessions = get_array(reply.parameters, "sessions");
        failed = selection_say_unmatched(c, &s, sessions);
        answer = chosen(c, &s, sessions);
        n = json_object_array_length(get_array(answer, "sessions"));

        if (c->json && !failed)
                print_json(answer);
        else if (!c->json && n > 0)
                print_table(get_array(answer, "sessions"));
        else if (!c->json && !failed)
                puts("No sessions.");
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
