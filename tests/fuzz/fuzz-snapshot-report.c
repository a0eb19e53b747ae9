/* SPDX-License-Identifier: MIT */

/* A report of any bytes becomes one of our form, which is not larger than the stream allows and is typed as itself. */

#include "lib/snapshot-stream.h"
#include "snapshot/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_json_ json_object *o = NULL, *again = NULL;

        assert_se(report_read((const char *) data, size, &o) == 0);
        assert_se(report_type(o, &again) == 0);
        assert_se(json_object_equal(o, again));
        return 0;
}
