/* SPDX-License-Identifier: MIT */

/*
 * events: what happened to sessions, and with -f what happens. A follower outlives the daemon: it connects
 * again, and leaves out what it has shown when the new daemon begins with what happened before.
 */

#include <stdio.h>
#include <time.h>

#include "ctl/arguments.h"
#include "ctl/connect.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/session-view.h"
#include "ctl/verbs.h"

#define RETRY_USEC_MIN (100 * USEC_PER_MSEC)
#define RETRY_USEC_MAX (5 * USEC_PER_SEC)

typedef struct Follower {
        Context *context;
        bool all, follow;
        bool replay;        /* the next reply is about the past */
        uint64_t seen_usec; /* when the last event that was shown happened */
} Follower;

static void print_event(const Context *c, json_object *e) {
        _cleanup_free_ char *name = printable(get_string(e, "name", "-")),
                            *detail = printable(get_string(e, "detail", "")),
                            *session = printable(get_string(e, "session", "-")),
                            *event = printable(get_string(e, "event", "-"));

        printf("%s%s%s  %-12s  %-16s  %-15s  %s", style_begin(STYLE_DIM), format_time(get_uint(e, "time_usec")),
               style_end(STYLE_DIM), session, name, event, detail);
        if (has_value(e, "by") && get_uint(e, "by") != get_uint(e, "uid"))
                printf("%sby %s", *detail ? ", " : "", user_label(c, get_uint(e, "by")));
        puts("");
}

/* The events of a reply that were not shown before, as a reply. */
static json_object *new_events(Follower *f, json_object *events) {
        json_object *o = params_new(), *array = must_alloc(json_object_new_array());
        uint64_t seen = f->replay ? f->seen_usec : 0;

        for (size_t i = 0; i < json_object_array_length(events); i++) {
                json_object *e = json_object_array_get_idx(events, i);
                uint64_t time = get_uint(e, "time_usec");

                if (seen > 0 && time <= seen)
                        continue;
                f->seen_usec = MAX(f->seen_usec, time);
                if (json_array_put(array, json_object_get(e)) < 0)
                        die_oom();
        }
        if (json_put_object(o, "events", array) < 0)
                die_oom();
        f->replay = false;
        return o;
}

static void show(Follower *f, json_object *reply) {
        _cleanup_json_ json_object *fresh = new_events(f, get_array(reply, "events"));
        json_object *events = get_array(fresh, "events");

        if (f->context->json)
                print_json(fresh);
        else
                for (size_t i = 0; i < json_object_array_length(events); i++)
                        print_event(f->context, json_object_array_get_idx(events, i));
        (void) fflush(stdout);
}

static json_object *event_parameters(const Follower *f) {
        json_object *p = params_list(f->context, f->all);

        param_bool(p, "follow", f->follow);
        return p;
}

/* Until the last reply, or the daemon's end, which is -ECONNRESET. Else the exit status. */
static int stream(Follower *f) {
        VarlinkClient *client = f->context->client;
        json_object *p = event_parameters(f);
        VarlinkFlags flags = VARLINK_CONTINUES;
        int r;

        r = varlink_client_send(client, "io.nixsandbox.Events", p, f->follow ? VARLINK_MORE : 0);
        json_object_put(p);
        if (r < 0)
                return -ECONNRESET;

        f->replay = true;
        while (flags & VARLINK_CONTINUES) {
                _cleanup_(varlink_reply_done) VarlinkReply reply = {};

                r = varlink_client_receive(client, USEC_INFINITY, &reply);
                if (r == -ECONNRESET)
                        return r;
                if (r < 0)
                        return print_receive_error(f->context, r);
                if (reply.error)
                        return print_reply_error(f->context, &reply);
                show(f, reply.parameters);
                flags = reply.flags;
        }
        return EXIT_SUCCESS;
}

/* Waits for as long as it takes. */
static void find_daemon(Context *c) {
        for (uint64_t pause = RETRY_USEC_MIN; context_reconnect(c) < 0; pause = MIN(pause * 2, RETRY_USEC_MAX)) {
                const struct timespec t = { .tv_sec = (time_t) (pause / USEC_PER_SEC),
                                            .tv_nsec = (long) (pause % USEC_PER_SEC * 1000) };

                (void) nanosleep(&t, NULL);
        }
        if (!c->json)
                fputs("sandboxctl: sandboxd is back.\n", stderr);
}

int verb_events(Context *c, int argc, char *argv[]) {
        unsigned flags = take_flags(&argc, argv, "af");
        Follower f = { .context = c, .all = flags & 1, .follow = flags & 2 };
        int r;

        no_arguments(argc, argv);

        r = call_connect(c);
        while (r == 0) {
                r = stream(&f);
                if (r != -ECONNRESET)
                        return r;
                r = print_error(c, "io.nixsandbox.Internal",
                                f.follow ? "sandboxd went away; connecting again." : "sandboxd went away.", NULL);
                (void) fflush(stdout);
                if (!f.follow)
                        return r;
                find_daemon(c);
                r = 0;
        }
        return r;
}
