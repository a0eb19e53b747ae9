/* SPDX-License-Identifier: MIT */

#include "daemon/config-credential.h"

#include <limits.h>

#include "daemon/config-environment.h"
#include "lib/http-field.h"
#include "lib/network-host.h"
#include "lib/text.h"

/* As it is being read: a whole number of any size is told from a port. */
typedef struct Entry {
        NetworkCredential credential;
        uint64_t port;
} Entry;

static int read_host(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        char text[NETWORK_HOST_SIZE];
        Entry *e = target;
        NetworkHost host;
        const char *s;
        int k;

        k = config_read_string(r, place, value, &s);
        if (k < 0)
                return k;
        k = network_host_parse(s, strlen(s), &host);
        if (k == -EINVAL)
                return config_error(r, place, "must be one host, such as \"registry.example\", without a port");
        return k < 0 ? k : free_and_strdup(&e->credential.host, network_host_format(&host, text));
}

static int read_header(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        Entry *e = target;
        const char *s;
        int k;

        k = config_read_string(r, place, value, &s);
        if (k < 0)
                return k;
        if (!http_field_may_be_added(s) || strlen(s) > NETWORK_CREDENTIAL_HEADER_MAX)
                return config_error(r, place,
                                    "must be the name of a header field, such as \"Authorization\", that the proxy "
                                    "does not write itself, of at most %u bytes",
                                    NETWORK_CREDENTIAL_HEADER_MAX);
        return free_and_strdup(&e->credential.header, s);
}

static int read_file(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return config_read_path(r, place, value, &((Entry *) target)->credential.file);
}

/* systemd has no others. */
static bool is_credential_name(const char *s) {
        for (const char *p = s; *p; p++)
                if (*p <= ' ' || *p > '~' || *p == '/' || *p == ':')
                        return false;
        return *s && strlen(s) <= NAME_MAX && !streq(s, ".") && !streq(s, "..");
}

static int read_name(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        Entry *e = target;
        const char *s;
        int k;

        k = config_read_string(r, place, value, &s);
        if (k < 0)
                return k;
        if (!is_credential_name(s))
                return config_error(r, place,
                                    "must be the name of a credential, as in systemd's LoadCredential=NAME:PATH");
        return free_and_strdup(&e->credential.credential, s);
}

static const ConfigField credential_fields[] = {
        { "host", CONFIG_OTHER, .read = read_host },
        { "port", CONFIG_COUNT, offsetof(Entry, port), 1, UINT16_MAX },
        { "header", CONFIG_OTHER, .read = read_header },
        { "file", CONFIG_OTHER, .read = read_file },
        { "credential", CONFIG_OTHER, .read = read_name },
        {}
};

static int check(const ConfigReader *r, const ConfigPlace *place, const Environment *e, const NetworkCredential *c) {
        if (!c->host || !c->header)
                return config_error(r, place, "each needs \"host\" and \"header\"");
        if (!c->file == !c->credential)
                return config_error(r, place, "each needs either \"file\" or \"credential\", which says where its "
                                              "value is");
        for (size_t i = 0; i < e->n_credentials; i++)
                if (streq(e->credentials[i].host, c->host) && e->credentials[i].port == c->port)
                        return config_error(r, place, "has %s:%u twice", c->host, c->port);
        return 0;
}

/* There is room for it. */
static int read_credential(const ConfigReader *r, const ConfigPlace *place, json_object *value, Environment *e) {
        Entry entry = { .port = 80 };
        int k;

        k = config_read_object(r, place, value, credential_fields, &entry);
        entry.credential.port = (uint16_t) entry.port;
        if (k >= 0)
                k = check(r, place, e, &entry.credential);
        if (k >= 0)
                e->credentials[e->n_credentials++] = entry.credential;
        else
                network_credential_done(&entry.credential);
        return k;
}

int config_read_credentials(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        Environment *e = target;
        size_t n;
        int k = 0;

        if (!json_object_is_type(value, json_type_array))
                return config_error(r, place, "must be a list of objects");
        n = json_object_array_length(value);
        if (n > NETWORK_CREDENTIALS_MAX)
                return config_error(r, place, "must not have more than %u", NETWORK_CREDENTIALS_MAX);
        if (n == 0)
                return 0;

        e->credentials = calloc(n, sizeof(NetworkCredential));
        if (!e->credentials)
                return -ENOMEM;
        for (size_t i = 0; k >= 0 && i < n; i++)
                k = read_credential(r, place, json_object_array_get_idx(value, i), e);
        return k;
}

int config_write_credentials(json_object *entry, const Environment *e) {
        _cleanup_json_ json_object *list = json_object_new_array();

        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < e->n_credentials; i++) {
                const NetworkCredential *c = &e->credentials[i];
                _cleanup_json_ json_object *o = json_object_new_object();

                if (!o || json_put_string(o, "host", c->host) < 0 || json_put_uint(o, "port", c->port) < 0 ||
                    json_put_string(o, "header", c->header) < 0 ||
                    json_put_string(o, c->file ? "file" : "credential", c->file ?: c->credential) < 0 ||
                    json_array_put(list, TAKE_PTR(o)) < 0)
                        return -ENOMEM;
        }
        return json_put_object(entry, "credentials", TAKE_PTR(list));
}
