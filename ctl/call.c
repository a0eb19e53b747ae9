/* SPDX-License-Identifier: MIT */

/* Connection, calls and errors of sandboxctl. */

#include "ctl/call.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/die.h"
#include "ctl/format.h"
#include "lib/daemon-address.h"
#include "lib/private-daemon.h"
#include "lib/text.h"

void context_init(Context *c) {
        const char *project = getenv("PROJECT_DIR");
        char cwd[PATH_MAX];

        if (!project || *project != '/')
                project = getcwd(cwd, sizeof(cwd)) ? cwd : "/";
        /* Only a name: where it is not UTF-8, as file names need not be, something close will do. */
        c->project = must_alloc(utf8_repair(project));
}

void context_done(Context *c) {
        c->client = varlink_client_free(c->client);
        c->project = mfree(c->project);
}

json_object *params_session(const Context *c, const char *session) {
        json_object *p = params_new();

        param_string(p, "session", session);
        param_string(p, "project", c->project);
        return p;
}

void print_json(json_object *o) {
        const char *text = json_text(o, NULL);

        if (!text)
                die_oom();
        puts(text);
}

int print_error(const Context *c, const char *error, const char *message, json_object *parameters) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_free_ char *safe = NULL;

        if (!c->json) {
                safe = printable(message);
                fprintf(stderr, "sandboxctl: %s\n", safe);
                return EXIT_FAILURE;
        }

        o = params_new();
        param_string(o, "error", error);
        param_string(o, "message", message);
        if (json_put_object(o, "parameters",
                            parameters ? json_object_get(parameters) : json_object_new_object()) < 0)
                die_oom();
        print_json(o);
        return EXIT_FAILURE;
}

static int connect_daemon(Context *c) {
        _cleanup_(daemon_address_done) DaemonAddress address = {};
        _cleanup_free_ char *why = NULL;
        int r;

        if (c->client)
                return 0;

        r = daemon_address_resolve(c->socket, &address);
        if (r < 0) {
                if (asprintf(&why,
                             "Cannot use the private daemon's directory in /tmp: %s. Remove what is there, "
                             "or set XDG_RUNTIME_DIR.",
                             strerror(-r)) < 0)
                        die_oom();
                return print_error(c, "io.nixsandbox.NotSupported", why, NULL);
        }
        r = daemon_connect(&address, &c->client, &why);
        if (r < 0)
                return print_error(c, "io.nixsandbox.NotSupported", why ?: strerror(-r), NULL);
        return 0;
}

int call_begin(Context *c, const char *method, json_object *params, VarlinkFlags flags) {
        _cleanup_json_ json_object *owned = params;
        int r;

        r = connect_daemon(c);
        if (r != 0)
                return r;

        r = varlink_client_send(c->client, method, owned, flags);
        if (r == -EMSGSIZE)
                return print_error(c, "io.nixsandbox.LimitExceeded",
                                   "The request is longer than 8 MiB. Put data into files and read them "
                                   "from the code.",
                                   NULL);
        if (r < 0)
                return print_error(c, "io.nixsandbox.Internal",
                                   "sandboxd closed the connection. Is it still running?", NULL);
        return 0;
}

static int print_reply_error(const Context *c, const VarlinkReply *reply) {
        const char *message = reply->parameters ? get_string(reply->parameters, "message", NULL) : NULL;
        _cleanup_free_ char *made = NULL;

        if (!message) {
                if (asprintf(&made, "sandboxd refused: %s", reply->error) < 0)
                        die_oom();
                message = made;
        }
        return print_error(c, reply->error, message, reply->parameters);
}

int call_next(Context *c, VarlinkReply *ret) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        int r;

        /* Every turn has a bound of its own in the daemon, and a daemon that ends closes the connection. */
        r = varlink_client_receive(c->client, USEC_INFINITY, &reply);
        if (r == -ECONNRESET)
                return print_error(c, "io.nixsandbox.Internal",
                                   "sandboxd went away before it answered. A running turn may be lost; see "
                                   "'sandboxctl list'.",
                                   NULL);
        if (r < 0)
                return print_error(c, "io.nixsandbox.Internal",
                                   "What answers on the socket does not speak varlink.", NULL);
        if (reply.error)
                return print_reply_error(c, &reply);

        *ret = reply;
        reply = (VarlinkReply){};
        return 0;
}

int call(Context *c, const char *method, json_object *params, VarlinkReply *ret) {
        int r;

        r = call_begin(c, method, params, 0);
        return r != 0 ? r : call_next(c, ret);
}

/* Ends every reply that has an error, and with --json shows the others as they are. */
int fetch(Context *c, const char *method, json_object *params, VarlinkReply *ret, bool *ret_done) {
        int r = call(c, method, params, ret);

        *ret_done = r != 0;
        if (r == 0 && c->json) {
                print_json(ret->parameters);
                *ret_done = true;
        }
        return r;
}
