/* SPDX-License-Identifier: MIT */

/*
 * A manifest of any bytes, under the checksum that belongs to them (a fuzzer would never find it): damaged, of a later
 * format, or one that is written and read again the same. The bytes as they are, too.
 */

#include "lib/buffer.h"
#include "snapshot/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const Manifest *m) {
        _cleanup_(manifest_done) Manifest again = {};
        _cleanup_(buffer_done) Buffer first = {}, second = {};

        if (manifest_write(m, &first) < 0)
                return;
        assert_se(manifest_read(buffer_data(&first), buffer_size(&first), &again) == 0);
        assert_se(manifest_write(&again, &second) == 0);
        assert_se(buffer_size(&first) == buffer_size(&second));
        assert_se(memcmp(buffer_data(&first), buffer_data(&second), buffer_size(&first)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(manifest_done) Manifest m = {}, raw = {};
        _cleanup_(buffer_done) Buffer b = {};
        char sum[HASH_LENGTH + 1];

        (void) manifest_read((const char *) data, size, &raw);

        hash_bytes(data, size, sum);
        assert_se(buffer_printf(&b, "sha256 %s\n", sum) == 0);
        assert_se(buffer_append(&b, data, size) == 0);
        if (manifest_read(buffer_data(&b), buffer_size(&b), &m) == 0)
                check_again(&m);
        else
                assert_se(!m.json && !m.session);
        return 0;
}
