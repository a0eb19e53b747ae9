/* SPDX-License-Identifier: MIT */

#include "network-usage.h"

#include "network-limits.h"

static const JsonField table[] = {
        { "connections_open", JSON_KIND_UINT, offsetof(NetworkUsage, connections_open), JSON_MANDATORY },
        { "connections", JSON_KIND_UINT, offsetof(NetworkUsage, connections), JSON_MANDATORY },
        { "refused", JSON_KIND_UINT, offsetof(NetworkUsage, refused), JSON_MANDATORY },
        { "failed", JSON_KIND_UINT, offsetof(NetworkUsage, failed), JSON_MANDATORY },
        { "bytes_in", JSON_KIND_UINT, offsetof(NetworkUsage, bytes_in), JSON_MANDATORY },
        { "bytes_out", JSON_KIND_UINT, offsetof(NetworkUsage, bytes_out), JSON_MANDATORY },
        {},
};

static const uint64_t *member(const NetworkUsage *u, const JsonField *f) {
        return (const uint64_t *) ((const char *) u + f->offset);
}

uint64_t network_usage_add(uint64_t a, uint64_t b) {
        uint64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? NETWORK_USAGE_MAX : MIN(sum, NETWORK_USAGE_MAX);
}

uint64_t network_usage_bytes(const NetworkUsage *u) {
        return network_usage_add(u->bytes_in, u->bytes_out);
}

int network_usage_to_json(const NetworkUsage *u, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o)
                return -ENOMEM;
        for (const JsonField *f = table; f->name; f++)
                if (json_put_uint(o, f->name, *member(u, f)) < 0)
                        return -ENOMEM;
        *ret = TAKE_PTR(o);
        return 0;
}

int network_usage_from_json(json_object *o, NetworkUsage *ret) {
        NetworkUsage u = {};
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &u, NULL);
        if (r < 0)
                return r;
        for (const JsonField *f = table; f->name; f++)
                if (*member(&u, f) > NETWORK_USAGE_MAX)
                        return -EINVAL;
        if (u.connections_open > MIN(u.connections, NETWORK_CONNECTIONS_MAX) || u.failed > u.connections)
                return -EINVAL;

        *ret = u;
        return 0;
}
