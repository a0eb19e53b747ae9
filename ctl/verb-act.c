/* SPDX-License-Identifier: MIT */

/* kill, freeze, thaw, interrupt: one thing done to one or several sessions. */

#include "ctl/die.h"
#include "ctl/verbs.h"

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
