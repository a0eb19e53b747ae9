/* SPDX-License-Identifier: MIT */

/* events: what happened to sessions, and with -f what happens. */

#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/format.h"
#include "ctl/verbs.h"

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
