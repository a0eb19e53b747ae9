/* SPDX-License-Identifier: MIT */

#include "proxy/share.h"

/* A quarter of a second, in which a loop has many turns; at least what one read is worth, and at most what may
 * reasonably come at once. */
#define BURST_MIN 1024U
#define BURST_MAX (8 * MIB)

static uint64_t burst_of(uint64_t rate) {
        return MAX(MIN(rate / 4, BURST_MAX), BURST_MIN);
}

void share_init(Share *s, uint64_t bytes_per_second) {
        *s = (Share) {};
        s->end = &s->first;
        rate_init(&s->rate, bytes_per_second, burst_of(bytes_per_second));
}

void share_set_rate(Share *s, uint64_t bytes_per_second) {
        rate_init(&s->rate, bytes_per_second, burst_of(bytes_per_second));
}

uint64_t share_available(Share *s, uint64_t now) {
        return s->n_waiting > 0 ? 0 : rate_available(&s->rate, now);
}

void share_take(Share *s, uint64_t n) {
        rate_take(&s->rate, n);
}

bool share_waits(const ShareMember *m) {
        return m->link;
}

void share_wait(Share *s, ShareMember *m) {
        if (share_waits(m))
                return;
        m->next = NULL;
        m->link = s->end;
        *s->end = m;
        s->end = &m->next;
        s->n_waiting++;
}

void share_leave(Share *s, ShareMember *m) {
        if (!share_waits(m))
                return;
        *m->link = m->next;
        if (m->next)
                m->next->link = m->link;
        else
                s->end = m->link;
        *m = (ShareMember) {};
        s->n_waiting--;
}

uint64_t share_next(Share *s, uint64_t now) {
        return s->n_waiting > 0 ? rate_next(&s->rate, now, UINT64_MAX) : USEC_INFINITY;
}

ShareMember *share_serve(Share *s, uint64_t now, size_t n, uint64_t *ret_part) {
        ShareMember *m = s->first;
        uint64_t available;

        if (!m)
                return NULL;
        available = rate_available(&s->rate, now);
        if (available == 0)
                return NULL;

        *ret_part = available;
        if (available != UINT64_MAX)
                *ret_part = MAX(available / n, MIN(available, SHARE_PART_MIN));
        share_leave(s, m);
        return m;
}
