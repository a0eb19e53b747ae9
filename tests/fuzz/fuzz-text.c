/* SPDX-License-Identifier: MIT */

/*
 * Output of jails and names from anyone: repaired UTF-8 is valid, the same wherever the input was cut, and
 * untouched when it was good; quoted text is printable ASCII. The first byte says where the cuts are.
 */

#include "lib/process.h"
#include "lib/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void repair(const char *data, size_t size, size_t step, Buffer *out) {
        Utf8Decoder d = {};
        size_t n;

        for (size_t i = 0; i < size; i += n) {
                n = MIN(step, size - i);
                assert_se(utf8_decoder_feed(&d, data + i, n, out) == 0);
        }
        assert_se(utf8_decoder_finish(&d, out) == 0);
        assert_se(utf8_is_valid(buffer_data(out), buffer_size(out), NULL));
}

static bool same(const Buffer *b, const char *data, size_t size) {
        return buffer_size(b) == size && memcmp(buffer_data(b), data, size) == 0;
}

static void check_utf8(const char *data, size_t size, size_t step) {
        _cleanup_(buffer_done) Buffer whole = {}, pieces = {};
        size_t at = SIZE_MAX;

        repair(data, size, SIZE_MAX, &whole);
        repair(data, size, step, &pieces);
        assert_se(same(&pieces, buffer_data(&whole), buffer_size(&whole)));

        if (utf8_is_valid(data, size, &at))
                assert_se(same(&whole, data, size));
        else
                assert_se(at < size && utf8_is_valid(data, at, NULL) && !same(&whole, data, size));
}

static void check_string(const char *s) {
        _cleanup_free_ char *quoted = text_quote(s, 100);
        ProcessStat stat;
        uint64_t u;

        for (const char *p = quoted; *p; p++)
                assert_se(*p >= 0x20 && *p < 0x7f);
        if (name_is_valid(s))
                assert_se(strlen(s) <= NAME_MAX_LENGTH && strlen(quoted) == strlen(s) + 2);
        if (parse_sec(s, &u) == 0)
                assert_se(u <= 1000000000 * USEC_PER_SEC);
        (void) parse_u64(s, &u);
        (void) process_stat_parse(s, &stat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *s = NULL;

        if (size == 0)
                return 0;

        check_utf8((const char *) data + 1, size - 1, data[0] % 8U + 1);

        s = strndup((const char *) data + 1, size - 1);
        assert_se(s);
        check_string(s);
        return 0;
}
