/* SPDX-License-Identifier: MIT */

/* What those who asked for a save are told. */

#include <stdio.h>

#include "daemon/session-private.h"
#include "lib/log.h"

#define SKIPPED_SHOWN 10U
#define SKIPPED_NOTICE "Not in the saved state: "

static void save_answer(SessionSave *v, const char *error, json_object *parameters) {
        for (size_t i = 0; i < v->n_waiters; i++) {
                if (error)
                        (void) varlink_error(v->waiters[i], error, parameters);
                else
                        (void) varlink_reply(v->waiters[i], parameters);
                (void) varlink_link_unref(v->waiters[i]);
        }
        v->waiters = mfree(v->waiters);
        v->n_waiters = 0;
}

/* *ret is NULL when all was saved. */
int save_skipped_notice(json_object *parts, char **ret) {
        _cleanup_(buffer_done) Buffer text = {};
        int r;

        *ret = NULL;
        r = buffer_append_str(&text, SKIPPED_NOTICE);
        if (r >= 0)
                r = snapshot_skipped_text(parts, SKIPPED_SHOWN, &text);
        if (r < 0 || buffer_size(&text) == strlen(SKIPPED_NOTICE))
                return r;
        return buffer_take(&text, ret, NULL);
}

int session_save_reply_new(const SessionSave *v, bool unchanged, json_object *parts, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_free_ char *notice = NULL;
        json_object *skipped;
        int r;

        r = o ? snapshot_skipped(parts, &skipped) : -ENOMEM;
        if (r >= 0)
                r = json_put_object(o, "skipped", skipped);
        if (r >= 0)
                r = json_put_string(o, "snapshot", v->snapshot);
        if (r >= 0)
                r = json_put_uint(o, "size", v->bytes);
        if (r >= 0)
                r = json_put_bool(o, "unchanged", unchanged);
        if (r >= 0)
                r = save_skipped_notice(parts, &notice);
        if (r >= 0)
                r = json_put_string(o, "notice", notice);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(o);
        return 0;
}

void session_save_answer_done(SessionSave *v, json_object *parts) {
        _cleanup_json_ json_object *o = NULL;

        if (v->n_waiters == 0 || v->wanted)
                return;
        if (session_save_reply_new(v, /* unchanged= */ false, parts, &o) < 0)
                return save_answer(v, "io.nixsandbox.Internal", NULL);
        save_answer(v, NULL, o);
}

void session_save_answer_failed(Session *s, const char *error, const char *why) {
        _cleanup_json_ json_object *p = NULL;
        _cleanup_free_ char *message = NULL;
        SessionSave *v = &s->save;

        if (v->n_waiters == 0 || v->wanted)
                return; /* what they asked for is still to come */
        p = json_object_new_object();
        if (asprintf(&message, "The state of session '%s' was not saved: %s Its last snapshot, if there is one, is as "
                               "it was.",
                     s->name ?: s->id, why) < 0)
                message = NULL;
        if (!p || json_put_string(p, "session", s->name ?: s->id) < 0 || json_put_string(p, "message", message) < 0)
                log_oom();
        save_answer(v, error, p);
}
