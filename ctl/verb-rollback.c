/* SPDX-License-Identifier: MIT */

/* rollback: python of a session as it was some checkpoints ago. */

#include <inttypes.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/die.h"
#include "ctl/verbs.h"
#include "lib/text.h"

int verb_rollback(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *params;
        uint64_t steps = 1;
        bool done;
        int r;

        if (argc < 2 || argc > 3 || argv[1][0] == '-')
                die_usage("rollback: expected SESSION [STEPS]");
        if (argc == 3 && (parse_u64(argv[2], &steps) < 0 || steps < 1 || steps > 1000))
                die_usage("rollback: '%s' is no number of steps, which is 1 to 1000", argv[2]);

        params = params_session(c, argv[1]);
        if (json_put_uint(params, "steps", steps) < 0)
                die_oom();
        r = fetch(c, "io.nixsandbox.Rollback", params, &reply, &done);
        if (!done)
                puts(get_string(reply.parameters, "notice", "Done."));
        return r;
}
