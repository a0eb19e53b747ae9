/* SPDX-License-Identifier: MIT */

#include "proxy/settings.h"

#include "lib/http-field.h"
#include "lib/network-list-json.h"
#include "lib/text.h"

/* What the JSON may have of values: all rules and credentials, and a little more. */
#define VALUES_MAX (4 * NETWORK_RULES_MAX + 5 * SETTINGS_CREDENTIALS_MAX + 64)

static int read_rules(json_object *array, const char *which, NetworkList *ret, char **reterr_why) {
        _cleanup_free_ char *why = NULL;
        int r = network_list_from_json(array, ret, &why);

        if (r < 0)
                return why ? text_explain(-EINVAL, reterr_why, "policy.%s%s", which, why) : -ENOMEM;
        return 0;
}

/* "caller" is null or left out where the caller has no say. */
static int read_policy(json_object *o, NetworkPolicy *ret, char **reterr_why) {
        struct {
                json_object *environment, *caller, *granted;
        } p = {};
        static const JsonField table[] = {
                { "environment", JSON_KIND_ARRAY, offsetof(typeof(p), environment), JSON_MANDATORY },
                { "caller", JSON_KIND_ARRAY, offsetof(typeof(p), caller), 0 },
                { "granted", JSON_KIND_ARRAY, offsetof(typeof(p), granted), JSON_MANDATORY },
                {},
        };
        const char *field;
        int r;

        if (json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, &field) < 0)
                return text_explain(-EINVAL, reterr_why, "policy.%s: missing, unknown or of the wrong type",
                                    field ?: "");

        ret->narrowed = p.caller;
        r = read_rules(p.environment, "environment", &ret->environment, reterr_why);
        if (r >= 0 && p.caller)
                r = read_rules(p.caller, "caller", &ret->caller, reterr_why);
        if (r >= 0)
                r = read_rules(p.granted, "granted", &ret->granted, reterr_why);
        return r;
}

static bool is_field(const char *name, const char *value) {
        for (; *value; value++)
                if (!char_is_field(*value))
                        return false;
        return http_field_may_be_added(name);
}

/* The sentences name no value: it is the secret. */
static int read_credential(json_object *o, size_t i, Credential *ret, char **reterr_why) {
        struct {
                const char *host, *name, *value;
                uint64_t port;
        } p = {};
        static const JsonField table[] = {
                { "host", JSON_KIND_STRING, offsetof(typeof(p), host), JSON_MANDATORY },
                { "port", JSON_KIND_UINT, offsetof(typeof(p), port), JSON_MANDATORY },
                { "name", JSON_KIND_STRING, offsetof(typeof(p), name), JSON_MANDATORY },
                { "value", JSON_KIND_STRING, offsetof(typeof(p), value), JSON_MANDATORY },
                {},
        };
        const char *field;
        int r;

        if (json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, &field) < 0)
                return text_explain(-EINVAL, reterr_why, "credentials[%zu].%s: missing, unknown or of the wrong type",
                                    i, field ?: "");
        if (p.port < 1 || p.port > UINT16_MAX)
                return text_explain(-EINVAL, reterr_why, "credentials[%zu].port: must be from 1 to 65535", i);
        if (!is_field(p.name, p.value))
                return text_explain(-EINVAL, reterr_why, "credentials[%zu]: is no header field that may be added", i);

        r = network_host_parse(p.host, strlen(p.host), &ret->host);
        if (r == -EINVAL)
                return text_explain(-EINVAL, reterr_why, "credentials[%zu].host: is no host", i);
        ret->port = (uint16_t) p.port;
        if (r >= 0)
                r = free_and_strdup(&ret->name, p.name);
        if (r >= 0)
                r = free_and_strdup(&ret->value, p.value);
        return r;
}

static int read_credentials(json_object *array, Settings *s, char **reterr_why) {
        size_t n = json_object_array_length(array);

        if (n > SETTINGS_CREDENTIALS_MAX)
                return text_explain(-EINVAL, reterr_why, "credentials: more than %u", SETTINGS_CREDENTIALS_MAX);
        if (n == 0)
                return 0;
        s->credentials = calloc(n, sizeof(*s->credentials));
        if (!s->credentials)
                return -ENOMEM;

        for (size_t i = 0; i < n; i++) {
                int r;

                s->n_credentials++;
                r = read_credential(json_object_array_get_idx(array, i), i, &s->credentials[i], reterr_why);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_limits(json_object *o, NetworkLimits *ret, char **reterr_why) {
        _cleanup_free_ char *why = NULL;
        int r = network_limits_from_json(o, ret, &why);

        if (r < 0)
                return why ? text_explain(-EINVAL, reterr_why, "limits: %s", why) : -ENOMEM;
        return 0;
}

static int read_all(json_object *o, bool may_use, Settings *s, char **reterr_why) {
        struct {
                json_object *policy, *limits, *used, *credentials;
        } p = {};
        static const JsonField table[] = {
                { "policy", JSON_KIND_OBJECT, offsetof(typeof(p), policy), JSON_MANDATORY },
                { "limits", JSON_KIND_OBJECT, offsetof(typeof(p), limits), JSON_MANDATORY },
                { "used", JSON_KIND_OBJECT, offsetof(typeof(p), used), 0 },
                { "credentials", JSON_KIND_ARRAY, offsetof(typeof(p), credentials), 0 },
                {},
        };
        const char *field;
        int r;

        if (json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, &field) < 0)
                return text_explain(-EINVAL, reterr_why, "%s: missing, unknown or of the wrong type",
                                    field ?: "the whole");
        if (p.used && (!may_use || network_usage_from_json(p.used, &s->used) < 0))
                return text_explain(-EINVAL, reterr_why, "used: not here, or not as it can be");
        /* Those connections ended with the process that had them. */
        s->used.connections_open = 0;

        r = read_policy(p.policy, &s->policy, reterr_why);
        if (r >= 0)
                r = read_limits(p.limits, &s->limits, reterr_why);
        if (r >= 0 && p.credentials)
                r = read_credentials(p.credentials, s, reterr_why);
        return r;
}

int settings_parse(const char *data, size_t size, bool may_use, Settings *ret, char **reterr_why) {
        _cleanup_(settings_done) Settings s = { .limits = network_limits_default };
        _cleanup_json_ json_object *o = NULL;
        int r;

        *reterr_why = NULL;
        r = json_parse_bounded(data, size, VALUES_MAX, &o);
        if (r < 0)
                return r == -ENOMEM ? r : text_explain(-EINVAL, reterr_why, "it is no JSON");
        r = read_all(o, may_use, &s, reterr_why);
        if (r < 0)
                return r;

        *ret = s;
        s = (Settings) {};
        return 0;
}

const Credential *settings_credential(const Settings *s, const NetworkHost *host, uint16_t port) {
        for (size_t i = 0; i < s->n_credentials; i++)
                if (s->credentials[i].port == port && network_host_equal(&s->credentials[i].host, host))
                        return &s->credentials[i];
        return NULL;
}

/* A secret does not stay in freed memory. */
static void free_secret(char *value) {
        if (value)
                explicit_bzero(value, strlen(value));
        free(value);
}

void settings_done(Settings *s) {
        network_policy_done(&s->policy);
        for (size_t i = 0; i < s->n_credentials; i++) {
                free(s->credentials[i].name);
                free_secret(s->credentials[i].value);
        }
        free(s->credentials);
        *s = (Settings) {};
}
