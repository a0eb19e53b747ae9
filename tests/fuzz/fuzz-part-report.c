/* SPDX-License-Identifier: MIT */

/* What a driver says of a part becomes a report of ours, which has its bounds and is read back as itself. */

#include "agent/part-report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(part_report_done) PartReport report = {}, again = {};
        _cleanup_(buffer_done) Buffer b = {}, b2 = {};

        if (part_report_parse(&report, (const char *) data, size) < 0)
                return 0;

        assert_se(part_report_print(&report, /* name= */ NULL, &b) == 0);
        assert_se(buffer_size(&b) <= PART_REPORT_MAX);
        assert_se(part_report_parse(&again, buffer_data(&b), buffer_size(&b)) == 0);
        assert_se(part_report_is_ok(&again) == part_report_is_ok(&report));
        assert_se(part_report_print(&again, /* name= */ NULL, &b2) == 0);
        assert_se(buffer_size(&b) == buffer_size(&b2));
        return 0;
}
