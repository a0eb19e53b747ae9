/* SPDX-License-Identifier: MIT */

/*
 * Restore: a new session from a snapshot of the caller's own. What there is is looked up first; all that can have
 * changed meanwhile is looked at when the answer has come. The call is then the restore's (session-restore.c).
 */

#include <stdio.h>

#include "daemon/api-private.h"
#include "daemon/shortage.h"
#include "lib/log.h"

#define LIST_USEC (30 * USEC_PER_SEC)

typedef struct RestoreCall {
        Manager *manager; /* borrowed */
        VarlinkLink *link; /* a reference */
        char *session, *snapshot, *name, *project, *project_mode; /* any but name may be NULL */
        SnapshotJob *job;
        json_object *list; /* what it found */
        UserEnvironmentsQuestion *question;
        EnvironmentSet *environments; /* with the caller's own; NULL: they are not known */
} RestoreCall;

typedef struct Choice {
        const RestoreCall *call;
        bool found;
        bool in_project; /* of those that have the name, the one in the caller's project comes first */
        SnapshotInfo info;
} Choice;

static RestoreCall *call_free(RestoreCall *c) {
        if (c->job)
                snapshot_job_cancel(c->job);
        if (c->question)
                user_environments_cancel(c->question);
        json_object_put(c->list);
        (void) environment_set_unref(c->environments);
        (void) varlink_link_unref(c->link);
        free(c->session);
        free(c->snapshot);
        free(c->name);
        free(c->project);
        free(c->project_mode);
        return mfree(c);
}

static int choose(const SnapshotInfo *info, void *userdata) {
        Choice *c = userdata;
        const RestoreCall *call = c->call;
        bool in_project = call->project && streq(call->project, info->project);

        if ((call->snapshot && !streq(call->snapshot, info->id)) ||
            (call->session && !streq(call->session, info->name) && !streq(call->session, info->session)) ||
            (c->found && c->in_project > in_project) ||
            (c->found && c->in_project == in_project && strcmp(c->info.id, info->id) > 0))
                return 0;
        c->found = true;
        c->in_project = in_project;
        c->info = *info;
        return 0;
}

static int refuse_name_taken(VarlinkLink *link, const char *name) {
        return api_error(link, API_ERROR("Busy"), "session", name,
                         "There is a session '%s' already. Kill it first, or restore under another name.", name);
}

static int refuse_missing(RestoreCall *c) {
        return api_error(c->link, API_ERROR("NoSuchSnapshot"), "snapshot", c->snapshot ?: "",
                         "You have no such snapshot%s%s%s. 'sandboxctl snapshots' (action snapshots) lists them.",
                         c->session ? " of '" : "", c->session ?: "", c->session ? "'" : "");
}

static int make_session(RestoreCall *c, const SnapshotInfo *info, const Environment *e, const char *project) {
        const Config *config = c->manager->config;
        const Limits asked = api_environment_limits(config, e);
        _cleanup_free_ char *notice = NULL;
        Limits limits;
        char key[SNAPSHOT_KEY_LENGTH + 1];
        bool newest = !c->snapshot && !streq_ptr(c->session, info->session);
        Session *s;
        int r;

        r = limits_apply(&asked, &config->max, /* ask= */ NULL, &limits, &notice);
        if (r < 0)
                return r;
        r = api_check_caps(c->link, c->manager, &limits);
        if (r != 0)
                return MIN(r, 0);
        r = session_new(c->manager,
                        &(SessionRequest){
                                        .peer = varlink_link_peer(c->link),
                                        .name = c->name,
                                        .project = project,
                                        .project_mode = api_project_mode(config, e, c->project_mode),
                                        .environment = e,
                                        .limits = limits,
                        },
                        &s);
        if (r < 0)
                return api_error(c->link, API_ERROR("StartFailed"), NULL, NULL, "The session could not be made: %s.%s",
                                 strerror(-r), shortage_advice(r));

        snapshot_key(info->project, info->name, key);
        r = session_restore_begin(
                        s, &(SessionRestoreRequest){ .key = key, .id = newest ? NULL : info->id, .link = c->link });
        if (r < 0) {
                session_end(s, "start-failed");
                return r;
        }
        session_start(s);
        return 0;
}

static void on_environments(EnvironmentSet *set, void *userdata);

/* 0: there is nothing to wait for; 1: it waits, or is refused and answered; negative errno. */
static int ask_environments(RestoreCall *c) {
        UserEnvironments *u = c->manager->user_environments;
        const PeerCred *peer = varlink_link_peer(c->link);
        int r;

        if (c->environments || !user_environments_possible(u, peer->uid))
                return 0;
        r = user_environments_ask(u, peer, manager_environments(c->manager), on_environments, c, &c->question);
        return r == -EBUSY ? api_refuse_questions(c->link) : r < 0 ? r : 1;
}

/* Answers, or hands the call over to the restore, or waits for the answer to a question. */
static int restore(RestoreCall *c) {
        Choice choice = { .call = c };
        const Environment *e;
        const char *project;
        int r;

        r = c->list ? snapshot_list_each(c->list, choose, &choice) : 0;
        if (r < 0)
                return r;
        if (!choice.found)
                return refuse_missing(c);
        if (c->manager->stopping)
                return api_error(c->link, API_ERROR("StartFailed"), NULL, NULL,
                                 "sandboxd is stopping: try again in a moment.");

        project = c->project ?: choice.info.project;
        if (manager_find_named(c->manager, varlink_link_peer(c->link)->uid, project, c->name))
                return refuse_name_taken(c->link, c->name);
        e = environment_table_find(c->environments ? environment_set_table(c->environments)
                                                   : manager_environments(c->manager),
                                   choice.info.environment);
        if (!e) {
                r = ask_environments(c);
                if (r != 0)
                        return MIN(r, 0);
        }
        if (!e)
                return api_error(c->link, API_ERROR("SnapshotInvalid"), "snapshot", choice.info.id,
                                 "The snapshot is of a session in environment '%s', which is not configured any more.",
                                 choice.info.environment);
        return make_session(c, &choice.info, e, project);
}

static void on_disconnect(VarlinkLink *link, void *userdata) {
        (void) call_free(userdata);
}

/* After each answer: the call is over, or waits for the next one. */
static void settle(RestoreCall *c, int r) {
        if (r < 0) {
                (void) log_warning_errno(r, "A restore failed: %m");
                (void) varlink_error(c->link, API_ERROR("Internal"), NULL);
        }
        if (c->question)
                varlink_link_on_disconnect(c->link, on_disconnect, c);
        else
                (void) call_free(c);
}

static void on_environments(EnvironmentSet *set, void *userdata) {
        RestoreCall *c = userdata;

        c->question = NULL;
        varlink_link_on_disconnect(c->link, NULL, NULL);
        if (set)
                c->environments = environment_set_ref(set);
        settle(c, set ? restore(c) : -ENOMEM);
}

static void on_listed(SnapshotJob *job, const SnapshotResult *result, void *userdata) {
        RestoreCall *c = userdata;
        int r;

        c->job = NULL;
        varlink_link_on_disconnect(c->link, NULL, NULL);
        if (result->error && !streq(result->error, "none"))
                r = api_error(c->link, API_ERROR("SnapshotInvalid"), "snapshot", c->snapshot ?: "",
                              "Your snapshots cannot be read: %s", result->why);
        else {
                c->list = json_object_get(result->json);
                r = restore(c);
        }
        settle(c, r);
}

typedef struct RestoreParameters {
        const char *session, *snapshot, *name, *project, *project_mode;
} RestoreParameters;

/* 0; 1: refused, and answered; negative errno. */
static int check(VarlinkLink *link, const RestoreParameters *p) {
        const char *field, *fault = api_project_fault(p->project, p->project_mode, &field);
        int r;

        if (!name_is_valid(p->name)) {
                r = api_refuse_name(link, p->name);
                return r < 0 ? r : 1;
        }
        if (fault) {
                (void) varlink_error_invalid(link, field, fault);
                return 1;
        }
        if (!p->session && !p->snapshot) {
                (void) varlink_error_invalid(link, "session",
                                             "Name the session whose state is wanted, or a snapshot.");
                return 1;
        }
        return 0;
}

static int copy_text(char **ret, const char *s) {
        *ret = s ? strdup(s) : NULL;
        return s && !*ret ? -ENOMEM : 0;
}

static int call_new(VarlinkLink *link, Manager *m, const RestoreParameters *p, RestoreCall **ret) {
        RestoreCall *c;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->manager = m;
        c->link = varlink_link_ref(link);
        r = copy_text(&c->name, p->name);
        if (r >= 0)
                r = copy_text(&c->session, p->session);
        if (r >= 0)
                r = copy_text(&c->snapshot, p->snapshot);
        if (r >= 0)
                r = copy_text(&c->project, p->project);
        if (r >= 0)
                r = copy_text(&c->project_mode, p->project_mode);
        if (r >= 0)
                r = snapshot_job_new(m->snapshots,
                                     &(SnapshotRequest){
                                                     .verb = SNAPSHOT_LIST,
                                                     .uid = varlink_link_peer(link)->uid,
                                                     .deadline_usec = LIST_USEC,
                                                     .on_done = on_listed,
                                                     .userdata = c,
                                     },
                                     &c->job);
        if (r < 0) {
                (void) call_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

int vl_method_restore(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        static const JsonField table[] = {
                { "session", JSON_KIND_STRING, offsetof(RestoreParameters, session) },
                { "snapshot", JSON_KIND_STRING, offsetof(RestoreParameters, snapshot) },
                { "name", JSON_KIND_STRING, offsetof(RestoreParameters, name), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(RestoreParameters, project) },
                { "project_mode", JSON_KIND_STRING, offsetof(RestoreParameters, project_mode) },
                {},
        };
        RestoreParameters p = {};
        RestoreCall *c;
        int r;

        r = api_dispatch(link, parameters, table, &p);
        if (r == 0)
                r = check(link, &p);
        if (r != 0)
                return MIN(r, 0);

        r = call_new(link, userdata, &p, &c);
        if (r == -EBUSY)
                return api_error(link, API_ERROR("Busy"), "session", p.session ?: "",
                                 "Too many calls about snapshots wait already: try again in a moment.");
        if (r >= 0)
                varlink_link_on_disconnect(link, on_disconnect, c);
        return r;
}
