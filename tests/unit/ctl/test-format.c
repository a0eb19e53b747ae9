/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "ctl/format.h"

TestSuite(format, .timeout = 10);

static void check_printable(const char *s, const char *expected) {
        _cleanup_free_ char *safe = printable(s);

        cr_assert_str_eq(safe, expected);
}

Test(format, printable) {
        check_printable("", "");
        check_printable("plain ü 日本 😀", "plain ü 日本 😀");
        check_printable("\x01\x1F\x7F", "???");
        check_printable("\033]0;title\a", "?]0;title?");
}

/* C1 control characters: one code each, and a terminal obeys them. */
Test(format, printable_c1) {
        check_printable("a\xC2\x9B" "31mb", "a?31mb");
        check_printable("\xC2\x80\xC2\x9F\u00A0", "??\u00A0");
}

/* They turn the rest of a line around, so that a name is read as another. */
Test(format, printable_bidi) {
        check_printable("a\u202Eb\u2066c\u2069\u202A", "a?b?c??");
        check_printable("a\u2028b\u2029", "a?b?");
        check_printable("\u200E\u200F\u061C", "???");
}

Test(format, durations) {
        cr_assert_str_eq(format_duration(0), "0 ms");
        cr_assert_str_eq(format_duration(999999), "999 ms");
        cr_assert_str_eq(format_duration(1000000), "1 s");
        cr_assert_str_eq(format_duration(59999999), "59 s");
        cr_assert_str_eq(format_duration(60 * USEC_PER_SEC), "1 min 0 s");
        cr_assert_str_eq(format_duration(3599 * USEC_PER_SEC), "59 min 59 s");
        cr_assert_str_eq(format_duration(3600 * USEC_PER_SEC), "1 h 0 min");
        cr_assert_str_eq(format_duration(86399 * USEC_PER_SEC), "23 h 59 min");
        cr_assert_str_eq(format_duration(90000 * USEC_PER_SEC), "1 d 1 h");
        cr_assert_str_eq(format_duration(UINT64_MAX), "213503982 d 8 h");
}

Test(format, bytes) {
        cr_assert_str_eq(format_bytes(0), "0 kB");
        cr_assert_str_eq(format_bytes(1023), "0 kB");
        cr_assert_str_eq(format_bytes(MIB - 1), "1023 kB");
        cr_assert_str_eq(format_bytes(MIB), "1 MB");
        cr_assert_str_eq(format_bytes(1024 * MIB - 1), "1023 MB");
        cr_assert_str_eq(format_bytes(1536 * MIB), "1.5 GB");
        cr_assert_not_null(format_bytes(UINT64_MAX));
}

Test(format, times) {
        cr_assert_eq(setenv("TZ", "UTC", 1), 0);
        cr_assert_str_eq(format_time(0), "1970-01-01 00:00:00");
        cr_assert_str_eq(format_time(UINT64_C(1700000000123456)), "2023-11-14 22:13:20");
        cr_assert_not_null(format_time(UINT64_MAX));
}

Test(format, clocks) {
        cr_assert_str_eq(format_clock(0), "0:00.00");
        cr_assert_str_eq(format_clock(62509999), "1:02.50");
        cr_assert_str_eq(format_clock(3599 * USEC_PER_SEC), "59:59.00");
        cr_assert_str_eq(format_clock(97262 * USEC_PER_SEC), "27:01:02");
}

Test(format, sizes) {
        cr_assert_str_eq(format_size(0), "0K");
        cr_assert_str_eq(format_size(512 * MIB), "512M");
        cr_assert_str_eq(format_size(1024 * MIB), "1G");
        cr_assert_str_eq(format_size(1536 * MIB), "1.5G");
}

Test(format, several_in_one_line) {
        const char *a = format_size(MIB), *b = format_size(2 * MIB);

        cr_assert_str_eq(a, "1M");
        cr_assert_str_eq(b, "2M");
}

Test(format, users) {
        uint64_t uid;

        cr_assert_str_eq(format_user(0), "root");
        cr_assert_str_eq(format_user(UINT64_MAX), "18446744073709551615");
        cr_assert_eq(parse_user("root", &uid), 0);
        cr_assert_eq(uid, 0);
        cr_assert_eq(parse_user("1234567", &uid), 0);
        cr_assert_eq(uid, 1234567);
        cr_assert_lt(parse_user("no such user", &uid), 0);
        cr_assert_lt(parse_user("", &uid), 0);
}

static void check_size(const char *s, uint64_t unit, uint64_t expected) {
        uint64_t bytes = 0;

        cr_assert_eq(parse_size(s, unit, &bytes), 0, "%s", s);
        cr_assert_eq(bytes, expected, "%s", s);
}

Test(format, parse_size) {
        check_size("0", MIB, 0);
        check_size("512", MIB, 512 * MIB);
        check_size("512", 1, 512);
        check_size("1G", MIB, 1024 * MIB);
        check_size("1.5G", MIB, 1536 * MIB);
        check_size("64K", MIB, 64 * KIB);
        check_size("50MB", MIB, 50 * MIB);
        check_size("50MiB", MIB, 50 * MIB);
        check_size("2T", MIB, 2 * MIB * MIB);
}

Test(format, parse_size_refuses) {
        static const char *const bad[] = { "",   "-1",  "+1", " 1",  "1 G", "G",   "1X",   "1GG",
                                           "1Bi", "nan", "inf", "0x10", "1e3", "1i", "1.2.3", "1G " };
        uint64_t bytes;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                cr_assert_eq(parse_size(bad[i], MIB, &bytes), -EINVAL, "%s", bad[i]);
        cr_assert_eq(parse_size("99999999999T", MIB, &bytes), -ERANGE);
        cr_assert_eq(parse_size("99999999999999999999", 1, &bytes), -ERANGE);
}
