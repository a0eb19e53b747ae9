/* SPDX-License-Identifier: MIT */

/*
 * doctor: what this machine offers, what is missing, and how to mend it. First what this program sees itself,
 * which is all there is when no daemon answers; then what the daemon says. Status 1 when something is an error,
 * so that scripts can ask.
 */

#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/connect.h"
#include "ctl/die.h"
#include "ctl/doctor.h"
#include "ctl/format.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

#define NAME_COLUMNS 20

/* 0, or why the daemon has nothing to say, which is a check then. */
static int ask_daemon(Context *c, json_object *checks, json_object **ret_theirs) {
        _cleanup_(varlink_reply_done) VarlinkReply version = {}, reply = {};
        _cleanup_free_ char *why = NULL;
        int r;

        r = context_connect(c, &why);
        if (r < 0) {
                check_add(checks, "daemon", "error", NULL, "%s", why ?: strerror(-r));
                return r;
        }
        r = varlink_client_call(c->client, "io.nixsandbox.GetVersion", NULL, USEC_INFINITY, &version);
        if (r >= 0)
                r = varlink_client_call(c->client, "io.nixsandbox.Doctor", NULL, USEC_INFINITY, &reply);
        if (r < 0 || reply.error) {
                check_add(checks, "daemon", "error", "systemctl status sandboxd.service", "it does not answer: %s",
                          r < 0 ? strerror(-r) : reply.error);
                return r < 0 ? r : -EPROTO;
        }
        doctor_check_daemon(c, checks, version.parameters);
        *ret_theirs = json_object_get(get_array(reply.parameters, "checks"));
        return 0;
}

static Style verdict_style(const char *verdict) {
        if (streq(verdict, "ok"))
                return STYLE_GOOD;
        return streq(verdict, "warning") ? STYLE_WARN : STYLE_BAD;
}

static void print_check(json_object *k) {
        const char *fix = get_string(k, "fix", NULL), *word = get_string(k, "verdict", "-");
        _cleanup_free_ char *name = printable(get_string(k, "name", "-")),
                            *detail = printable(get_string(k, "detail", "")), *verdict = printable(word);

        printf("%s%-8s%s %-*s %s\n", style_begin(verdict_style(word)), verdict, style_end(verdict_style(word)),
               NAME_COLUMNS, name, detail);
        if (fix) {
                _cleanup_free_ char *safe = printable(fix);

                printf("%*s → %s\n", 9 + NAME_COLUMNS, "", safe);
        }
}

static void print_checks(const char *title, json_object *checks) {
        printf("%s%s%s\n", style_begin(STYLE_TITLE), title, style_end(STYLE_TITLE));
        for (size_t i = 0; i < json_object_array_length(checks); i++)
                print_check(json_object_array_get_idx(checks, i));
}

static bool has_error(json_object *checks) {
        for (size_t i = 0; i < json_object_array_length(checks); i++)
                if (streq(get_string(json_object_array_get_idx(checks, i), "verdict", ""), "error"))
                        return true;
        return false;
}

/* All of them in one array, each with who said it. */
static void add_all(json_object *to, json_object *checks, const char *source) {
        for (size_t i = 0; i < json_object_array_length(checks); i++) {
                json_object *k = json_object_array_get_idx(checks, i);

                if (!json_object_is_type(k, json_type_object))
                        continue;
                if (json_put_string(k, "source", source) < 0 || json_array_put(to, json_object_get(k)) < 0)
                        die_oom();
        }
}

static void print_as_json(json_object *ours, json_object *theirs) {
        _cleanup_json_ json_object *o = params_new();
        json_object *all = must_alloc(json_object_new_array());

        add_all(all, ours, "sandboxctl");
        if (theirs)
                add_all(all, theirs, "sandboxd");
        if (json_put_object(o, "checks", all) < 0)
                die_oom();
        print_json(o);
}

int verb_doctor(Context *c, int argc, char *argv[]) {
        _cleanup_json_ json_object *ours = must_alloc(json_object_new_array()), *theirs = NULL;

        no_arguments(argc, argv);
        /* Of another machine only its daemon is seen. */
        if (!c->host) {
                doctor_check_host(ours);
                doctor_check_service(ours);
        }
        (void) ask_daemon(c, ours, &theirs);

        if (c->json)
                print_as_json(ours, theirs);
        else {
                print_checks("As sandboxctl sees it", ours);
                if (theirs)
                        print_checks("As sandboxd sees it", theirs);
        }
        return has_error(ours) || (theirs && has_error(theirs)) ? EXIT_FAILURE : EXIT_SUCCESS;
}
