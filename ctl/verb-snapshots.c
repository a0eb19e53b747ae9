/* SPDX-License-Identifier: MIT */

/* save, snapshots, restore: the state of sessions on the daemon's disk. */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/select.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

static void print_notice(json_object *reply) {
        const char *notice = get_string(reply, "notice", NULL);
        _cleanup_free_ char *safe = notice ? printable(notice) : NULL;

        if (safe)
                fprintf(stderr, "sandboxctl: %s\n", safe);
}

int verb_save(Context *c, int argc, char *argv[]) {
        unsigned flags = take_flags(&argc, argv, "a");
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *p;
        bool done;
        int r;

        if (argc != 2)
                die_usage("save: name one session (see 'sandboxctl list')");
        r = select_one(c, argv[1], flags & 1, &p);
        if (r != 0)
                return r;
        r = fetch(c, "io.nixsandbox.Save", p, &reply, &done);
        if (done)
                return r;

        printf("%s %s (%s)\n", get_bool(reply.parameters, "unchanged") ? "Unchanged since" : "Saved as",
               get_string(reply.parameters, "snapshot", "?"), format_bytes(get_uint(reply.parameters, "size")));
        print_notice(reply.parameters);
        return EXIT_SUCCESS;
}

static void print_snapshots(json_object *list, bool all) {
        static const char *const titles[] = { "ID", "SESSION", "SAVED", ">TURNS", ">SIZE", ">LEFT OUT", "REASON" };
        _cleanup_(table_freep) Table *t = table_new();

        if (all)
                table_column(t, "USER");
        for (size_t i = 0; i < ELEMENTSOF(titles); i++)
                table_column(t, titles[i]);
        for (size_t i = 0; i < json_object_array_length(list); i++) {
                json_object *o = json_object_array_get_idx(list, i);

                if (all)
                        table_add(t, "%s", format_user(get_uint(o, "uid")));
                table_add(t, "%s", get_string(o, "id", "-"));
                table_add(t, "%s", get_string(o, "session", "-"));
                table_add(t, "%s", format_time(get_uint(o, "time_usec")));
                table_add(t, "%" PRIu64, get_uint(o, "turns"));
                table_add(t, "%s", format_bytes(get_uint(o, "size")));
                table_add(t, "%" PRIu64, get_uint(o, "skipped"));
                table_add(t, "%s", get_string(o, "reason", "-"));
        }
        table_print(t, terminal_columns());
}

int verb_snapshots(Context *c, int argc, char *argv[]) {
        unsigned flags = take_flags(&argc, argv, "a");
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *p = params_list(c, flags & 1), *list;
        bool done;
        int r;

        if (argc > 2)
                die_usage("snapshots: at most one session");
        if (argc == 2) {
                param_string(p, "session", argv[1]);
                param_string(p, "project", c->project);
        }
        r = fetch(c, "io.nixsandbox.Snapshots", p, &reply, &done);
        if (done)
                return r;

        list = get_array(reply.parameters, "snapshots");
        if (json_object_array_length(list) == 0)
                fputs("No snapshots.\n", stderr);
        else
                print_snapshots(list, flags & 1);
        return EXIT_SUCCESS;
}

int verb_restore(Context *c, int argc, char *argv[]) {
        static const struct option options[] = {
                { "snapshot", required_argument, NULL, 's' },
                { "project-mode", required_argument, NULL, 'p' },
                {},
        };
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        const char *snapshot = NULL, *project_mode = NULL;
        json_object *p;
        bool done;
        int o, r;

        optind = 0;
        while ((o = getopt_long(argc, argv, "", options, NULL)) >= 0)
                if (o == 's')
                        snapshot = optarg;
                else if (o == 'p')
                        project_mode = optarg;
                else
                        die_usage("restore: bad option");
        argc -= optind;
        argv += optind;
        if (argc < 1 || argc > 2)
                die_usage("restore: the session that was saved, and a name for the new one if it is another");

        p = params_new();
        param_string(p, "session", argv[0]);
        param_string(p, "project", c->project);
        param_string(p, "name", argc == 2 ? argv[1] : argv[0]);
        param_string(p, "snapshot", snapshot);
        param_string(p, "project_mode", project_mode);
        r = fetch(c, "io.nixsandbox.Restore", p, &reply, &done);
        if (done)
                return r;

        printf("Session %s (%s)\n", get_string(reply.parameters, "session", "?"),
               get_string(reply.parameters, "id", "?"));
        print_notice(reply.parameters);
        return EXIT_SUCCESS;
}
