/* SPDX-License-Identifier: MIT */

/* doctor: what this machine offers. */

#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/format.h"
#include "ctl/verbs.h"

/* Status 1 when something is an error, so that scripts can ask. */
int verb_doctor(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *checks;
        int r, status = EXIT_SUCCESS;

        no_arguments(argc, argv);
        r = call(c, "io.nixsandbox.Doctor", params_new(), &reply);
        if (r != 0)
                return r;
        if (c->json)
                print_json(reply.parameters);

        checks = get_array(reply.parameters, "checks");
        for (size_t i = 0; i < json_object_array_length(checks); i++) {
                json_object *k = json_object_array_get_idx(checks, i);
                const char *verdict = get_string(k, "verdict", "-"), *fix = get_string(k, "fix", NULL);
                _cleanup_free_ char *detail = printable(get_string(k, "detail", ""));

                if (streq(verdict, "error"))
                        status = EXIT_FAILURE;
                if (c->json)
                        continue;
                printf("%-8s %-20s %s\n", verdict, get_string(k, "name", "-"), detail);
                if (fix)
                        printf("%-29s → %s\n", "", fix);
        }
        return c->json ? EXIT_SUCCESS : status;
}
