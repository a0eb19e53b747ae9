/* SPDX-License-Identifier: MIT */

#include <locale.h>
#include <stdio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "ctl/table.h"

static Table *table;

static void setup(void) {
        cr_assert_not_null(setlocale(LC_CTYPE, "C.UTF-8"));
        table = table_new();
        table_column(table, "NAME");
        table_column(table, ">SIZE");
        table_column(table, "LAST");
}

static void teardown(void) {
        table = table_free(table);
}

TestSuite(table, .init = setup, .fini = teardown, .timeout = 10);

/* What table_print() puts on standard output. */
static void check_cut(int columns, const char *expected) {
        int fds[2], saved = dup(STDOUT_FILENO);
        char text[8192];
        ssize_t n;

        (void) fflush(stdout);
        cr_assert_eq(pipe(fds), 0);
        cr_assert_geq(dup2(fds[1], STDOUT_FILENO), 0);
        (void) close(fds[1]);
        table_print(table, columns);
        (void) fflush(stdout);
        cr_assert_geq(dup2(saved, STDOUT_FILENO), 0);
        (void) close(saved);

        n = read(fds[0], text, sizeof(text) - 1);
        (void) close(fds[0]);
        text[MAX(n, (ssize_t) 0)] = 0;
        cr_assert_str_eq(text, expected);
}

static void check(const char *expected) {
        check_cut(0, expected);
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

Test(table, cut_at_the_width) {
        add_row("name", "1", "/a/long/path");
        add_row("name", "1", "/short");
        check_cut(20, "NAME  SIZE  LAST\n"
                      "name     1  /a/long…\n"
                      "name     1  /short\n");
        check_cut(24, "NAME  SIZE  LAST\n"
                      "name     1  /a/long/path\n"
                      "name     1  /short\n");
        check_cut(8, "NAME  S…\n"
                     "name   …\n"
                     "name   …\n");
        check_cut(1, "…\n…\n…\n");
}

/* A character of two columns that has room for one of them is left out. */
Test(table, cut_before_a_wide_character) {
        add_row("日本語", "1", "");
        check_cut(4, "NAM…\n"
                     "日…\n");
}

Test(table, text_fit) {
        cr_assert_eq(text_fit("abc", 2), 2);
        cr_assert_eq(text_fit("abc", 0), 0);
        cr_assert_eq(text_fit("üb", 1), 2);
        cr_assert_eq(text_fit("日本", 3), 3);
        cr_assert_eq(text_fit("\xFFz", 1), 1);
        cr_assert_eq(text_width("日本ü"), 5);
        cr_assert_eq(text_width("\xFF\xFF"), 2);
}
