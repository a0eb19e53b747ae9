/* SPDX-License-Identifier: MIT */

/* Connection, calls and errors of sandboxctl. */

#include "ctl/call.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/connect.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/polkit-agent.h"
#include "ctl/terminal.h"
#include "lib/text.h"
#include "lib/version.h"

void context_init(Context *c) {
        const char *project = getenv("PROJECT_DIR");
        char cwd[PATH_MAX];

        if (!project || *project != '/')
                project = getcwd(cwd, sizeof(cwd)) ? cwd : "/";
        /* Only a name: where it is not UTF-8, as file names need not be, something close will do. */
        c->project = must_alloc(utf8_repair(project));
}

void context_set_project(Context *c, const char *path) {
        _cleanup_free_ char *canonical = c->host ? NULL : realpath(path, NULL);

        if (!canonical && path[0] != '/')
                die_usage("run: cannot use the project '%s': %s", path,
                          c->host ? "name it by an absolute path" : strerror(errno));
        free(c->project);
        c->project = must_alloc(utf8_repair(canonical ?: path));
}

void context_done(Context *c) {
        context_disconnect(c);
        c->path = mfree(c->path);
        c->project = mfree(c->project);
}

json_object *params_session(const Context *c, const char *session) {
        json_object *p = params_new();

        param_string(p, "session", session);
        param_string(p, "project", c->project);
        return p;
}

/* polkit's agent asks on the terminal or desktop of the caller: only where somebody sits there. */
void params_interactive(const Context *c, json_object *p) {
        if (c->host || c->no_ask_password || !terminal_can_ask())
                return;
        polkit_agent_start();
        param_bool(p, "interactive", true);
}

json_object *params_list(const Context *c, bool all) {
        json_object *p = params_new();

        if (all) {
                param_bool(p, "all", true);
                params_interactive(c, p);
        }
        return p;
}

void params_others(const Context *c, json_object *p) {
        param_bool(p, "any_user", true);
        params_interactive(c, p);
}

void params_exceed(const Context *c, json_object *p) {
        param_bool(p, "exceed", true);
        params_interactive(c, p);
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
                fprintf(stderr, "sandboxctl: %s%s%s\n", c->about ?: "", c->about ? ": " : "", safe);
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

int call_connect(Context *c) {
        _cleanup_free_ char *why = NULL;
        int r;

        r = context_connect(c, &why);
        return r < 0 ? print_error(c, "io.nixsandbox.NotSupported", why ?: strerror(-r), NULL) : 0;
}

int call_begin(Context *c, const char *method, json_object *params, VarlinkFlags flags) {
        _cleanup_json_ json_object *owned = params;
        int r;

        r = call_connect(c);
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

/* What a daemon of another version says no to, in words; NULL when it is something else. */
static char *explain_version(const VarlinkReply *reply) {
        static const char *const newer[] = { "any_user", "interactive", "tag", "exceed" };
        const char *what = NULL;
        char *text;

        if (streq(reply->error, VARLINK_ERROR_METHOD_NOT_FOUND))
                what = get_string(reply->parameters, "method", "this");
        else if (streq(reply->error, VARLINK_ERROR_INVALID_PARAMETER)) {
                const char *parameter = get_string(reply->parameters, "parameter", "");

                for (size_t i = 0; i < ELEMENTSOF(newer); i++)
                        if (streq(parameter, newer[i]))
                                what = newer[i];
        }
        if (!what)
                return NULL;
        if (asprintf(&text,
                     "The running sandboxd is older than this sandboxctl (" NIX_SANDBOX_VERSION ") and does "
                     "not know '%s'. Update it and restart it; 'sandboxctl doctor' shows both versions.",
                     what) < 0)
                die_oom();
        return text;
}

int print_reply_error(const Context *c, const VarlinkReply *reply) {
        _cleanup_free_ char *made = explain_version(reply);
        const char *message = made ?: get_string(reply->parameters, "message", NULL);

        if (!message) {
                if (asprintf(&made, "sandboxd refused: %s", reply->error) < 0)
                        die_oom();
                message = made;
        }
        return print_error(c, reply->error, message, reply->parameters);
}

int print_receive_error(const Context *c, int error) {
        if (error == -ECONNRESET)
                return print_error(c, "io.nixsandbox.Internal",
                                   "sandboxd went away before it answered. A running turn may be lost; see "
                                   "'sandboxctl list'.",
                                   NULL);
        return print_error(c, "io.nixsandbox.Internal", "What answers on the socket does not speak varlink.",
                           NULL);
}

int call_next(Context *c, VarlinkReply *ret) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        int r;

        /* Every turn has a bound of its own in the daemon, and a daemon that ends closes the connection. */
        r = varlink_client_receive(c->client, USEC_INFINITY, &reply);
        if (r < 0)
                return print_receive_error(c, r);
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
