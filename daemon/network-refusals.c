/* SPDX-License-Identifier: MIT */

#include "daemon/network-refusals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static void network_refusal_done(NetworkRefusal *i) {
        free(i->where);
        free(i->address);
        *i = (NetworkRefusal){};
}

static NetworkRefusal *find(NetworkRefusals *r, const char *where, NetworkVerdict verdict) {
        for (size_t i = 0; i < r->n; i++)
                if (r->items[i].verdict == verdict && streq(r->items[i].where, where))
                        return &r->items[i];
        return NULL;
}

int network_refusals_add(NetworkRefusals *r, const ProxyRefusal *refusal) {
        _cleanup_free_ char *where = NULL, *address = NULL;
        NetworkRefusal *known;

        if (asprintf(&where, "%s:%u", refusal->host, refusal->port) < 0) {
                where = NULL;
                return -ENOMEM;
        }
        known = find(r, where, refusal->verdict);
        if (known) {
                known->count += MIN(refusal->count, INT64_MAX - known->count);
                return 0;
        }
        if (r->n == NETWORK_REFUSALS_TOLD_MAX) {
                r->more = true;
                return 0;
        }

        address = refusal->address ? strdup(refusal->address) : NULL;
        if (refusal->address && !address)
                return -ENOMEM;
        r->items[r->n++] = (NetworkRefusal){
                .where = TAKE_PTR(where),
                .address = TAKE_PTR(address),
                .verdict = refusal->verdict,
                .count = refusal->count,
        };
        return 0;
}

static int append_reason(Buffer *b, const NetworkRefusal *i, const char *environment) {
        if (i->verdict == NETWORK_REFUSED_NARROWED)
                return buffer_printf(b, "not in the list that this session was narrowed to");
        if (i->verdict == NETWORK_REFUSED_EXCEPTION)
                return buffer_printf(b, "an exception in the allow list");
        if (i->verdict == NETWORK_REFUSED_SPECIAL_ADDRESS)
                return buffer_printf(b, "it leads to %s, which is not an address of the public network",
                                     i->address ?: "an address");
        return buffer_printf(b, "not in the allow list of environment %s", environment);
}

static int append(Buffer *b, const NetworkRefusal *i, const char *environment) {
        int r;

        r = buffer_printf(b, "%snetwork: refused %s (", buffer_size(b) > 0 ? "\n" : "", i->where);
        if (r >= 0)
                r = append_reason(b, i, environment);
        if (r >= 0)
                r = buffer_printf(b, i->count > 1 ? "), %" PRIu64 " times" : ")", i->count);
        return r;
}

int network_refusals_tell(NetworkRefusals *r, const char *environment, Buffer *ret) {
        int k = 0;

        for (size_t i = 0; k >= 0 && i < r->n; i++)
                k = append(ret, &r->items[i], environment);
        if (k >= 0 && r->more)
                k = buffer_printf(ret, "\nnetwork: more was refused; 'sandboxctl events' has all of it");
        network_refusals_done(r);
        return k;
}

void network_refusals_done(NetworkRefusals *r) {
        for (size_t i = 0; i < r->n; i++)
                network_refusal_done(&r->items[i]);
        *r = (NetworkRefusals){};
}
