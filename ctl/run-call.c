/* SPDX-License-Identifier: MIT */

/* Run, and Wait in its place. */

#include "ctl/run-call.h"

#include <stdio.h>
#include <time.h>

#include "ctl/connect.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "lib/text.h"

/* How long another daemon is waited for, and how often. */
#define RESUME_USEC (15 * USEC_PER_SEC)
#define BREAKS_MAX 10U
#define PAUSE_FIRST_USEC (50 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (1 * USEC_PER_SEC)

typedef struct RunCall {
        Context *context;
        json_object *params; /* of Run, with a tag */
        bool stream;
        bool asking;         /* for the turn, instead of asking to run it */
        bool sent_again;
        unsigned breaks;
        size_t printed[2];   /* bytes of stdout and stderr, in all */
        size_t seen[2];      /* the same of this connection */
} RunCall;

static void put_tag(json_object *params) {
        char tag[25] = "";

        /* Without one the turn cannot be found again. */
        if (text_random_hex(tag, sizeof(tag)) >= 0)
                param_string(params, "tag", tag);
}

/* Another connection tells all again, from the first byte on. */
static void print_output(RunCall *r, json_object *parameters) {
        json_object *output, *text;
        size_t size, skip;
        bool err;

        if (!json_object_object_get_ex(parameters, "output", &output) ||
            !json_object_object_get_ex(output, "text", &text))
                return;

        err = streq(get_string(output, "stream", "stdout"), "stderr");
        size = (size_t) json_object_get_string_len(text);
        skip = MIN(size, r->printed[err] - MIN(r->printed[err], r->seen[err]));
        r->seen[err] += size;
        r->printed[err] += size - skip;
        (void) fwrite(json_object_get_string(text) + skip, 1, size - skip, err ? stderr : stdout);
        (void) fflush(err ? stderr : stdout);
}

static int send_call(RunCall *r) {
        json_object *params, *value;

        r->seen[0] = r->seen[1] = 0;
        if (!r->asking)
                return call_begin(r->context, "io.nixsandbox.Run", json_object_get(r->params),
                                  r->stream ? VARLINK_MORE : 0);

        params = params_new();
        param_string(params, "tag", get_string(r->params, "tag", NULL));
        if (json_object_object_get_ex(r->params, "session", &value))
                param_string(params, "session", json_object_get_string(value));
        param_string(params, "project", get_string(r->params, "project", NULL));
        return call_begin(r->context, "io.nixsandbox.Wait", params, r->stream ? VARLINK_MORE : 0);
}

/* 0, or the exit status after it was said that there is no going on. */
static int reconnect(RunCall *r, int error) {
        Context *c = r->context;
        uint64_t pause = PAUSE_FIRST_USEC, until = now_monotonic() + RESUME_USEC;

        if (error != -ECONNRESET || c->ssh > 0 || !has_value(r->params, "tag") || ++r->breaks > BREAKS_MAX)
                return print_receive_error(c, error);

        c->client = varlink_client_free(c->client);
        for (; now_monotonic() < until; pause = MIN(2 * pause, PAUSE_MAX_USEC)) {
                const struct timespec t = { (time_t) (pause / USEC_PER_SEC), (long) (pause % USEC_PER_SEC * 1000) };
                _cleanup_free_ char *why = NULL;

                (void) nanosleep(&t, NULL);
                if (context_connect(c, &why) >= 0) {
                        r->asking = true;
                        return 0;
                }
        }
        return print_receive_error(c, error);
}

/* Whether an answer to the question for the turn says that it never began. */
static bool never_began(RunCall *r, const VarlinkReply *reply) {
        if (!r->asking || r->sent_again || !streq(reply->error, "io.nixsandbox.NoSuchTurn"))
                return false;

        r->sent_again = true;
        r->asking = false;
        return true;
}

/* -EAGAIN: to be sent once more; 0 with *ret, or the exit status. */
static int receive(RunCall *r, VarlinkReply *ret) {
        for (;;) {
                _cleanup_(varlink_reply_done) VarlinkReply reply = {};
                int k;

                k = varlink_client_receive(r->context->client, USEC_INFINITY, &reply);
                if (k < 0) {
                        k = reconnect(r, k);
                        return k == 0 ? -EAGAIN : k;
                }
                if (reply.error)
                        return never_began(r, &reply) ? -EAGAIN : print_reply_error(r->context, &reply);
                if (reply.flags & VARLINK_CONTINUES) {
                        print_output(r, reply.parameters);
                        continue;
                }

                *ret = reply;
                reply = (VarlinkReply){};
                return 0;
        }
}

static void add_notice(json_object *result) {
        static const char notice[] = "sandboxd was restarted before the code had begun, so it was sent again.";
        const char *before = get_string(result, "notice", NULL);
        _cleanup_free_ char *text = NULL;

        if (asprintf(&text, "%s%s%s", before ?: "", before ? "\n" : "", notice) < 0)
                die_oom();
        param_string(result, "notice", text);
}

int run_call(Context *c, json_object *params, bool stream, VarlinkReply *ret) {
        _cleanup_json_ json_object *owned = params;
        RunCall r = { .context = c, .params = params, .stream = stream };
        int k;

        put_tag(params);
        do {
                k = send_call(&r);
                if (k == 0)
                        k = receive(&r, ret);
        } while (k == -EAGAIN);

        if (k == 0 && r.sent_again)
                add_notice(ret->parameters);
        return k;
}
