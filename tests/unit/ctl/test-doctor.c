/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "ctl/capture.h"
#include "ctl/doctor.h"

TestSuite(doctor, .timeout = 30);

Test(doctor, versions) {
        cr_assert_eq(version_parse("bubblewrap 0.8.0"), VERSION(0, 8));
        cr_assert_eq(version_parse("systemd 252 (252.39-1~deb12u2)"), VERSION(252, 0));
        cr_assert_eq(version_parse("6.18.44-fc"), VERSION(6, 18));
        cr_assert_eq(version_parse("none"), 0);
        cr_assert_eq(version_parse(""), 0);
        cr_assert_lt(version_parse("5.10.0"), VERSION(5, 14));
        cr_assert_gt(version_parse("10.2"), VERSION(5, 14));
}

static void check_unit(const char *unit, const char *properties, const char *verdict, const char *detail,
                       const char *fix) {
        _cleanup_json_ json_object *checks = json_object_new_array();
        json_object *k;

        doctor_judge_unit(checks, unit, properties);
        cr_assert_eq(json_object_array_length(checks), 1);
        k = json_object_array_get_idx(checks, 0);
        cr_assert_str_eq(get_string(k, "name", ""), unit);
        cr_assert_str_eq(get_string(k, "verdict", ""), verdict);
        cr_assert_not_null(strstr(get_string(k, "detail", ""), detail), "%s", get_string(k, "detail", ""));
        cr_assert_eq(fix == NULL, !has_value(k, "fix"));
        if (fix)
                cr_assert_not_null(strstr(get_string(k, "fix", ""), fix), "%s", get_string(k, "fix", ""));
}

Test(doctor, units) {
        check_unit("sandboxd.socket", "LoadState=loaded\nActiveState=active\nResult=success\n", "ok", "active", NULL);
        check_unit("sandboxd.socket", "LoadState=loaded\nActiveState=inactive\nResult=success\n", "warning", "inactive",
                   "enable --now");
        check_unit("sandboxd.service", "LoadState=loaded\nActiveState=inactive\nResult=success\n", "ok",
                   "first connection", NULL);
        check_unit("sandboxd.service", "Result=watchdog\nActiveState=failed\nLoadState=loaded", "error",
                   "failed (watchdog)", "journalctl -u sandboxd.service");
        check_unit("sandboxd.socket", "LoadState=not-found\nActiveState=inactive\n", "ok", "private daemon", NULL);
        check_unit("sandboxd.service", "LoadState=masked\nActiveState=inactive\n", "warning", "masked", "unmask");
        check_unit("sandboxd.service", "", "ok", "", NULL);
}

Test(doctor, capture) {
        _cleanup_free_ char *text = NULL;

        cr_assert_eq(capture((const char *const[]) { "sh", "-c", "echo out; echo err >&2; exit 3", NULL }, &text), 3);
        cr_assert_str_eq(text, "out\n");
}

Test(doctor, capture_what_is_not_there) {
        char *text = NULL;

        cr_assert_eq(capture((const char *const[]) { "no-such-program", NULL }, &text), -ENOENT);
        cr_assert_null(text);
}

Test(doctor, capture_is_bounded) {
        _cleanup_free_ char *slow = NULL, *much = NULL;

        cr_assert_eq(capture((const char *const[]) { "sleep", "60", NULL }, &slow), -ETIMEDOUT);
        cr_assert_neq(capture((const char *const[]) { "yes", NULL }, &much), 0);
        cr_assert_lt(strlen(much), 128 * KIB);
}
