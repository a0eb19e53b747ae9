/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "lib/buffer.h"
#include "snapshot/report.h"

TestSuite(snapshot_report, .timeout = 10);

static json_object *parse(const char *text) {
        json_object *o = NULL;

        cr_assert_eq(json_parse(text, strlen(text), &o, NULL), 0, "%s", text);
        return o;
}

static void check(const char *text, const char *expected) {
        _cleanup_json_ json_object *o = NULL;

        cr_assert_eq(report_read(text, strlen(text), &o), 0);
        cr_assert_str_eq(json_text(o, NULL), expected);
}

Test(snapshot_report, everything) {
        check("{\"ok\":true,\"why\":null,\"version\":\"3.11.2\",\"libraries\":{\"dill\":\"0.3.6\"},\"saved\":7,"
              "\"skipped\":[{\"name\":\"f\",\"why\":\"an open file\"},{\"name\":\"g\"}],\"skipped_more\":2,\"new\":[1]}",
              "{\"ok\":true,\"version\":\"3.11.2\",\"libraries\":{\"dill\":\"0.3.6\"},\"saved\":7,"
              "\"skipped\":[{\"name\":\"f\",\"why\":\"an open file\"},{\"name\":\"g\",\"why\":\"\"}],\"skipped_more\":2}");
        check("{\"ok\":true}", "{\"ok\":true,\"skipped\":[]}");
        check("{\"ok\":false,\"why\":\"too deep\",\"saved\":0}", "{\"ok\":false,\"why\":\"too deep\",\"saved\":0,\"skipped\":[]}");
        check("{\"ok\":false}", "{\"ok\":false,\"why\":\"no reason was given\",\"skipped\":[]}");
        check("{\"ok\":false,\"why\":\"\\u0001\\u007f\",\"version\":\"\\n\"}",
              "{\"ok\":false,\"why\":\"no reason was given\",\"skipped\":[]}");
}

Test(snapshot_report, garbage) {
        static const char *const bad[] = {
                "", "x", "[]", "null", "{}", "{\"ok\":1}", "{\"ok\":null}", "{\"ok\":true", "{\"ok\":true}}",
                "{\"ok\":true,\"ok\":true}", "{\"ok\":true,\"version\":3}", "{\"ok\":true,\"saved\":-1}",
                "{\"ok\":true,\"saved\":1.5}", "{\"ok\":true,\"skipped\":{}}", "{\"ok\":true,\"skipped\":[1]}",
                "{\"ok\":true,\"skipped\":[{\"why\":\"\"}]}", "{\"ok\":true,\"skipped\":[{\"name\":1}]}",
                "{\"ok\":true,\"libraries\":[]}", "{\"ok\":true,\"libraries\":{\"a\":1}}", "{\"ok\":true,\"why\":\"\xff\"}",
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                check(bad[i], "{\"ok\":false,\"why\":\"its report could not be read\",\"skipped\":[]}");
}

/* Control characters of all kinds go, other characters stay, and 200 of them are enough. */
Test(snapshot_report, texts) {
        _cleanup_(buffer_done) Buffer text = {}, expected = {};

        check("{\"ok\":false,\"why\":\"a\\u001b[31m\\n\\u0000b\\u007f\\u009b\\u202e\\u2066\\u2028é☃𝄞\"}",
              "{\"ok\":false,\"why\":\"a[31mbé☃𝄞\",\"skipped\":[]}");

        cr_assert_eq(buffer_append_str(&text, "{\"ok\":true,\"skipped\":[{\"name\":\""), 0);
        cr_assert_eq(buffer_append_str(&expected, "{\"ok\":true,\"skipped\":[{\"name\":\""), 0);
        for (unsigned i = 0; i < 1000; i++) {
                cr_assert_eq(buffer_append_str(&text, "\\u0007☃"), 0);
                if (i < REPORT_TEXT_MAX)
                        cr_assert_eq(buffer_append_str(&expected, "☃"), 0);
        }
        cr_assert_eq(buffer_append(&text, "\"}]}", 5), 0);
        cr_assert_eq(buffer_append(&expected, "\",\"why\":\"\"}]}", 14), 0);
        check(buffer_data(&text), buffer_data(&expected));
}

static json_object *report_with(unsigned n_skipped, unsigned n_libraries, unsigned more) {
        _cleanup_(buffer_done) Buffer text = {};
        json_object *o;

        cr_assert_eq(buffer_append_str(&text, "{\"ok\":true,\"skipped\":["), 0);
        for (unsigned i = 0; i < n_skipped; i++)
                cr_assert_eq(buffer_printf(&text, "%s{\"name\":\"x%u\"}", i > 0 ? "," : "", i), 0);
        cr_assert_eq(buffer_append_str(&text, "],\"libraries\":{"), 0);
        for (unsigned i = 0; i < n_libraries; i++)
                cr_assert_eq(buffer_printf(&text, "%s\"x%u\":\"1\"", i > 0 ? "," : "", i), 0);
        cr_assert_eq(buffer_printf(&text, "},\"skipped_more\":%u}", more), 0);
        cr_assert_eq(report_read(buffer_data(&text), buffer_size(&text), &o), 0);
        cr_assert(report_is_ok(o));
        return o;
}

Test(snapshot_report, counts) {
        _cleanup_json_ json_object *o = report_with(REPORT_SKIPPED_MAX + 5, REPORT_LIBRARIES_MAX + 5, 3);

        cr_assert_eq(json_object_array_length(json_object_object_get(o, "skipped")), REPORT_SKIPPED_MAX);
        cr_assert_eq(json_object_get_int(json_object_object_get(o, "skipped_more")), 8);
        cr_assert_eq(json_object_object_length(json_object_object_get(o, "libraries")), REPORT_LIBRARIES_MAX);
}

/* A report that was typed is typed as itself. */
Test(snapshot_report, again) {
        _cleanup_json_ json_object *o = report_with(REPORT_SKIPPED_MAX + 5, 3, 3), *again = NULL;

        cr_assert_eq(report_type(o, &again), 0);
        cr_assert(json_object_equal(o, again));
}

Test(snapshot_report, copies) {
        _cleanup_json_ json_object *o = report_with(2, 1, 3), *all = parse("{\"name\":\"python\"}"),
                                   *brief = parse("{\"name\":\"python\"}");

        cr_assert_eq(report_copy(o, false, all), 0);
        cr_assert_eq(report_copy(o, true, brief), 0);
        cr_assert_str_eq(json_text(all, NULL), "{\"name\":\"python\",\"ok\":true,\"libraries\":{\"x0\":\"1\"},\"skipped\":"
                         "[{\"name\":\"x0\",\"why\":\"\"},{\"name\":\"x1\",\"why\":\"\"}],\"skipped_more\":3}");
        cr_assert_str_eq(json_text(brief, NULL), "{\"name\":\"python\",\"ok\":true,\"skipped_count\":5}");
}
