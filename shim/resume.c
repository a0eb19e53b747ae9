/* SPDX-License-Identifier: MIT */

/* Back-off and the question by tag. */

#include <stdio.h>

#include "lib/text.h"
#include "must.h"
#include "resume.h"

#define PAUSE_FIRST_USEC (50 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (1 * USEC_PER_SEC)
#define NOTICE "sandboxd was restarted before the code had begun, so it was sent again."

void resume_init(Resume *r, ToolCall *call) {
        *r = (Resume) { .pause = PAUSE_FIRST_USEC };
        /* Without a tag a run is told to be lost when its connection is. */
        if (call->action != TOOL_RUN || text_random_hex(r->tag, sizeof(r->tag)) < 0)
                return;
        must(json_put_string(call->parameters, "tag", r->tag));
}

bool resume_lost(Resume *r, const ToolCall *call, uint64_t now) {
        if (!call->repeatable && r->tag[0] == '\0')
                return false;
        if (r->until == 0)
                r->until = now + RESUME_USEC;
        if (now >= r->until)
                return false;

        r->asking = r->tag[0] != '\0';
        r->retry_at = now + r->pause;
        r->pause = MIN(2 * r->pause, PAUSE_MAX_USEC);
        return true;
}

const char *resume_method(const Resume *r, const ToolCall *call) {
        return r->asking ? "io.nixsandbox.Wait" : call->method;
}

json_object *resume_parameters(const Resume *r, const ToolCall *call) {
        static const char *const kept[] = { "tag", "session", "project", "answer_after_ms" };
        json_object *o, *value;

        if (!r->asking)
                return json_object_get(call->parameters);

        o = must_alloc(json_object_new_object());
        for (size_t i = 0; i < ELEMENTSOF(kept); i++)
                if (json_object_object_get_ex(call->parameters, kept[i], &value))
                        must(json_put_object(o, kept[i], json_object_get(value)));
        return o;
}

static void add_notice(json_object *parameters) {
        json_object *notice;
        char *text = NULL;

        if (!json_object_is_type(parameters, json_type_object))
                return;
        if (json_object_object_get_ex(parameters, "notice", &notice) && json_object_is_type(notice, json_type_string))
                must(asprintf(&text, "%s\n%s", json_object_get_string(notice), NOTICE));
        must(json_put_string(parameters, "notice", text ?: NOTICE));
        free(text);
}

ResumeVerdict resume_on_reply(Resume *r, VarlinkReply *reply) {
        if (!r->asking) {
                if (r->sent_again && !reply->error)
                        add_notice(reply->parameters);
                return RESUME_DONE;
        }
        if (!reply->error)
                return RESUME_DONE;

        if (streq(reply->error, "io.nixsandbox.NoSuchTurn")) {
                if (r->sent_again)
                        return RESUME_LOST;
                r->sent_again = true;
                r->asking = false;
                return RESUME_SEND;
        }
        /* Any other but the one for this would be about a question that the caller has not asked. */
        return streq(reply->error, "io.nixsandbox.SessionEnded") ? RESUME_DONE : RESUME_LOST;
}
