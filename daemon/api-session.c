/* SPDX-License-Identifier: MIT */

/* List, Show, Kill, Freeze, Thaw, History: the verbs on sessions that run nothing. */

#include "daemon/api-private.h"
#include "daemon/session-reply.h"

int vl_method_list(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        struct {
                bool all, interactive;
        } p = {};
        static const JsonField table[] = {
                { "all", JSON_KIND_BOOL, offsetof(typeof(p), all) },
                { "interactive", JSON_KIND_BOOL, offsetof(typeof(p), interactive) },
                {},
        };
        _cleanup_(buffer_done) Buffer reply = {};
        JsonWriter w = JSON_WRITER(&reply);
        uid_t uid = varlink_link_peer(link)->uid;
        Manager *m = userdata;
        int r;

        r = api_dispatch(link, parameters, table, &p);
        if (r == 0 && p.all)
                r = api_authorize(link, m, POLICY_LIST_OTHERS, "list the sessions of all users", p.interactive);
        if (r != 0)
                return MIN(r, 0);

        json_write_object(&w, NULL);
        json_write_array(&w, "sessions");
        for (Session *s = m->sessions; s; s = s->next)
                if (session_is_live(s) && (p.all || s->user->uid == uid))
                        session_reply_write(s, /* details= */ false, &w, NULL);
        json_write_array_end(&w);
        json_write_object_end(&w);
        if (w.error < 0)
                return w.error;
        (void) varlink_reply_text(link, buffer_data(&reply), buffer_size(&reply));
        return 0;
}

int vl_method_show(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        _cleanup_(buffer_done) Buffer reply = {};
        JsonWriter w = JSON_WRITER(&reply);
        Session *s;
        int r;

        r = api_session_parameters(link, userdata, parameters, SESSION_VERB_SHOW, &s);
        if (r != 0)
                return MIN(r, 0);

        json_write_object(&w, NULL);
        session_reply_write(s, /* details= */ true, &w, "session");
        json_write_object_end(&w);
        if (w.error < 0)
                return w.error;
        (void) varlink_reply_text(link, buffer_data(&reply), buffer_size(&reply));
        return 0;
}

/* What is over already does not come back either. That there is no such session is answered all the same. */
static void close_ended(VarlinkLink *link, Manager *m, json_object *parameters) {
        struct {
                const char *session, *project;
        } p = {};
        static const JsonField table[] = {
                { "session", JSON_KIND_STRING, offsetof(typeof(p), session), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(typeof(p), project) },
                {},
        };
        uid_t uid = varlink_link_peer(link)->uid;

        if (json_dispatch(parameters, table, JSON_UNKNOWN_IGNORE, &p, NULL) >= 0 && name_is_valid(p.session) &&
            !manager_find_session(m, uid, p.project, p.session, NULL))
                session_close_snapshots(m, uid, p.project ?: "/", p.session);
}

int vl_method_kill(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        Session *s;
        int r;

        close_ended(link, userdata, parameters);
        r = api_session_parameters(link, userdata, parameters, SESSION_VERB_KILL, &s);
        if (r != 0)
                return MIN(r, 0);

        /* Answered when nothing of the session is left. */
        r = session_add_end_waiter(s, link);
        if (r < 0)
                return r;
        session_end_by(s, "admin", varlink_link_peer(link)->uid);
        if (s->name)
                session_close_snapshots(s->manager, s->user->uid, s->project, s->name);
        return 0;
}

static int reply_id(VarlinkLink *link, const Session *s) {
        _cleanup_json_ json_object *reply = json_object_new_object();

        if (!reply || json_put_string(reply, "id", s->id) < 0)
                return -ENOMEM;
        (void) varlink_reply(link, reply);
        return 0;
}

static int answer_freezer(VarlinkLink *link, const Session *s, int result) {
        const char *name = s->name ?: s->id;

        if (result == -EBUSY)
                return api_error(link, API_ERROR("Busy"), "session", name,
                                 s->running || s->queue_first
                                                 ? "A turn is running in session '%s'. Interrupt it or wait for "
                                                   "its end, then freeze."
                                                 : "Session '%s' is being read or written. Wait for the end of "
                                                   "that, then freeze.",
                                 name);
        if (result == -EOPNOTSUPP)
                return api_error(link, API_ERROR("NotSupported"), NULL, NULL,
                                 "This sandboxd has no cgroup with a freezer for its sessions; 'sandboxctl "
                                 "doctor' says why.");
        return result < 0 ? result : reply_id(link, s);
}

int vl_method_freeze(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        Session *s;
        int r;

        r = api_session_parameters(link, userdata, parameters, SESSION_VERB_FREEZE, &s);
        return r != 0 ? MIN(r, 0) : answer_freezer(link, s, session_freeze(s, &varlink_link_peer(link)->uid));
}

int vl_method_thaw(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        Session *s;
        int r;

        r = api_session_parameters(link, userdata, parameters, SESSION_VERB_THAW, &s);
        return r != 0 ? MIN(r, 0) : answer_freezer(link, s, session_thaw(s, &varlink_link_peer(link)->uid));
}

int vl_method_history(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        _cleanup_json_ json_object *reply = NULL;
        json_object *entries;
        Session *s;
        int r;

        r = api_session_parameters(link, userdata, parameters, SESSION_VERB_SHOW, &s);
        if (r == 0)
                r = history_to_json(&s->history, &entries);
        if (r != 0)
                return MIN(r, 0);

        reply = json_object_new_object();
        if (!reply) {
                json_object_put(entries);
                return -ENOMEM;
        }
        r = json_put_object(reply, "entries", entries);
        if (r < 0)
                return r;
        (void) varlink_reply(link, reply);
        return 0;
}
