/* SPDX-License-Identifier: MIT */

/*
 * kill, freeze, thaw, interrupt: one thing done to one or several sessions. More than one on a terminal is
 * asked about first; a script has to say --yes where it says "everything".
 */

#include <getopt.h>
#include <stdio.h>

#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/select.h"
#include "ctl/terminal.h"
#include "ctl/verbs.h"
#include "lib/buffer.h"

#define NAMES_MAX 10U /* in a question */

typedef struct Action {
        const char *verb; /* as a question begins */
        const char *method;
} Action;

typedef struct Arguments {
        Selection selection;
        bool yes;
} Arguments;

static uint64_t user_argument(const Context *c, const char *verb, const char *user) {
        uint64_t uid;

        if (c->host && user[strspn(user, "0123456789")])
                die_usage("%s: with --host give the user's number, which this machine cannot know", verb);
        if (parse_user(user, &uid) < 0)
                die_usage("%s: there is no user '%s'", verb, user);
        return uid;
}

static Arguments parse_arguments(const Context *c, int argc, char *argv[]) {
        enum {
                ARG_ALL = 0x100,
                ARG_USER,
        };
        static const struct option options[] = {
                { "all", no_argument, NULL, ARG_ALL },
                { "user", required_argument, NULL, ARG_USER },
                { "yes", no_argument, NULL, 'y' },
                {},
        };
        Arguments a = {};
        int o;

        optind = 0;
        while ((o = getopt_long(argc, argv, "ay", options, NULL)) >= 0)
                switch (o) {
                case 'a':
                        a.selection.others = true;
                        break;
                case 'y':
                        a.yes = true;
                        break;
                case ARG_ALL:
                        a.selection.everything = true;
                        break;
                case ARG_USER:
                        a.selection.others = a.selection.has_uid = true;
                        a.selection.uid = user_argument(c, argv[0], optarg);
                        break;
                default:
                        die_usage("%s: bad option", argv[0]);
                }

        a.selection.words = (const char *const *) argv + optind;
        a.selection.n_words = (size_t) (argc - optind);
        if (a.selection.everything && a.selection.n_words > 0)
                die_usage("%s: names or --all, not both", argv[0]);
        if (a.selection.n_words == 0 && !selection_is_open(&a.selection))
                die_usage("%s: name a session (see 'sandboxctl list')", argv[0]);
        if (selection_is_open(&a.selection) && !a.yes && !terminal_can_ask())
                die_usage("%s: there is no terminal to ask on; add --yes if you mean all of them", argv[0]);
        return a;
}

/* "Kill 3 sessions (a, b, c)?" */
static char *question(const char *verb, const Targets *t) {
        size_t shown = MIN(t->n, (size_t) NAMES_MAX);
        Buffer b = {};
        char *text;
        int r;

        r = buffer_printf(&b, "%s %zu sessions (", verb, t->n);
        for (size_t i = 0; r >= 0 && i < shown; i++)
                r = buffer_printf(&b, "%s%s", i > 0 ? ", " : "", t->items[i].label);
        if (r >= 0 && shown < t->n)
                r = buffer_printf(&b, " and %zu more", t->n - shown);
        if (r >= 0)
                r = buffer_append_str(&b, ")?");
        if (r < 0 || buffer_take(&b, &text, NULL) < 0)
                die_oom();
        return text;
}

static bool is_wanted(const Action *action, const Arguments *a, const Targets *t) {
        _cleanup_free_ char *text = NULL;

        if (a->yes || t->n < 2 || !terminal_can_ask())
                return true;
        text = question(action->verb, t);
        if (terminal_ask(text))
                return true;
        fputs("Nothing done.\n", stderr);
        return false;
}

static int act_on(Context *c, const Action *action, bool others, const char *session) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *p = params_session(c, session);
        int r;

        if (others)
                params_others(c, p);
        r = call(c, action->method, p, &reply);
        if (r == 0 && c->json)
                print_json(reply.parameters);
        return r;
}

/* A call for each session; goes on after an error. With --json the reply of each is a line. */
static int act(Context *c, int argc, char *argv[], const Action *action) {
        const Arguments a = parse_arguments(c, argc, argv);
        _cleanup_(targets_done) Targets t = {};
        int r, status;

        r = selection_resolve(c, &a.selection, &t);
        if (r != 0)
                return r;
        if (t.n == 0 && !t.failed && !c->json)
                fputs("No sessions.\n", stderr);
        if (!is_wanted(action, &a, &t))
                return EXIT_FAILURE;

        status = t.failed ? EXIT_FAILURE : EXIT_SUCCESS;
        for (size_t i = 0; i < t.n; i++) {
                c->about = t.n > 1 ? t.items[i].label : NULL;
                if (act_on(c, action, a.selection.others, t.items[i].session) != 0)
                        status = EXIT_FAILURE;
        }
        c->about = NULL;
        return status;
}

int verb_kill(Context *c, int argc, char *argv[]) {
        return act(c, argc, argv, &(const Action) { "Kill", "io.nixsandbox.Kill" });
}

int verb_freeze(Context *c, int argc, char *argv[]) {
        return act(c, argc, argv, &(const Action) { "Freeze", "io.nixsandbox.Freeze" });
}

int verb_thaw(Context *c, int argc, char *argv[]) {
        return act(c, argc, argv, &(const Action) { "Thaw", "io.nixsandbox.Thaw" });
}

int verb_interrupt(Context *c, int argc, char *argv[]) {
        return act(c, argc, argv, &(const Action) { "Interrupt", "io.nixsandbox.Interrupt" });
}
