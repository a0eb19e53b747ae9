/* SPDX-License-Identifier: MIT */

/* GetVersion, Events, Environments, Doctor: about the daemon and not about one session. */

#include "daemon/api-private.h"
#include "daemon/doctor.h"
#include "lib/version.h"

static const JsonField no_parameters[] = { {} };

int vl_method_get_version(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        _cleanup_json_ json_object *reply = json_object_new_object();
        const Manager *m = userdata;
        AuditStatus audit;

        audit_status(m->audit, &audit);
        /* Parameters are not looked at: this is the call that must work across versions. */
        if (!reply || json_put_string(reply, "version", NIX_SANDBOX_VERSION) < 0 ||
            json_put_int(reply, "api_min", NIX_SANDBOX_API_MIN) < 0 ||
            json_put_int(reply, "api_max", NIX_SANDBOX_API_MAX) < 0 ||
            json_put_string(reply, "mode", m->mode) < 0 ||
            json_put_string(reply, "audit", audit.directory) < 0)
                return -ENOMEM;
        (void) varlink_reply(link, reply);
        return 0;
}

int vl_method_events(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        struct {
                bool follow, all, interactive;
        } p = {};
        static const JsonField table[] = {
                { "follow", JSON_KIND_BOOL, offsetof(typeof(p), follow) },
                { "all", JSON_KIND_BOOL, offsetof(typeof(p), all) },
                { "interactive", JSON_KIND_BOOL, offsetof(typeof(p), interactive) },
                {},
        };
        _cleanup_json_ json_object *reply = NULL;
        const PeerCred *peer = varlink_link_peer(link);
        Manager *m = userdata;
        int r;

        r = api_dispatch(link, parameters, table, &p);
        if (r != 0)
                return MIN(r, 0);
        if (p.follow && !(flags & VARLINK_MORE)) {
                (void) varlink_error(link, VARLINK_ERROR_EXPECTED_MORE, NULL);
                return 0;
        }
        if (p.all)
                r = api_authorize(link, m, POLICY_LIST_OTHERS, "see the events of all users", p.interactive);
        if (r != 0)
                return MIN(r, 0);

        p.all |= policy_is_granted_everything(peer->uid);
        r = event_log_to_json(&m->events, peer->uid, p.all, &reply);
        if (r < 0)
                return r;
        if (!p.follow) {
                (void) varlink_reply(link, reply);
                return 0;
        }
        (void) varlink_notify(link, reply);
        return event_log_follow(&m->events, link, p.all);
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

        if (!o || interpreter_names(e, false, &interpreters) < 0 ||
            interpreter_names(e, true, &missing) < 0 || json_put_string(o, "name", e->name) < 0 ||
            json_put_string(o, "description", e->description) < 0 ||
            json_put_object(o, "interpreters", TAKE_PTR(interpreters)) < 0 ||
            json_put_number(o, "timeout_seconds", (double) timeout / USEC_PER_SEC) < 0 ||
            json_put_uint(o, "memory_mb", e->memory_mb > 0 ? e->memory_mb : c->defaults.memory_mb) < 0 ||
            json_put_string(o, "network", "none") < 0 ||
            json_put_object(o, "missing", TAKE_PTR(missing)) < 0)
                return -ENOMEM;

        *ret = TAKE_PTR(o);
        return 0;
}

int vl_method_environments(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        _cleanup_json_ json_object *reply = json_object_new_object(), *array = json_object_new_array();
        const Manager *m = userdata;
        int r;

        r = api_dispatch(link, parameters, no_parameters, NULL);
        if (r != 0)
                return MIN(r, 0);
        if (!reply || !array)
                return -ENOMEM;

        for (size_t i = 0; i < environment_table_size(m->config->environments); i++) {
                json_object *o;

                r = environment_to_json(m->config, environment_table_get(m->config->environments, i), &o);
                if (r >= 0)
                        r = json_array_put(array, o);
                if (r < 0)
                        return r;
        }

        if (json_put_object(reply, "environments", TAKE_PTR(array)) < 0)
                return -ENOMEM;
        (void) varlink_reply(link, reply);
        return 0;
}

int vl_method_doctor(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        _cleanup_json_ json_object *reply = json_object_new_object();
        json_object *checks;
        int r;

        r = api_dispatch(link, parameters, no_parameters, NULL);
        if (r != 0)
                return MIN(r, 0);
        if (!reply)
                return -ENOMEM;

        r = doctor_to_json(userdata, &checks);
        if (r >= 0)
                r = json_put_object(reply, "checks", checks);
        if (r < 0)
                return r;
        (void) varlink_reply(link, reply);
        return 0;
}

/* A daemon of one user's own is his to reload. */
int vl_method_reload(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        struct {
                bool interactive;
        } p = {};
        static const JsonField table[] = {
                { "interactive", JSON_KIND_BOOL, offsetof(typeof(p), interactive) },
                {},
        };
        Manager *m = userdata;
        int r;

        r = api_dispatch(link, parameters, table, &p);
        if (r == 0 && varlink_link_peer(link)->uid != getuid())
                r = api_authorize(link, m, POLICY_MANAGE_SYSTEM, "reload the service", p.interactive);
        if (r != 0)
                return MIN(r, 0);

        r = m->reload ? m->reload(link, m->reload_userdata) : -EBUSY;
        if (r == -EBUSY)
                return api_error(link, API_ERROR("ReloadRefused"), NULL, NULL,
                                 "sandboxd is stopping, or too many have asked already.");
        return r;
}
