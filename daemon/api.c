/* SPDX-License-Identifier: MIT */

/* The method table, and what all handlers share. */

#include "daemon/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "daemon/api-private.h"
#include "daemon/idl.h"
#include "lib/network-list-json.h"
#include "lib/version.h"

/* Bytes of a caller's allow list. */
#define NETWORK_LIST_SIZE_MAX (32 * KIB)

/* Connections of all users together; each user is held to user.max_connections of the configuration. */
#define CONNECTIONS_MAX 4096U

static const VarlinkMethod methods[] = {
        { "io.nixsandbox.GetVersion", vl_method_get_version },
        { "io.nixsandbox.Run", vl_method_run },
        { "io.nixsandbox.Wait", vl_method_wait },
        { "io.nixsandbox.Interrupt", vl_method_interrupt },
        { "io.nixsandbox.List", vl_method_list },
        { "io.nixsandbox.Show", vl_method_show },
        { "io.nixsandbox.Kill", vl_method_kill },
        { "io.nixsandbox.Freeze", vl_method_freeze },
        { "io.nixsandbox.Thaw", vl_method_thaw },
        { "io.nixsandbox.Set", vl_method_set },
        { "io.nixsandbox.History", vl_method_history },
        { "io.nixsandbox.Rollback", vl_method_rollback },
        { "io.nixsandbox.Get", vl_method_get },
        { "io.nixsandbox.Put", vl_method_put },
        { "io.nixsandbox.Save", vl_method_save },
        { "io.nixsandbox.Snapshots", vl_method_snapshots },
        { "io.nixsandbox.Restore", vl_method_restore },
        { "io.nixsandbox.Variables", vl_method_variables },
        { "io.nixsandbox.Variable", vl_method_variable },
        { "io.nixsandbox.Events", vl_method_events },
        { "io.nixsandbox.Environments", vl_method_environments },
        { "io.nixsandbox.Doctor", vl_method_doctor },
        { "io.nixsandbox.Reload", vl_method_reload },
        {},
};

static const VarlinkServiceInfo service_info = {
        .vendor = "nix-sandbox",
        .product = "sandboxd",
        .version = NIX_SANDBOX_VERSION,
        .url = "",
        .interface = "io.nixsandbox",
        .description = sandbox_idl,
        .internal_error = API_ERROR("Internal"),
        .too_many = "{\"error\":\"" API_ERROR("LimitExceeded") "\",\"parameters\":{\"limit\":\"connections\","
                    "\"message\":\"There are as many connections to sandboxd as user.max_connections allows for "
                    "you. Close some: end clients that you do not use.\"}}",
};

static int on_attach_over(sd_event_source *source, void *userdata) {
        api_wait_again(userdata);
        api_run_again(userdata);
        return 0;
}

int api_server_new(Manager *m, VarlinkServer **ret) {
        const VarlinkServerLimits limits = {
                .connections_max = CONNECTIONS_MAX,
                .connections_per_uid_max =
                                (unsigned) MIN(m->config->user.connections_max, UINT64_C(1) << 20),
        };

        int r;

        r = sd_event_add_defer(m->event, &m->attach_source, on_attach_over, m);
        if (r >= 0)
                r = sd_event_source_set_enabled(m->attach_source, SD_EVENT_OFF);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(m->attach_source, "manager-attach");
        return varlink_server_new(m->event, &service_info, methods, &limits, m, ret);
}

int api_error(VarlinkLink *link, const char *error, const char *key, const char *value, const char *format,
              ...) {
        _cleanup_json_ json_object *p = json_object_new_object();
        _cleanup_free_ char *message = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&message, format, ap);
        va_end(ap);
        if (r < 0) {
                message = NULL;
                return -ENOMEM;
        }

        if (!p || (key && json_put_string(p, key, value) < 0) || json_put_string(p, "message", message) < 0)
                return -ENOMEM;
        (void) varlink_error(link, error, p);
        return 0;
}

int api_dispatch(VarlinkLink *link, json_object *parameters, const JsonField *table, void *ret) {
        const char *field = NULL;
        _cleanup_free_ char *quoted = NULL, *message = NULL;
        int r;

        r = json_dispatch(parameters, table, JSON_UNKNOWN_REFUSE, ret, &field);
        if (r >= 0)
                return 0;
        if (r != -EINVAL)
                return r;

        quoted = text_quote(field ?: "parameters", NAME_MAX_LENGTH);
        if (!quoted || asprintf(&message,
                                "Parameter %s is missing, unknown, or not of the type that the interface "
                                "description (org.varlink.service.GetInterfaceDescription) gives.",
                                quoted) < 0) {
                message = NULL;
                return -ENOMEM;
        }
        (void) varlink_error_invalid(link, field ?: "parameters", message);
        return 1;
}

/* What callers may not do, though the configuration may. Names of sets are its own: what is in them is not for callers
 * to know, or to rely on. And to read a rule that is not ASCII takes up to 0.7 ms, in which nobody else is served. */
static const char *network_list_fault(json_object *rules) {
        size_t size = 0;

        for (size_t i = 0; i < json_object_array_length(rules) && i <= NETWORK_RULES_MAX; i++) {
                json_object *item = json_object_array_get_idx(rules, i);
                const char *text;

                if (!json_object_is_type(item, json_type_string))
                        continue;
                text = json_object_get_string(item);
                if (text[text[0] == '!'] == '@')
                        return "Sets of rules (@NAME) are for the configuration only. Name the hosts.";
                size += (size_t) json_object_get_string_len(item);
                if (size > NETWORK_LIST_SIZE_MAX)
                        return "Rules may be 32 KiB together. Name fewer hosts, or what is above them (*.NAME).";
        }
        return NULL;
}

int api_network_list(VarlinkLink *link, const char *parameter, json_object *rules, NetworkList *ret) {
        _cleanup_free_ char *why = NULL, *message = NULL;
        const char *fault;

        if (!rules)
                return 0;
        fault = network_list_fault(rules);
        if (fault) {
                (void) varlink_error_invalid(link, parameter, fault);
                return 1;
        }
        if (network_list_from_json(rules, ret, &why) >= 0)
                return 0;
        if (!why || asprintf(&message, "%s%s", parameter, why) < 0) {
                message = NULL;
                return -ENOMEM;
        }
        (void) varlink_error_invalid(link, parameter, message);
        return 1;
}

int api_refuse_ended(VarlinkLink *link, const char *session, const char *reason) {
        _cleanup_free_ char *quoted = text_quote(session, NAME_MAX_LENGTH), *message = NULL;
        _cleanup_json_ json_object *p = json_object_new_object();

        if (!quoted)
                return -ENOMEM;
        if (asprintf(&message,
                     "Session %s has ended: %s. Run with its name again to get a new one; what was saved of this one "
                     "is restored in it, unless it was ended by hand.",
                     quoted, reason) < 0) {
                message = NULL;
                return -ENOMEM;
        }
        if (!p || json_put_string(p, "session", session) < 0 || json_put_string(p, "reason", reason) < 0 ||
            json_put_string(p, "message", message) < 0)
                return -ENOMEM;
        (void) varlink_error(link, API_ERROR("SessionEnded"), p);
        return 0;
}

/* A session that is not there, or that the peer may not see, which must look alike. */
static int refuse_missing(VarlinkLink *link, Manager *m, const char *name_or_id) {
        const char *reason = event_log_end_reason(&m->events, varlink_link_peer(link)->uid, name_or_id);
        _cleanup_free_ char *quoted = text_quote(name_or_id, NAME_MAX_LENGTH);
        int r;

        if (!quoted)
                return -ENOMEM;
        if (reason)
                r = api_refuse_ended(link, name_or_id, reason);
        else
                r = api_error(link, API_ERROR("NoSuchSession"), "session", name_or_id,
                              "You have no session %s. See 'sandboxctl list', or run with this name to "
                              "create it.",
                              quoted);
        return r < 0 ? r : 1;
}

/* A name would have to be looked up, which can take long. */
static int refuse_frozen(VarlinkLink *link, const Session *s) {
        time_t at = (time_t) (s->frozen_realtime / USEC_PER_SEC);
        const char *name = s->name ?: s->id;
        char by[32] = "you", when[32] = "";
        struct tm tm;

        if (s->frozen_by != varlink_link_peer(link)->uid)
                (void) snprintf(by, sizeof(by), "uid %u", (unsigned) s->frozen_by);
        if (gmtime_r(&at, &tm))
                (void) strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
        return api_error(link, API_ERROR("SessionFrozen"), "session", name,
                         "Session '%s' was frozen by hand by %s at %s UTC. Thaw it first: sandboxctl thaw %s", name,
                         by, when, name);
}

static int refuse_verb(VarlinkLink *link, const Session *s, SessionVerb verb) {
        const char *name = s->name ?: s->id;
        int r;

        if (s->state == SESSION_FROZEN)
                r = refuse_frozen(link, s);
        else
                r = api_error(link, API_ERROR("Busy"), "session", name,
                              "Session '%s' is %s: try again in a moment.", name,
                              session_state_to_string(s->state));
        return r < 0 ? r : 1;
}

const char *api_project_fault(const char *project, const char *mode, const char **ret_field) {
        *ret_field = "project";
        if (project && (project[0] != '/' || strlen(project) > SESSION_PROJECT_MAX))
                return "project must be an absolute path of at most 4096 bytes.";
        if (!mode || streq(mode, project_mode_to_string(PROJECT_NONE)))
                return NULL;
        if (project_mode_from_string(mode) < 0) {
                *ret_field = "project_mode";
                return "project_mode must be \"none\", \"read-only\" or \"read-write\".";
        }
        if (!project || !project_path_is_plain(project))
                return "To be mounted, project must be an absolute path without \".\" and \"..\", and not the root "
                       "directory. Without a project leave project_mode out.";
        return NULL;
}

ProjectMode api_project_mode(const Config *c, const Environment *e, const char *asked) {
        ProjectMode allowed = e->project >= 0 ? e->project : c->project;

        /* What somebody says of an environment of his own is no consent of the administrator's. */
        if (e->is_users)
                allowed = MIN(allowed, c->project);

        return asked ? MIN(project_mode_from_string(asked), allowed) : PROJECT_NONE;
}

int api_refuse_name(VarlinkLink *link, const char *name) {
        _cleanup_free_ char *quoted = text_quote(name, NAME_MAX_LENGTH);

        return api_error(link, API_ERROR("BadName"), "name", name,
                         "%s is no session name: letters, digits, '-' and '_', starting with a letter or digit, at "
                         "most %u characters.",
                         quoted ?: "This", NAME_MAX_LENGTH);
}

int api_find_session(VarlinkLink *link, Manager *m, const SessionParameters *p, SessionVerb verb, Session **ret) {
        bool ambiguous;
        Session *s;
        int r;

        if (!name_is_valid(p->session))
                return api_refuse_name(link, p->session) < 0 ? -ENOMEM : 1;

        s = manager_find_session(m, varlink_link_peer(link)->uid, p->project, p->session, &ambiguous);
        if (ambiguous) {
                r = api_error(link, API_ERROR("BadName"), "name", p->session,
                              "You have sessions '%s' in several projects: name one by its id ('sandboxctl "
                              "list').",
                              p->session);
                return r < 0 ? r : 1;
        }
        if (!s) {
                r = api_find_foreign(link, m, p, verb, &s);
                if (r != 0)
                        return r;
        }
        if (!s)
                return refuse_missing(link, m, p->session);
        if (!session_verb_allowed(s->state, verb))
                return refuse_verb(link, s, verb);

        *ret = s;
        return 0;
}

int api_session_parameters(VarlinkLink *link, Manager *m, json_object *parameters, SessionVerb verb,
                           Session **ret) {
        static const JsonField table[] = {
                { "session", JSON_KIND_STRING, offsetof(SessionParameters, session), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(SessionParameters, project) },
                { "any_user", JSON_KIND_BOOL, offsetof(SessionParameters, any_user) },
                { "interactive", JSON_KIND_BOOL, offsetof(SessionParameters, interactive) },
                {},
        };
        SessionParameters p = {};
        int r;

        r = api_dispatch(link, parameters, table, &p);
        return r != 0 ? r : api_find_session(link, m, &p, verb, ret);
}
