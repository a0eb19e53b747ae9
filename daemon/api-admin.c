/* SPDX-License-Identifier: MIT */

/* GetVersion, Events, Doctor, Reload: about the daemon and not about one session. */

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
