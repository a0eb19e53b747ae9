/* SPDX-License-Identifier: MIT */

#include "proxy/refusals.h"

#include <stdio.h>

static bool is_same(const Refusal *a, const char *host, uint16_t port, const char *address, NetworkVerdict verdict) {
        return a->port == port && a->verdict == verdict && streq(a->host, host) && streq(a->address, address);
}

/* An entry that has been told makes room, the one that was told first; else there is none. */
static Refusal *make_room(Refusals *r) {
        Refusal *oldest = NULL;

        if (r->n < PROXY_REFUSALS_KEPT)
                return &r->items[r->n++];
        for (size_t i = 0; i < r->n; i++)
                if (r->items[i].count == 0 && (!oldest || r->items[i].told < oldest->told))
                        oldest = &r->items[i];
        return oldest;
}

int refusals_add(Refusals *r, const char *host, uint16_t port, const char *address, NetworkVerdict verdict) {
        Refusal new = { .port = port, .verdict = verdict, .count = 1 }, *place;

        if (!r->items)
                r->items = calloc(PROXY_REFUSALS_KEPT, sizeof(*r->items));
        if (!r->items)
                return -ENOMEM;

        (void) snprintf(new.host, sizeof(new.host), "%s", host);
        (void) snprintf(new.address, sizeof(new.address), "%s", address ?: "");
        for (size_t i = 0; i < r->n; i++)
                if (is_same(&r->items[i], new.host, port, new.address, verdict)) {
                        r->items[i].count += r->items[i].count < INT64_MAX;
                        return 0;
                }

        place = make_room(r);
        if (place)
                *place = new;
        return 0;
}

static uint64_t time_of(const Refusal *a) {
        return a->told == 0 ? 0 : usec_add(a->told, USEC_PER_SEC);
}

bool refusals_next(Refusals *r, uint64_t now, Refusal *ret, uint64_t *ret_next) {
        Refusal *first = NULL;
        uint64_t next;

        for (size_t i = 0; i < r->n; i++)
                if (r->items[i].count > 0 && (!first || time_of(&r->items[i]) < time_of(first)))
                        first = &r->items[i];
        *ret_next = USEC_INFINITY;
        if (!first)
                return false;

        next = time_of(first);
        if (r->n_told >= PROXY_REFUSALS_PER_SECOND)
                next = MAX(next, usec_add(r->told[r->n_told % PROXY_REFUSALS_PER_SECOND], USEC_PER_SEC));
        if (next > now) {
                *ret_next = next;
                return false;
        }

        r->told[r->n_told % PROXY_REFUSALS_PER_SECOND] = now;
        r->n_told++;
        *ret = *first;
        first->told = MAX(now, 1U);
        first->count = 0;
        return true;
}

void refusals_done(Refusals *r) {
        free(r->items);
        *r = (Refusals) {};
}
