/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "snapshot/id.h"

TestSuite(snapshot_id, .timeout = 10);

#define NOW UINT64_C(1795856843000000)

Test(snapshot_id, spelling) {
        static const char *const bad[] = {
                "", "x", "20261128T090723", "20261128T090723-", "20261128T090723-3ebe55f", "20261128T090723-3ebe55fef",
                "20261128T090723-3EBE55FE", "20261128T090723_3ebe55fe", "20261128 090723-3ebe55fe",
                "20261328T090723-3ebe55fe", "20260230T090723-3ebe55fe", "20261128T240723-3ebe55fe",
                "20261128T090760-3ebe55fe", "2026112 T090723-3ebe55fe", " 2026112T090723-3ebe55fe",
                "20261128T090723-0x3ebe55", "20261128T090723- ebe55fe", "20261128T090723--ebe55fe",
                ".new-20261128T090723-3ebe55fe", "20261128T090723-3ebe55f/", "../261128T090723-3ebe55fe",
        };

        cr_assert(id_is_valid("20261128T090723-3ebe55fe"));
        cr_assert(id_is_valid("19700101T000000-00000000"));
        cr_assert_eq(id_time_usec("20261128T090723-3ebe55fe"), NOW);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                cr_assert_not(id_is_valid(bad[i]), "%s", bad[i]);
}

Test(snapshot_id, is_of_its_time) {
        SnapshotId id;

        cr_assert_eq(id_next(NULL, NOW + 999999, &id), 0);
        cr_assert_eq(strncmp(id.text, "20261128T090723-", 16), 0);
        cr_assert(id_is_valid(id.text));
        cr_assert_eq(id_next("20261128T090722-ffffffff", NOW, &id), 0);
        cr_assert_eq(strncmp(id.text, "20261128T090723-", 16), 0);
}

/* A thousand in one second, and after the clock was set back by an hour. */
Test(snapshot_id, ascends) {
        SnapshotId last, next;

        cr_assert_eq(id_next(NULL, NOW, &last), 0);
        for (unsigned i = 0; i < 1000; i++, last = next) {
                cr_assert_eq(id_next(last.text, i < 500 ? NOW : NOW - 3600 * USEC_PER_SEC, &next), 0);
                cr_assert(id_is_valid(next.text));
                cr_assert_gt(strcmp(next.text, last.text), 0, "%s %s", last.text, next.text);
        }
}

Test(snapshot_id, goes_on_in_the_next_second) {
        SnapshotId id;

        cr_assert_eq(id_next("20261128T090723-ffffffff", NOW, &id), 0);
        cr_assert_eq(strncmp(id.text, "20261128T090724-", 16), 0);
        cr_assert_eq(id_next("99991231T235959-ffffffff", NOW, &id), -ERANGE);
}
