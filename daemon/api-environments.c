/* SPDX-License-Identifier: MIT */

/*
 * Environments: what there is to make sessions of, and what only looks like it. Those of the caller's own are asked
 * for whenever they may matter; the call waits for the answer and is run again with it.
 */

#include "daemon/api-private.h"

struct KeptCall {
        KeptCall *next; /* in the order in which they came */
        RunCall call; /* of references */
        Manager *manager;
        EnvironmentsHandler again;
        UserEnvironmentsQuestion *question;
};

static void kept_free(KeptCall *k) {
        for (KeptCall **p = &k->manager->kept_calls; *p; p = &(*p)->next)
                if (*p == k) {
                        *p = k->next;
                        break;
                }
        (void) varlink_link_unref(k->call.link);
        json_object_put(k->call.parameters);
        free(k);
}

static void on_disconnect(VarlinkLink *link, void *userdata) {
        KeptCall *k = userdata;

        user_environments_cancel(k->question);
        kept_free(k);
}

static void kept_run(KeptCall *k, bool failed) {
        varlink_link_on_disconnect(k->call.link, NULL, NULL);
        if (failed || k->again(&k->call, k->manager) < 0)
                (void) varlink_error(k->call.link, API_ERROR("Internal"), NULL);
        kept_free(k);
}

static const char *text_parameter(const KeptCall *k, const char *key) {
        json_object *value;

        return json_object_object_get_ex(k->call.parameters, key, &value) &&
                json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

/* Whether it is a Run in a session that lives, whose environment is settled. */
static bool kept_has_session(const KeptCall *k) {
        const char *session = text_parameter(k, "session"), *project = text_parameter(k, "project") ?: "/";

        return k->again == api_run && session &&
                manager_find_named(k->manager, varlink_link_peer(k->call.link)->uid, project, session);
}

/* When one of several calls has made the session that they are for, the others do not wait any more, or one that comes
 * later would overtake them. */
static void run_in_new_sessions(Manager *m) {
        for (KeptCall *k = m->kept_calls; k;) {
                if (!kept_has_session(k)) {
                        k = k->next;
                        continue;
                }
                user_environments_cancel(k->question);
                kept_run(k, /* failed= */ false);
                k = m->kept_calls;
        }
}

static void on_environments(EnvironmentSet *set, void *userdata) {
        KeptCall *k = userdata;
        Manager *m = k->manager;

        k->call.environments = set;
        kept_run(k, !set);
        run_in_new_sessions(m);
}

int api_refuse_questions(VarlinkLink *link) {
        int r;

        r = api_error(link, API_ERROR("LimitExceeded"), "limit", "questions",
                      "%u of your calls wait already to know which environments you have. Try again in a moment.",
                      USER_ENVIRONMENTS_WAITING_MAX);
        return r < 0 ? r : 1;
}

int api_ask_environments(const RunCall *call, Manager *m, EnvironmentsHandler again) {
        const PeerCred *peer = varlink_link_peer(call->link);
        KeptCall *k, **end;
        int r;

        if (!user_environments_possible(m->user_environments, peer->uid))
                return 0;
        k = malloc(sizeof(*k));
        if (!k)
                return -ENOMEM;
        *k = (KeptCall){ .call = *call, .manager = m, .again = again };
        (void) varlink_link_ref(call->link);
        (void) json_object_get(call->parameters);
        for (end = &m->kept_calls; *end; end = &(*end)->next)
                ;
        *end = k;
        r = user_environments_ask(m->user_environments, peer, manager_environments(m), on_environments, k,
                                  &k->question);
        if (r >= 0) {
                varlink_link_on_disconnect(call->link, on_disconnect, k);
                return 1;
        }
        kept_free(k);
        return r == -EBUSY ? api_refuse_questions(call->link) : r;
}

/* The names of an environment's interpreters; missing: only of those that are not installed. */
static int interpreter_names(const Environment *e, bool missing, json_object **ret) {
        _cleanup_json_ json_object *array = json_object_new_array();

        if (!array)
                return -ENOMEM;
        for (size_t i = 0; i < e->n_interpreters; i++) {
                if (missing && environment_interpreter_installed(e, e->interpreters[i]))
                        continue;
                if (json_array_put_string(array, interpreter_to_string(e->interpreters[i])) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(array);
        return 0;
}

static int environment_to_json(const Config *c, const Environment *e, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object(), *interpreters = NULL, *missing = NULL;
        uint64_t timeout = e->timeout_usec > 0 ? e->timeout_usec : c->defaults.timeout_usec;
        _cleanup_free_ char *network = NULL;

        if (!o || environment_network_text(e, &network) < 0 || interpreter_names(e, false, &interpreters) < 0 ||
            interpreter_names(e, true, &missing) < 0 || json_put_string(o, "name", e->name) < 0 ||
            json_put_string(o, "description", e->description) < 0 ||
            json_put_object(o, "interpreters", TAKE_PTR(interpreters)) < 0 ||
            json_put_number(o, "timeout_seconds", (double) timeout / USEC_PER_SEC) < 0 ||
            json_put_uint(o, "memory_mb", e->memory_mb > 0 ? e->memory_mb : c->defaults.memory_mb) < 0 ||
            json_put_string(o, "network", network) < 0 ||
            json_put_object(o, "missing", TAKE_PTR(missing)) < 0 ||
            (e->root && json_put_string(o, "root", e->root) < 0) ||
            (e->source && json_put_string(o, "source", e->source) < 0))
                return -ENOMEM;

        *ret = TAKE_PTR(o);
        return 0;
}

static int environments_to_json(const Config *c, const EnvironmentTable *t, json_object **ret) {
        _cleanup_json_ json_object *array = json_object_new_array();
        int r = array ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < environment_table_size(t); i++) {
                json_object *o;

                r = environment_to_json(c, environment_table_get(t, i), &o);
                if (r >= 0)
                        r = json_array_put(array, o);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(array);
        return 0;
}

static int put_broken(json_object *array, const EnvironmentSet *set) {
        const EnvironmentBroken *b;
        size_t n;
        int r = 0;

        b = environment_set_broken(set, &n);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                _cleanup_json_ json_object *o = json_object_new_object();

                if (!o || json_put_string(o, "path", b[i].path) < 0 || json_put_string(o, "reason", b[i].reason) < 0)
                        return -ENOMEM;
                r = json_array_put(array, TAKE_PTR(o));
        }
        return r;
}

/* Of all users', and of the caller's own. */
static int broken_to_json(const EnvironmentSet *all, const EnvironmentSet *set, json_object **ret) {
        _cleanup_json_ json_object *array = json_object_new_array();
        int r;

        r = array ? put_broken(array, all) : -ENOMEM;
        if (r >= 0 && set != all)
                r = put_broken(array, set);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(array);
        return 0;
}

static int list(const RunCall *call, Manager *m) {
        _cleanup_json_ json_object *reply = json_object_new_object(), *environments = NULL, *broken = NULL;
        const EnvironmentSet *all = environment_catalog_look(m->environments), *set = call->environments ?: all;
        int r;

        r = environments_to_json(m->config, environment_set_table(set), &environments);
        if (r >= 0)
                r = broken_to_json(all, set, &broken);
        if (r < 0)
                return r;
        if (!reply || json_put_object(reply, "environments", TAKE_PTR(environments)) < 0 ||
            json_put_object(reply, "broken", TAKE_PTR(broken)) < 0)
                return -ENOMEM;
        (void) varlink_reply(call->link, reply);
        return 0;
}

int vl_method_environments(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        static const JsonField no_parameters[] = { {} };
        const RunCall call = { .link = link, .parameters = parameters, .flags = flags };
        int r;

        r = api_dispatch(link, parameters, no_parameters, NULL);
        if (r == 0)
                r = api_ask_environments(&call, userdata, list);
        return r == 0 ? list(&call, userdata) : MIN(r, 0);
}
