/* SPDX-License-Identifier: MIT */

/* Save and Snapshots. A call of Snapshots for all users goes through them one after the other. */

#include <stdio.h>

#include "daemon/api-private.h"
#include "lib/log.h"

#define LIST_USEC (30 * USEC_PER_SEC)

int vl_method_save(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        Session *s;
        int r;

        r = api_session_parameters(link, userdata, parameters, SESSION_VERB_SAVE, &s);
        if (r != 0)
                return MIN(r, 0);
        if (!s->name)
                return api_error(link, API_ERROR("NotSupported"), NULL, NULL,
                                 "A sandbox without a name is gone after its run, and is not saved.");
        if (s->restore || s->attaching || session_retire_is_final(&s->save))
                return api_error(link, API_ERROR("Busy"), "session", s->name,
                                 "Session '%s' is being restored, taken over or ended: try again in a moment.",
                                 s->name);
        return session_save_by_hand(s, link);
}

/* ---- Snapshots ---- */

typedef struct SnapshotsCall {
        Manager *manager; /* borrowed */
        VarlinkLink *link; /* a reference */
        char *session, *project; /* only those of it; NULL: all */
        uid_t *users;
        size_t n_users, next;
        SnapshotJob *job;
        json_object *all, *of_project; /* arrays; the second is what the project given has */
} SnapshotsCall;

static SnapshotsCall *call_free(SnapshotsCall *c) {
        if (c->job)
                snapshot_job_cancel(c->job);
        varlink_link_on_disconnect(c->link, NULL, NULL);
        (void) varlink_link_unref(c->link);
        free(c->session);
        free(c->project);
        free(c->users);
        json_object_put(c->all);
        json_object_put(c->of_project);
        return mfree(c);
}

static int info_to_json(const SnapshotInfo *info, uid_t uid, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || json_put_string(o, "id", info->id) < 0 || json_put_string(o, "session", info->name) < 0 ||
            json_put_string(o, "session_id", info->session) < 0 || json_put_string(o, "project", info->project) < 0 ||
            json_put_uint(o, "uid", uid) < 0 || json_put_string(o, "environment", info->environment) < 0 ||
            json_put_uint(o, "time_usec", info->time_usec) < 0 || json_put_string(o, "reason", info->reason) < 0 ||
            json_put_uint(o, "turns", info->turns) < 0 || json_put_uint(o, "size", info->bytes) < 0 ||
            json_put_uint(o, "skipped", snapshot_skipped_count(info->parts)) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(o);
        return 0;
}

static int take_info(const SnapshotInfo *info, void *userdata) {
        SnapshotsCall *c = userdata;
        json_object *o;
        int r;

        if (c->session && !streq(c->session, info->name) && !streq(c->session, info->session))
                return 0;
        r = info_to_json(info, c->users[c->next - 1], &o);
        if (r < 0)
                return r;
        if (c->project && streq(c->project, info->project) && json_array_put(c->of_project, json_object_get(o)) < 0) {
                json_object_put(o);
                return -ENOMEM;
        }
        return json_array_put(c->all, o);
}

/* A name means the one in the caller's project, where there is one. */
static void call_answer(SnapshotsCall *c) {
        bool narrow = c->session && c->project && json_object_array_length(c->of_project) > 0;
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || json_put_object(o, "snapshots", json_object_get(narrow ? c->of_project : c->all)) < 0)
                (void) varlink_error(c->link, API_ERROR("Internal"), NULL);
        else
                (void) varlink_reply(c->link, o);
        (void) call_free(c);
}

static void on_listed(SnapshotJob *job, const SnapshotResult *result, void *userdata);

/* May free it. */
static void call_go_on(SnapshotsCall *c) {
        int r;

        if (c->next == c->n_users)
                return call_answer(c);
        r = snapshot_job_new(c->manager->snapshots,
                             &(SnapshotRequest){
                                             .verb = SNAPSHOT_LIST,
                                             .uid = c->users[c->next++],
                                             .deadline_usec = LIST_USEC,
                                             .on_done = on_listed,
                                             .userdata = c,
                             },
                             &c->job);
        if (r >= 0)
                return;
        (void) api_error(c->link, API_ERROR("Busy"), "session", c->session ?: "",
                         "Too many calls about snapshots wait already: try again in a moment.");
        (void) call_free(c);
}

static void on_listed(SnapshotJob *job, const SnapshotResult *result, void *userdata) {
        SnapshotsCall *c = userdata;

        c->job = NULL;
        if (result->error && !streq(result->error, "none"))
                log_warning("The snapshots of uid %u could not be listed: %s", (unsigned) c->users[c->next - 1],
                            result->why);
        else if (!result->error && snapshot_list_each(result->json, take_info, c) < 0)
                log_oom();
        call_go_on(c);
}

static void on_disconnect(VarlinkLink *link, void *userdata) {
        (void) call_free(userdata);
}

static int call_new(VarlinkLink *link, Manager *m, const char *session, const char *project, bool all,
                    SnapshotsCall **ret) {
        SnapshotsCall *c;
        int r = 0;

        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->manager = m;
        c->link = varlink_link_ref(link);
        c->all = json_object_new_array();
        c->of_project = json_object_new_array();
        c->session = session ? strdup(session) : NULL;
        c->project = project ? strdup(project) : NULL;
        if (all)
                r = snapshot_users(m->snapshots, &c->users, &c->n_users);
        else {
                c->users = malloc(sizeof(uid_t));
                if (c->users)
                        c->users[c->n_users++] = varlink_link_peer(link)->uid;
        }
        if (r < 0 || !c->all || !c->of_project || (session && !c->session) || (project && !c->project) ||
            (!all && !c->users)) {
                (void) call_free(c);
                return r < 0 ? r : -ENOMEM;
        }
        *ret = c;
        return 0;
}

int vl_method_snapshots(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        struct {
                const char *session, *project;
                bool all, interactive;
        } p = {};
        static const JsonField table[] = {
                { "session", JSON_KIND_STRING, offsetof(typeof(p), session) },
                { "project", JSON_KIND_STRING, offsetof(typeof(p), project) },
                { "all", JSON_KIND_BOOL, offsetof(typeof(p), all) },
                { "interactive", JSON_KIND_BOOL, offsetof(typeof(p), interactive) },
                {},
        };
        Manager *m = userdata;
        SnapshotsCall *c;
        int r;

        r = api_dispatch(link, parameters, table, &p);
        if (r == 0 && p.all)
                r = api_authorize(link, m, POLICY_LIST_OTHERS, "list the snapshots of all users", p.interactive);
        if (r == 0)
                r = call_new(link, m, p.session, p.project, p.all, &c);
        if (r != 0)
                return MIN(r, 0);

        varlink_link_on_disconnect(link, on_disconnect, c);
        call_go_on(c);
        return 0;
}
