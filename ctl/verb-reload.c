/* SPDX-License-Identifier: MIT */

/* reload: a changed configuration, or a new version of the daemon, without an end of sessions. */

#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/verbs.h"

int verb_reload(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *params = params_new();
        bool done;
        int r;

        no_arguments(argc, argv);
        params_interactive(c, params);
        r = fetch(c, "io.nixsandbox.Reload", params, &reply, &done);
        if (!done)
                puts("Reloading; sessions go on.");
        return r;
}
