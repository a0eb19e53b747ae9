/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include <criterion/criterion.h>

#include "lib/base64.h"

TestSuite(base64, .timeout = 10);

/* RFC 4648, section 10. */
Test(base64, vectors) {
        static const char *const vectors[][2] = {
                { "", "" },           { "f", "Zg==" },         { "fo", "Zm8=" },        { "foo", "Zm9v" },
                { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" }, { "\xff\xef\xbe", "/+++" },
        };

        for (size_t i = 0; i < ELEMENTSOF(vectors); i++) {
                _cleanup_(buffer_done) Buffer b = {};
                const char *bytes = vectors[i][0], *text = vectors[i][1];

                cr_assert_eq(base64_append(&b, bytes, strlen(bytes)), 0);
                cr_assert_eq(buffer_size(&b), strlen(text));
                cr_assert_eq(memcmp(buffer_data(&b), text, strlen(text)), 0);

                buffer_consume(&b, buffer_size(&b));
                cr_assert_eq(base64_decode_append(&b, text, strlen(text)), 0);
                cr_assert_eq(buffer_size(&b), strlen(bytes));
                cr_assert_eq(memcmp(buffer_data(&b), bytes, strlen(bytes)), 0);
        }
}

Test(base64, there_and_back) {
        _cleanup_(buffer_done) Buffer text = {}, bytes = {};
        uint8_t data[1000];

        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t) (i * 7 + i / 256);
        for (size_t n = 0; n <= sizeof(data); n += 11) {
                cr_assert_eq(base64_append(&text, data, n), 0);
                cr_assert_eq(buffer_size(&text), base64_length(n));
                cr_assert_eq(base64_decode_append(&bytes, buffer_data(&text), buffer_size(&text)), 0);
                cr_assert_eq(buffer_size(&bytes), n);
                cr_assert_eq(memcmp(buffer_data(&bytes), data, n), 0);
                buffer_consume(&text, buffer_size(&text));
                buffer_consume(&bytes, n);
        }
}

Test(base64, garbage) {
        static const char *const texts[] = {
                "Z", "Zg", "Zg=", "Zm9v\n", " Zm9", "Zm9!", "Z===", "====", "Zg==Zg==", "Zh==", "Zm9=", "Zm-_", "Z=9v",
                "\xc3\xa9zz",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_(buffer_done) Buffer b = {};

                cr_assert_eq(buffer_append_str(&b, "x"), 0);
                cr_assert_eq(base64_decode_append(&b, texts[i], strlen(texts[i])), -EBADMSG, "'%s'", texts[i]);
                cr_assert_eq(buffer_size(&b), 1);
        }
}
