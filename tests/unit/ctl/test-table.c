/* SPDX-License-Identifier: MIT */

#include <locale.h>
#include <stdio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "ctl/table.h"

static const char *const titles[] = { "NAME", ">SIZE", "LAST", NULL };

static Table *table;

static void setup(void) {
        cr_assert_not_null(setlocale(LC_CTYPE, "C.UTF-8"));
        table = table_new(titles);
}

static void teardown(void) {
        table = table_free(table);
}

TestSuite(table, .init = setup, .fini = teardown, .timeout = 10);

/* What table_print() puts on standard output. */
static void check(const char *expected) {
        int fds[2], saved = dup(STDOUT_FILENO);
        char text[8192];
        ssize_t n;

        (void) fflush(stdout);
        cr_assert_eq(pipe(fds), 0);
        cr_assert_geq(dup2(fds[1], STDOUT_FILENO), 0);
        (void) close(fds[1]);
        table_print(table);
        (void) fflush(stdout);
        cr_assert_geq(dup2(saved, STDOUT_FILENO), 0);
        (void) close(saved);

        n = read(fds[0], text, sizeof(text) - 1);
        (void) close(fds[0]);
        text[MAX(n, (ssize_t) 0)] = 0;
        cr_assert_str_eq(text, expected);
}

static void add_row(const char *name, const char *size, const char *last) {
        table_add(table, "%s", name);
        table_add(table, "%s", size);
        table_add(table, "%s", last);
}

Test(table, no_rows) {
        cr_assert_eq(table_rows(table), 0);
        check("NAME  SIZE  LAST\n");
}

Test(table, columns) {
        add_row("a", "1", "x");
        add_row("longer", "12345", "y z");
        cr_assert_eq(table_rows(table), 2);
        check("NAME     SIZE  LAST\n"
              "a           1  x\n"
              "longer  12345  y z\n");
}

Test(table, wide_characters) {
        add_row("ü", "1", "");
        add_row("日本語", "2", "");
        check("NAME    SIZE  LAST\n"
              "ü          1  \n"
              "日本語     2  \n");
}

Test(table, control_characters) {
        add_row("a\nb\tc", "\033[31m", "\x7F\r");
        check("NAME    SIZE  LAST\n"
              "a?b?c  ?[31m  ??\n");
}

Test(table, grows) {
        for (int i = 0; i < 1000; i++) {
                table_add(table, "%d", i);
                table_add(table, "%d", i);
                table_add(table, "%d", i);
        }
        cr_assert_eq(table_rows(table), 1000);
}

static void check_printable(const char *s, const char *expected) {
        _cleanup_free_ char *safe = printable(s);

        cr_assert_str_eq(safe, expected);
}

Test(table, printable) {
        check_printable("", "");
        check_printable("plain ü 日本 😀", "plain ü 日本 😀");
        check_printable("\x01\x1F\x7F", "???");
        check_printable("\033]0;title\a", "?]0;title?");
}

/* C1 control characters: one code each, and a terminal obeys them. */
Test(table, printable_c1) {
        check_printable("a\xC2\x9B" "31mb", "a?31mb");
        check_printable("\xC2\x80\xC2\x9F\u00A0", "??\u00A0");
}

/* They turn the rest of a line around, so that a name is read as another. */
Test(table, printable_bidi) {
        check_printable("a\u202Eb\u2066c\u2069\u202A", "a?b?c??");
        check_printable("a\u2028b\u2029", "a?b?");
        check_printable("\u200E\u200F\u061C", "???");
}

Test(table, durations) {
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

Test(table, bytes) {
        cr_assert_str_eq(format_bytes(0), "0 kB");
        cr_assert_str_eq(format_bytes(1023), "0 kB");
        cr_assert_str_eq(format_bytes(MIB - 1), "1023 kB");
        cr_assert_str_eq(format_bytes(MIB), "1 MB");
        cr_assert_str_eq(format_bytes(1024 * MIB - 1), "1023 MB");
        cr_assert_str_eq(format_bytes(1536 * MIB), "1.5 GB");
        cr_assert_not_null(format_bytes(UINT64_MAX));
}

Test(table, times) {
        cr_assert_eq(setenv("TZ", "UTC", 1), 0);
        cr_assert_str_eq(format_time(0), "1970-01-01 00:00:00");
        cr_assert_str_eq(format_time(UINT64_C(1700000000123456)), "2023-11-14 22:13:20");
        cr_assert_not_null(format_time(UINT64_MAX));
}
