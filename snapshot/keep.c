/* SPDX-License-Identifier: MIT */

#include "snapshot/keep.h"

bool keep_is_expired(uint64_t time_usec, uint64_t expire_usec, uint64_t now_usec) {
        return usec_add(time_usec, expire_usec) <= now_usec;
}

void keep_mark_key(Kept *kept, size_t n, const KeepRules *rules, bool spare_newest) {
        uint64_t n_good = 0;

        for (size_t i = n; i-- > 0;) {
                Kept *k = &kept[i];

                if (n_good >= rules->keep || keep_is_expired(k->time_usec, rules->expire_usec, rules->now_usec))
                        k->remove = !(spare_newest && k->good && n_good == 0);
                n_good += k->good;
        }
}

/* Whether no later good one is in the same key. */
static bool is_newest(const Kept *kept, size_t n, size_t i) {
        size_t key = kept[i].key;

        if (!kept[i].good)
                return false;
        while (++i < n && kept[i].key == key)
                if (kept[i].good && !kept[i].remove)
                        return false;
        return true;
}

static Kept *oldest(Kept *kept, size_t n) {
        Kept *found = NULL;

        for (size_t i = 0; i < n; i++)
                if (!kept[i].remove && !is_newest(kept, n, i) &&
                    (!found || strcmp(kept[i].id.text, found->id.text) < 0))
                        found = &kept[i];
        return found;
}

bool keep_mark_total(Kept *kept, size_t n, uint64_t max) {
        uint64_t total = 0;

        for (size_t i = 0; i < n; i++)
                if (!kept[i].remove && __builtin_add_overflow(total, kept[i].bytes, &total))
                        total = UINT64_MAX;

        while (total > max) {
                Kept *k = oldest(kept, n);

                if (!k)
                        return false;
                k->remove = true;
                total -= MIN(total, k->bytes);
        }
        return true;
}
