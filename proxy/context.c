/* SPDX-License-Identifier: MIT */

#include "proxy/context.h"

#include <unistd.h>

#include "lib/text.h"

void context_init(Context *c, sd_event *event, Resolver *resolver) {
        *c = (Context) { .event = event, .resolver = resolver, .uid = geteuid() };
}

int context_judge(Context *c, const NetworkAddress *a, AddressClass *ret) {
        uint64_t now = now_monotonic();
        int r;

        if (!c->is_read || now >= usec_add(c->read_at, CONTEXT_OWN_USEC)) {
                c->is_read = false;
                r = own_addresses_read(&c->own);
                if (r < 0)
                        return r;
                c->is_read = true;
                c->read_at = now;
        }
        *ret = address_judge(&c->own, a);
        return 0;
}

void context_done(Context *c) {
        own_addresses_done(&c->own);
}
