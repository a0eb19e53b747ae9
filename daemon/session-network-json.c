/* SPDX-License-Identifier: MIT */

/* The network of a session as JSON: for its proxy, and for the next daemon. */

#include "daemon/manager.h"
#include "daemon/session-network.h"
#include "lib/network-list-json.h"

/* ---- what the proxy is told ---- */

static int put_list(json_object *o, const char *key, const NetworkList *list) {
        json_object *array;
        int r;

        r = network_list_to_json(list, &array);
        return r < 0 ? r : json_put_object(o, key, array);
}

static int policy_to_json(const NetworkPolicy *p, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();
        int r;

        if (!o)
                return -ENOMEM;
        r = put_list(o, "environment", &p->environment);
        if (r >= 0)
                r = p->narrowed ? put_list(o, "caller", &p->caller) : json_put_object(o, "caller", NULL);
        if (r >= 0)
                r = put_list(o, "granted", &p->granted);
        if (r >= 0)
                *ret = TAKE_PTR(o);
        return r;
}

static int put_credential(json_object *array, const NetworkCredential *c) {
        _cleanup_json_ json_object *o = json_object_new_object();
        int r;

        if (!o)
                return -ENOMEM;
        r = json_put_string(o, "host", c->host);
        if (r >= 0)
                r = json_put_uint(o, "port", c->port);
        if (r >= 0)
                r = json_put_string(o, "name", c->header);
        if (r >= 0)
                r = json_put_string(o, "value", c->value);
        return r < 0 ? r : json_array_put(array, TAKE_PTR(o));
}

static int put_credentials(json_object *o, const Environment *e) {
        _cleanup_json_ json_object *array = json_object_new_array();

        if (!array)
                return -ENOMEM;
        for (size_t i = 0; i < e->n_credentials; i++)
                if (put_credential(array, &e->credentials[i]) < 0)
                        return -ENOMEM;
        return json_put_object(o, "credentials", TAKE_PTR(array));
}

static int put_used(json_object *o, const NetworkUsage *usage) {
        json_object *used;
        int r;

        r = network_usage_to_json(usage, &used);
        return r < 0 ? r : json_put_object(o, "used", used);
}

int session_network_settings(bool with_used, void *userdata, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();
        json_object *policy, *limits;
        const Session *s = userdata;
        int r;

        if (!o)
                return -ENOMEM;
        r = policy_to_json(&s->network->policy, &policy);
        if (r >= 0)
                r = json_put_object(o, "policy", policy);
        if (r >= 0)
                r = network_limits_to_json(&s->network->limits, &limits);
        if (r >= 0)
                r = json_put_object(o, "limits", limits);
        if (r >= 0 && with_used)
                r = put_used(o, &s->network->usage);
        if (r >= 0)
                r = put_credentials(o, s->environment);
        if (r >= 0)
                *ret = TAKE_PTR(o);
        return r;
}

/* ---- from one daemon to the next ---- */

int session_network_to_json(const Session *s, json_object **ret) {
        _cleanup_json_ json_object *o = NULL;
        int r;

        *ret = NULL;
        if (!s->network)
                return 0;
        r = policy_to_json(&s->network->policy, &o);
        if (r >= 0)
                r = put_used(o, &s->network->usage);
        if (r >= 0)
                *ret = TAKE_PTR(o);
        return r;
}

typedef struct Parsed {
        json_object *environment, *caller, *granted, *used;
} Parsed;

static int parse_list(json_object *array, NetworkList *ret) {
        _cleanup_free_ char *why = NULL;

        return network_list_from_json(array, ret, &why);
}

static int parse(json_object *o, Parsed *ret) {
        static const JsonField table[] = {
                { "environment", JSON_KIND_ARRAY, offsetof(Parsed, environment), JSON_MANDATORY },
                { "caller", JSON_KIND_ARRAY, offsetof(Parsed, caller) },
                { "granted", JSON_KIND_ARRAY, offsetof(Parsed, granted), JSON_MANDATORY },
                { "used", JSON_KIND_OBJECT, offsetof(Parsed, used), JSON_MANDATORY },
                {},
        };

        return json_dispatch(o, table, JSON_UNKNOWN_IGNORE, ret, NULL);
}

int session_network_environment_from_json(json_object *o, NetworkList *ret) {
        Parsed p = {};
        int r;

        r = parse(o, &p);
        return r < 0 ? r : parse_list(p.environment, ret);
}

int session_network_take(Session *s, json_object *record) {
        Parsed p = {};
        int r;

        r = parse(record, &p);
        if (r >= 0)
                r = session_network_alloc(s, /* narrowed= */ p.caller);
        if (r >= 0 && p.caller)
                r = parse_list(p.caller, &s->network->policy.caller);
        if (r >= 0)
                r = parse_list(p.granted, &s->network->policy.granted);
        if (r >= 0)
                r = network_usage_from_json(p.used, &s->network->usage);
        if (r >= 0)
                s->network->usage.connections_open = 0;
        return r;
}
