/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "snapshot/keep.h"

TestSuite(snapshot_keep, .timeout = 10);

#define N_MAX 16U

/*
 * A scene in characters, the oldest first: g good, d damaged, | the next key. Each is one second older than the one
 * after it and has 10 bytes; the last is made now.
 */
static size_t scene(const char *text, Kept kept[N_MAX], KeepRules *rules) {
        size_t n = 0, key = 0;

        for (const char *p = text; *p; p++) {
                if (*p == '|') {
                        key++;
                        continue;
                }
                kept[n] = (Kept) { .key = key, .time_usec = 1000 * USEC_PER_SEC + n * USEC_PER_SEC, .bytes = 10, .good = *p == 'g' };
                (void) snprintf(kept[n].id.text, sizeof(kept[n].id.text), "id-%02zu", n);
                n++;
        }
        rules->now_usec = kept[n - 1].time_usec;
        return n;
}

static void check_marks(const char *text, const Kept *kept, const char *expected) {
        for (size_t i = 0; expected[i]; i++)
                cr_assert_eq(kept[i].remove, expected[i] == 'x', "%s: place %zu", text, i);
}

/* Which of one key's go: x. */
static void check_key(const char *text, uint64_t keep, uint64_t expire_sec, bool spare, const char *expected) {
        KeepRules rules = { .keep = keep, .expire_usec = expire_sec * USEC_PER_SEC };
        Kept kept[N_MAX];
        size_t n = scene(text, kept, &rules);

        keep_mark_key(kept, n, &rules, spare);
        check_marks(text, kept, expected);
}

Test(snapshot_keep, surplus) {
        check_key("g", 1, 100, true, ".");
        check_key("ggggg", 2, 100, true, "xxx..");
        check_key("ggggg", 5, 100, true, ".....");
        /* What is damaged takes no good one's place. */
        check_key("ggddg", 2, 100, true, "x....");
        check_key("dgdgd", 2, 100, true, "x....");
        check_key("ggddd", 1, 100, true, "x....");
        check_key("ddd", 1, 100, true, "...");
}

Test(snapshot_keep, expired) {
        check_key("ggggg", 5, 2, false, "xxx..");
        check_key("ggddd", 5, 2, true, "x.x..");
        check_key("ggddd", 5, 2, false, "xxx..");
        check_key("ggg", 5, 1, false, "xx.");
        check_key("ddd", 5, 1, true, "xx.");
}

/* All of a user's, without any marks from before. */
static void check_total(const char *text, uint64_t max, bool enough, const char *expected) {
        KeepRules rules = {};
        Kept kept[N_MAX];
        size_t n = scene(text, kept, &rules);

        cr_assert_eq(keep_mark_total(kept, n, max), enough, "%s", text);
        check_marks(text, kept, expected);
}

Test(snapshot_keep, total) {
        check_total("gg|gg", 40, true, "....");
        check_total("gg|gg", 39, true, "x...");
        check_total("gg|gg", 30, true, "x...");
        check_total("gg|gg", 29, true, "x.x.");
        check_total("gg|gg", 20, true, "x.x.");
        check_total("gg|gg", 19, false, "x.x.");
        check_total("g|g|g", 29, false, "...");
        check_total("gd|gg", 30, true, ".x..");
        check_total("d|g", 10, true, "x.");
}

/* What is marked already is as good as gone. */
Test(snapshot_keep, total_after_surplus) {
        KeepRules rules = { .keep = 1, .expire_usec = USEC_INFINITY };
        Kept kept[N_MAX];
        size_t n = scene("ggg|gg", kept, &rules);

        keep_mark_key(kept, 3, &rules, true);
        cr_assert(keep_mark_total(kept, n, 30));
        check_marks("", kept, "xx...");
        cr_assert(keep_mark_total(kept, n, 29));
        check_marks("", kept, "xx.x.");
}

Test(snapshot_keep, huge) {
        KeepRules rules = {};
        Kept kept[N_MAX];
        size_t n = scene("gg|g", kept, &rules);

        for (size_t i = 0; i < n; i++)
                kept[i].bytes = UINT64_MAX / 2 + 1;
        cr_assert_not(keep_mark_total(kept, n, 100));
}
