/* SPDX-License-Identifier: MIT */

/* The members are typed by json_dispatch(), then held to the ranges of a table of their own. */

#include "network-limits.h"

#include "text.h"

#define KEY_SHOWN_MAX 64U

const NetworkLimits network_limits_default = {
        .connections = 64,
        .bytes_per_second = UINT64_MAX,
        .bytes = UINT64_MAX,
        .idle_usec = 60 * USEC_PER_SEC,
        .total_usec = 3600 * USEC_PER_SEC,
};

/* A number in JSON as a number of our own. */
typedef struct Bounded {
        const char *name;
        size_t offset;          /* in NetworkLimits */
        uint64_t scale;         /* ours are so many to one of theirs */
        double min, max;        /* theirs */
        bool whole;
        bool zero_is_none;
} Bounded;

static const Bounded members[] = {
        { "connections", offsetof(NetworkLimits, connections), 1, 1, NETWORK_CONNECTIONS_MAX, .whole = true },
        { "rate_mbps", offsetof(NetworkLimits, bytes_per_second), MIB, NETWORK_RATE_MBPS_MIN, NETWORK_RATE_MBPS_MAX,
          .zero_is_none = true },
        { "transfer_mb", offsetof(NetworkLimits, bytes), MIB, 1, NETWORK_TRANSFER_MB_MAX, .whole = true,
          .zero_is_none = true },
        { "idle_seconds", offsetof(NetworkLimits, idle_usec), USEC_PER_SEC, NETWORK_IDLE_SECONDS_MIN,
          NETWORK_SECONDS_MAX },
        { "total_seconds", offsetof(NetworkLimits, total_usec), USEC_PER_SEC, NETWORK_IDLE_SECONDS_MIN,
          NETWORK_SECONDS_MAX },
};

static int explain(const Bounded *m, char **reterr_why) {
        return text_explain(-EINVAL, reterr_why, "%s: must be a %snumber%s from %.10g to %.10g", m->name,
                            m->whole ? "whole " : "", m->zero_is_none ? ", 0 or" : "", m->min, m->max);
}

/* A member that is unknown, or of the wrong type; NULL: no object at all. */
static int explain_field(const char *field, char **reterr_why) {
        _cleanup_free_ char *quoted = NULL;

        if (!field)
                return text_explain(-EINVAL, reterr_why, "must be an object");
        for (size_t i = 0; i < ELEMENTSOF(members); i++)
                if (streq(field, members[i].name))
                        return explain(&members[i], reterr_why);

        *reterr_why = NULL;
        quoted = text_quote(field, KEY_SHOWN_MAX);
        return quoted ? text_explain(-EINVAL, reterr_why, "%s: unknown key", quoted) : -EINVAL;
}

static bool convert(const Bounded *m, double number, uint64_t *ret) {
        if (number == 0 && m->zero_is_none) {
                *ret = UINT64_MAX;
                return true;
        }
        /* Also false for NaN. */
        if (!(number >= m->min && number <= m->max))
                return false;
        *ret = (uint64_t) (number * (double) m->scale + 0.5);
        return true;
}

int network_limits_from_json(json_object *o, NetworkLimits *ret, char **reterr_why) {
        json_object *values[ELEMENTSOF(members)] = {};
        JsonField table[ELEMENTSOF(members) + 1] = {};
        NetworkLimits l = *ret;
        const char *field;

        for (size_t i = 0; i < ELEMENTSOF(members); i++)
                table[i] = (JsonField) { members[i].name, JSON_KIND_ANY, i * sizeof(values[0]) };
        if (json_dispatch(o, table, JSON_UNKNOWN_REFUSE, values, &field) < 0)
                return explain_field(field, reterr_why);

        for (size_t i = 0; i < ELEMENTSOF(members); i++) {
                const Bounded *m = &members[i];
                bool number = json_object_is_type(values[i], json_type_int) ||
                        (!m->whole && json_object_is_type(values[i], json_type_double));

                if (!values[i])
                        continue;
                if (!number || !convert(m, json_object_get_double(values[i]), (uint64_t *) ((char *) &l + m->offset)))
                        return explain(m, reterr_why);
        }

        *ret = l;
        return 0;
}

int network_limits_to_json(const NetworkLimits *l, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(members); i++) {
                const Bounded *m = &members[i];
                uint64_t value = *(const uint64_t *) ((const char *) l + m->offset);
                int r;

                if (value == UINT64_MAX && m->zero_is_none)
                        value = 0;
                r = value % m->scale == 0 ? json_put_uint(o, m->name, value / m->scale) :
                        json_put_number(o, m->name, (double) value / (double) m->scale);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(o);
        return 0;
}
