/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "daemon/snapshot.h"

#define ID "20261128T102500-0123abcd"
#define SESSION "\"session\":{\"id\":\"0123456789ab\",\"name\":\"dev\",\"project\":\"/p\",\"environment\":\"default\",\"turns\":3}"
#define PARTS "\"parts\":[{\"name\":\"workspace\",\"ok\":true},{\"name\":\"python\",\"ok\":true,\"skipped\":[" \
        "{\"name\":\"sock\",\"why\":\"socket\"},{\"name\":\"a\\nb\",\"why\":\"c\\u001b\"}],\"skipped_count\":2}," \
        "{\"name\":\"node\",\"ok\":false,\"why\":\"gone\"}]"

TestSuite(snapshot_result, .timeout = 10);

static json_object *parse(const char *text) {
        json_object *o = NULL;

        cr_assert_eq(json_parse(text, strlen(text), &o, NULL), 0, "%s", text);
        return o;
}

Test(snapshot_result, one) {
        _cleanup_json_ json_object *o = parse("{\"id\":\"" ID "\",\"time_usec\":7,\"bytes\":5," SESSION "," PARTS "}");
        SnapshotInfo info;

        cr_assert_eq(snapshot_info_parse(o, &info), 0);
        cr_assert_str_eq(info.id, ID);
        cr_assert(info.time_usec == 7 && info.bytes == 5 && info.turns == 3);
        cr_assert_str_eq(info.name, "dev");
        cr_assert_str_eq(info.session, "0123456789ab");
        cr_assert_str_eq(info.reason, "unknown");
}

Test(snapshot_result, what_is_left_out) {
        _cleanup_json_ json_object *o = parse("{\"id\":\"" ID "\"," PARTS "}"), *skipped = NULL;
        _cleanup_(buffer_done) Buffer b = {}, cut = {};
        SnapshotInfo info;

        cr_assert_eq(snapshot_saved_parse(o, &info), 0);
        cr_assert_eq(snapshot_skipped(info.parts, &skipped), 0);
        cr_assert_str_eq(json_text(skipped, NULL),
                         "[{\"part\":\"python\",\"name\":\"sock\",\"why\":\"socket\"},"
                         "{\"part\":\"python\",\"name\":\"a\\nb\",\"why\":\"c\\u001b\"},"
                         "{\"part\":\"node\",\"name\":null,\"why\":\"gone\"}]");
        cr_assert_eq(snapshot_skipped_count(info.parts), 3);
        cr_assert_eq(snapshot_skipped_text(info.parts, 10, &b), 0);
        cr_assert_eq(buffer_append(&b, "", 1), 0);
        cr_assert_str_eq(buffer_data(&b), "sock (socket), 'a\\nb' (c\\x1b), node (gone)");
        cr_assert_eq(snapshot_skipped_text(info.parts, 1, &cut), 0);
        cr_assert_eq(buffer_append(&cut, "", 1), 0);
        cr_assert_str_eq(buffer_data(&cut), "sock (socket) and 2 more");
}

/* Who has restored a part says what it is called. */
Test(snapshot_result, name_of_a_part) {
        _cleanup_json_ json_object *o = parse("[{\"name\":\"a\\nnode\",\"ok\":false,\"why\":\"gone\"}]");
        _cleanup_(buffer_done) Buffer b = {};

        cr_assert_eq(snapshot_skipped_text(o, 10, &b), 0);
        cr_assert_eq(buffer_append(&b, "", 1), 0);
        cr_assert_str_eq(buffer_data(&b), "'a\\nnode' (gone)");
}

Test(snapshot_result, newest) {
        _cleanup_json_ json_object *o = parse("{\"snapshots\":[{\"id\":\"" ID "\",\"time_usec\":7," SESSION "},"
                                              "{\"id\":\"20261128T102501-0123abcd\",\"time_usec\":6," SESSION "},"
                                              "{\"id\":\"no\",\"time_usec\":99," SESSION "},7]}"),
                            *none = parse("{\"snapshots\":[]}");
        SnapshotInfo info;

        cr_assert(snapshot_list_newest(o, &info));
        cr_assert_eq(info.time_usec, 6);
        cr_assert_not(snapshot_list_newest(none, &info));
        cr_assert_not(snapshot_list_newest(NULL, &info));
}

Test(snapshot_result, bad) {
        static const char *const bad[] = {
                "{}",
                "[]",
                "{\"id\":\"../../etc/passwd\",\"time_usec\":1," SESSION "}",
                "{\"id\":\"" ID "0\",\"time_usec\":1," SESSION "}",
                "{\"id\":\"" ID "\"," SESSION "}",
                "{\"id\":\"" ID "\",\"time_usec\":1,\"session\":{}}",
                "{\"id\":\"" ID "\",\"time_usec\":18446744073709551615," SESSION "}",
                "{\"id\":\"" ID "\",\"time_usec\":1,\"session\":{\"id\":\"i\",\"name\":\"../x\",\"project\":\"/p\","
                "\"environment\":\"e\",\"turns\":1}}",
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_json_ json_object *o = parse(bad[i]);
                SnapshotInfo info;

                cr_assert_eq(snapshot_info_parse(o, &info), -EINVAL, "%s", bad[i]);
        }
}

Test(snapshot_result, age) {
        char text[32];

        snapshot_age(119 * USEC_PER_SEC, text, sizeof(text));
        cr_assert_str_eq(text, "119 s");
        snapshot_age(120 * USEC_PER_SEC, text, sizeof(text));
        cr_assert_str_eq(text, "2 min");
        snapshot_age(7200 * USEC_PER_SEC, text, sizeof(text));
        cr_assert_str_eq(text, "2 h");
        snapshot_age(UINT64_C(3) * 24 * 3600 * USEC_PER_SEC, text, sizeof(text));
        cr_assert_str_eq(text, "3 days");
}

Test(snapshot_result, key) {
        char a[SNAPSHOT_KEY_LENGTH + 1], b[SNAPSHOT_KEY_LENGTH + 1];

        snapshot_key("/p", "dev", a);
        /* printf '/p\0dev' | sha256sum */
        cr_assert_str_eq(a, "e6cbcd1231fd5211d7634f7c393702d2");
        snapshot_key("/", "pdev", b);
        cr_assert_str_neq(a, b);
}
