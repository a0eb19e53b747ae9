/* SPDX-License-Identifier: MIT */

/* The table of verbs, and the ones that take a session and do one thing to it. */

#include "ctl/verbs.h"

#include <stdio.h>

#include "ctl/die.h"

const Verb verbs[] = {
        { "run", "[-e ENV] [-i INTERPRETER] [-s SESSION] [--timeout S] [--memory MB] [--cpus N] (CODE | -)",
          "run code, in a session or in a sandbox of its own", verb_run },
        { "list", "[-a]", "your sessions, or everyone's", verb_list },
        { "show", "SESSION", "all about one session", verb_show },
        { "kill", "SESSION...", "end sessions and everything in them", verb_kill },
        { "freeze", "SESSION...", "stop sessions until they are thawed", verb_freeze },
        { "thaw", "SESSION...", "let them go on", verb_thaw },
        { "interrupt", "SESSION...", "stop the turn that runs, keep the state", verb_interrupt },
        { "history", "SESSION", "the turns of a session", verb_history },
        { "events", "[-f]", "what happened, and with -f what happens", verb_events },
        { "envs", "", "environments that sessions can be made from", verb_envs },
        { "doctor", "", "what this machine offers, what is missing, and how to mend it", verb_doctor },
        {},
};

static void need_sessions(int argc, char *argv[]) {
        if (argc < 2)
                die_usage("%s: name a session (see 'sandboxctl list')", argv[0]);
        for (int i = 1; i < argc; i++)
                if (argv[i][0] == '-')
                        die_usage("%s: unknown option '%s'", argv[0], argv[i]);
}

/* A call for each session named; goes on after an error. With --json the reply of each is a line. */
static int each_session(Context *c, int argc, char *argv[], const char *method) {
        int status = EXIT_SUCCESS;

        need_sessions(argc, argv);
        for (int i = 1; i < argc; i++) {
                _cleanup_(varlink_reply_done) VarlinkReply reply = {};
                int r = call(c, method, params_session(c, argv[i]), &reply);

                if (r != 0)
                        status = r;
                else if (c->json)
                        print_json(reply.parameters);
        }
        return status;
}

int verb_kill(Context *c, int argc, char *argv[]) {
        return each_session(c, argc, argv, "io.nixsandbox.Kill");
}

int verb_freeze(Context *c, int argc, char *argv[]) {
        return each_session(c, argc, argv, "io.nixsandbox.Freeze");
}

int verb_thaw(Context *c, int argc, char *argv[]) {
        return each_session(c, argc, argv, "io.nixsandbox.Thaw");
}

int verb_interrupt(Context *c, int argc, char *argv[]) {
        return each_session(c, argc, argv, "io.nixsandbox.Interrupt");
}
