/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "snapshot/manifest.h"
#include "snapshot/report.h"

TestSuite(snapshot_manifest, .timeout = 20);

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD "\"tool\":\"0.1.0\",\"id\":\"20261128T090723-3ebe55fe\",\"time_usec\":5,\"reason\":\"idle\",\"session\":{\"name\":\"n\"}"
#define PYTHON "{\"name\":\"python\",\"file\":\"python.state\",\"bytes\":7,\"sha256\":\"" SUM "\",\"report\":{\"ok\":true,\"skipped\":[]}}"
#define BASH "{\"name\":\"bash\",\"file\":null,\"bytes\":0,\"sha256\":null,\"report\":{\"ok\":false,\"why\":\"x\",\"skipped\":[]}}"
#define GOOD "{\"format\":1," HEAD ",\"parts\":[" PYTHON "," BASH "]}\n"

/* With the checksum that belongs to it. */
static int read_body(const char *body, Manifest *m) {
        _cleanup_(buffer_done) Buffer b = {};
        char sum[HASH_LENGTH + 1];

        hash_bytes(body, strlen(body), sum);
        cr_assert_eq(buffer_printf(&b, "sha256 %s\n%s", sum, body), 0);
        return manifest_read(buffer_data(&b), buffer_size(&b), m);
}

Test(snapshot_manifest, hash) {
        char sum[HASH_LENGTH + 1];

        /* FIPS 180-2, B.1 */
        hash_bytes("abc", 3, sum);
        cr_assert_str_eq(sum, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        cr_assert(hash_is_valid(sum));
        sum[0] = 'B';
        cr_assert_not(hash_is_valid(sum));
}

Test(snapshot_manifest, round_trip) {
        _cleanup_(manifest_done) Manifest m = {}, again = {};
        _cleanup_(buffer_done) Buffer b = {};

        cr_assert_eq(read_body(GOOD, &m), 0);
        cr_assert_str_eq(m.id.text, "20261128T090723-3ebe55fe");
        cr_assert_eq(m.time_usec, 5);
        cr_assert_str_eq(m.reason, "idle");
        cr_assert_str_eq(json_text(m.session, NULL), "{\"name\":\"n\"}");
        cr_assert(m.parts[PART_PYTHON].has_file);
        cr_assert_eq(m.parts[PART_PYTHON].bytes, 7);
        cr_assert_str_eq(m.parts[PART_PYTHON].sha256, SUM);
        cr_assert_not_null(m.parts[PART_BASH].report);
        cr_assert_not(m.parts[PART_BASH].has_file);
        cr_assert_null(m.parts[PART_WORKSPACE].report);

        cr_assert_eq(manifest_write(&m, &b), 0);
        cr_assert_eq(buffer_size(&b), sizeof(GOOD) - 1 + 7 + HASH_LENGTH + 1);
        cr_assert_eq(memcmp(buffer_data(&b) + 7 + HASH_LENGTH + 1, GOOD, sizeof(GOOD) - 1), 0);
        cr_assert_eq(manifest_read(buffer_data(&b), buffer_size(&b), &again), 0);
}

/* Whichever byte is another: it is no manifest. Whichever byte is the last. */
Test(snapshot_manifest, any_change) {
        _cleanup_(manifest_done) Manifest m = {};
        _cleanup_(buffer_done) Buffer b = {};
        char *copy;

        cr_assert_eq(read_body(GOOD, &m), 0);
        cr_assert_eq(manifest_write(&m, &b), 0);
        copy = malloc(buffer_size(&b));
        cr_assert_not_null(copy);

        for (size_t i = 0; i < buffer_size(&b); i++) {
                Manifest none = {};

                memcpy(copy, buffer_data(&b), buffer_size(&b));
                copy[i] ^= (char) (1 << i % 8);
                cr_assert_eq(manifest_read(copy, buffer_size(&b), &none), MANIFEST_DAMAGED, "byte %zu", i);
                cr_assert_eq(manifest_read(buffer_data(&b), i, &none), MANIFEST_DAMAGED, "%zu bytes", i);
                cr_assert_null(none.json);
        }
        free(copy);
}

Test(snapshot_manifest, later_format) {
        Manifest m = {};

        cr_assert_eq(read_body("{\"format\":2,\"else\":[]}\n", &m), MANIFEST_FOREIGN);
        cr_assert_eq(read_body("{\"format\":18446744073709551615}\n", &m), MANIFEST_FOREIGN);
        cr_assert_eq(read_body("{\"format\":0," HEAD ",\"parts\":[]}\n", &m), MANIFEST_DAMAGED);
}

/* Good checksums over what makes no sense. */
Test(snapshot_manifest, garbage) {
#define WITH_PART(part) "{\"format\":1," HEAD ",\"parts\":[" part "]}\n"
#define WITH(name, file, bytes, sum, report) \
        WITH_PART("{\"name\":" name ",\"file\":" file ",\"bytes\":" bytes ",\"sha256\":" sum ",\"report\":" report "}")
#define OK "{\"ok\":true}"
        static const char *const bad[] = {
                "", "\n", "[]\n", "{}\n", "{\"format\":1}\n", "{\"format\":\"1\"}\n", "{\"format\":-1}\n",
                "{\"format\":1," HEAD "}\n",
                "{\"format\":1,\"tool\":\"\",\"id\":\"../../etc\",\"time_usec\":5,\"reason\":\"\",\"session\":{},\"parts\":[]}\n",
                WITH_PART("1"), WITH_PART("{}"), WITH_PART(PYTHON "," PYTHON),
                WITH("\"perl\"", "null", "0", "null", OK),
                WITH("\"python\"", "\"bash.state\"", "1", "\"" SUM "\"", OK),
                WITH("\"python\"", "\"/etc/passwd\"", "1", "\"" SUM "\"", OK),
                WITH("\"python\"", "\"../python.state\"", "1", "\"" SUM "\"", OK),
                WITH("\"python\"", "\"python.state\"", "1", "null", OK),
                WITH("\"python\"", "\"python.state\"", "1", "\"abc\"", OK),
                WITH("\"python\"", "\"python.state\"", "-1", "\"" SUM "\"", OK),
                WITH("\"python\"", "null", "0", "\"" SUM "\"", OK),
                WITH("\"python\"", "null", "1", "null", OK),
                WITH("\"python\"", "\"python.state\"", "1", "\"" SUM "\"", "{}"),
                WITH("\"python\"", "\"python.state\"", "1", "\"" SUM "\"", "null"),
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                Manifest m = {};

                cr_assert_eq(read_body(bad[i], &m), MANIFEST_DAMAGED, "%s", bad[i]);
        }
}
