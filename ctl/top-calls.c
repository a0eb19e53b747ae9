/* SPDX-License-Identifier: MIT */

/* One call at a time, and never a wait for its answer: keys are served meanwhile. */

#include <stdarg.h>
#include <stdio.h>

#include "ctl/connect.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/top-screen.h"
#include "ctl/top.h"
#include "lib/text.h"

void top_action_done(TopAction *a) {
        free(a->session);
        free(a->label);
        *a = (TopAction) {};
}

void top_done(Top *t) {
        top_model_done(&t->model);
        top_action_done(&t->asked);
        top_action_done(&t->wanted);
        t->status = mfree(t->status);
}

void top_set_status(Top *t, Style style, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
                die_oom();
        free(t->status);
        t->status = printable(text);
        t->status_style = style;
}

static void lose_daemon(Top *t) {
        context_disconnect(t->context);
        t->call = TOP_CALL_NONE;
        t->lost = true;
        top_set_status(t, STYLE_BAD, "sandboxd went away; trying again every %g s", t->interval_sec);
}

static bool find_daemon(Top *t) {
        int r;

        if (t->context->host)
                screen_suspend();
        r = context_reconnect(t->context);
        if (t->context->host)
                screen_resume();
        if (r < 0)
                return false;

        t->lost = false;
        top_set_status(t, STYLE_GOOD, "sandboxd is back");
        return true;
}

static void send_call(Top *t, TopCall call, const char *method, json_object *params) {
        _cleanup_json_ json_object *owned = params;

        if (varlink_client_send(t->context->client, method, owned, 0) < 0)
                lose_daemon(t);
        else
                t->call = call;
}

static void send_action(Top *t) {
        json_object *p = params_session(t->context, t->wanted.session);

        if (t->all)
                params_others(t->context, p);
        send_call(t, TOP_CALL_ACTION, t->wanted.method, p);
}

void top_request(Top *t) {
        if (t->call != TOP_CALL_NONE || (t->lost && !find_daemon(t)))
                return;
        if (t->wanted.method)
                send_action(t);
        else
                send_call(t, TOP_CALL_LIST, "io.nixsandbox.List", params_list(t->context, t->all));
}

static void take_action_reply(Top *t, const VarlinkReply *reply) {
        if (reply->error)
                top_set_status(t, STYLE_BAD, "%s", get_string(reply->parameters, "message", reply->error));
        else
                top_set_status(t, STYLE_GOOD, "%s '%s'", t->wanted.done, t->wanted.label);
        top_action_done(&t->wanted);
        t->refresh = true;
}

static bool take_list_reply(Top *t, const VarlinkReply *reply) {
        if (reply->error) {
                top_set_status(t, STYLE_BAD, "%s", get_string(reply->parameters, "message", reply->error));
                return false;
        }
        top_model_update(&t->model, get_array(reply->parameters, "sessions"), now_monotonic());
        return true;
}

bool top_receive(Top *t) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        TopCall call = t->call;
        int r;

        if (t->lost)
                return false;
        r = varlink_client_process(t->context->client, &reply);
        /* An answer that nobody has asked for is none. */
        if (r < 0 || (r > 0 && call == TOP_CALL_NONE)) {
                lose_daemon(t);
                return false;
        }
        if (r == 0)
                return false;

        t->call = TOP_CALL_NONE;
        if (call == TOP_CALL_LIST)
                return take_list_reply(t, &reply);
        take_action_reply(t, &reply);
        return false;
}
