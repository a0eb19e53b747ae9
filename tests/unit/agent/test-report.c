/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include <criterion/criterion.h>

#include "agent/report.h"

#define TOKEN "0123456789abcdef"

TestSuite(report, .timeout = 10);

static void put(ReportReader *r, const char *data, size_t size) {
        size_t room;
        char *p = report_reader_end(r, &room);

        cr_assert_leq(size, room);
        memcpy(p, data, size);
        r->size += size;
}

static int next_of(const char *text, Report *ret) {
        ReportReader r = {};

        put(&r, text, strlen(text));
        return report_next(&r, ret);
}

Test(report, kinds) {
        Report report;

        cr_assert_eq(next_of("ready\n", &report), 1);
        cr_assert_eq(report.kind, REPORT_READY);

        cr_assert_eq(next_of("done " TOKEN " 255 lost\n", &report), 1);
        cr_assert_eq(report.kind, REPORT_DONE);
        cr_assert_str_eq(report.token, TOKEN);
        cr_assert(report.status == 255 && report.lost);

        cr_assert_eq(next_of("done " TOKEN " 0 kept\n", &report), 1);
        cr_assert(report.status == 0 && !report.lost);
}

Test(report, byte_by_byte) {
        static const char text[] = "\nready\nnoise\ndone " TOKEN " 7 kept\nready\n";
        ReportReader r = {};
        Report report;
        unsigned n = 0;

        for (size_t i = 0; i < sizeof(text) - 1; i++) {
                put(&r, text + i, 1);
                n += (unsigned) report_next(&r, &report);
        }
        cr_assert_eq(n, 3);
        cr_assert_eq(r.size, 0);
}

Test(report, several_at_once) {
        ReportReader r = {};
        Report report;

        put(&r, "ready\ndone " TOKEN " 7 kept\nrea", 38);
        cr_assert(report_next(&r, &report) == 1 && report.kind == REPORT_READY);
        cr_assert(report_next(&r, &report) == 1 && report.kind == REPORT_DONE && report.status == 7);
        cr_assert_eq(report_next(&r, &report), 0);
        put(&r, "dy\n", 3);
        cr_assert(report_next(&r, &report) == 1 && report.kind == REPORT_READY);
}

Test(report, others_are_skipped) {
        static const char *const lines[] = {
                "", "\n", "ready now\n", "Ready\n", "done\n", "done " TOKEN " 0\n",
                "done " TOKEN " 0 kept more\n",
                "a b c d e f g\n", "done short 0 kept\n", "done " TOKEN "0 0 kept\n", "     \n",
        };
        Report report;

        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                cr_assert_eq(next_of(lines[i], &report), 0, "'%s'", lines[i]);
}

Test(report, garbage) {
        static const char *const lines[] = {
                "\xff\n", "\x01", "caf\xc3\xa9\n", "ready\r\n", "\t\n", "\x7f\n",
                "done " TOKEN " 256 kept\n",
                "done " TOKEN " -1 kept\n", "done " TOKEN " 0x1 kept\n", "done " TOKEN " 0000 kept\n",
                "done " TOKEN " 0 keep\n", "done " TOKEN " 0 Lost\n",
        };
        Report report;

        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                cr_assert_eq(next_of(lines[i], &report), -EBADMSG, "'%s'", lines[i]);
}

Test(report, nul_is_garbage) {
        ReportReader r = {};
        Report report;

        put(&r, "ready\0\n", 7);
        cr_assert_eq(report_next(&r, &report), -EBADMSG);
}

Test(report, length) {
        ReportReader r = {};
        char line[DRIVER_LINE_MAX + 2];
        Report report;

        memset(line, 'x', sizeof(line));
        put(&r, line, DRIVER_LINE_MAX);
        cr_assert_eq(report_next(&r, &report), 0);
        put(&r, "\nready\n", 7);
        cr_assert_eq(report_next(&r, &report), 1);

        put(&r, line, DRIVER_LINE_MAX + 1);
        cr_assert_eq(report_next(&r, &report), -EBADMSG);
}
