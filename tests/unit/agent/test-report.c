/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "agent/report.h"

#define TOKEN "0123456789abcdef"

TestSuite(report, .timeout = 10);

static void put(ReportReader *r, const char *data, size_t size) {
        size_t room;
        char *p = report_reader_end(r, &room);

        cr_assert_leq(size, room);
        memcpy(p, data, size);
        report_reader_commit(r, size);
}

static int next_of(const char *text, Report *ret) {
        ReportReader r = {};
        int k;

        put(&r, text, strlen(text));
        k = report_next(&r, ret);
        report_reader_done(&r);
        return k;
}

/* As a socket gives it: as much as there is room for, but at most step bytes. The reports go to found(). */
static void feed(ReportReader *reader, const char *data, size_t size, size_t step, void (*found)(const Report *)) {
        Report report;
        int r;

        while (size > 0) {
                size_t room, n;
                char *p = report_reader_end(reader, &room);

                cr_assert_gt(room, 0);
                n = MIN(MIN(room, step), size);
                memcpy(p, data, n);
                report_reader_commit(reader, n);
                data += n;
                size -= n;
                while ((r = report_next(reader, &report)) > 0)
                        found(&report);
                cr_assert_eq(r, 0);
        }
}

static unsigned copies, copies_kept;

static void count_copies(const Report *report) {
        if (report->kind != REPORT_COPY)
                return;
        copies++;
        copies_kept += report->size > 0;
}

Test(report, copy) {
        static char large[DRIVER_COPY_MAX + 1];
        Report report;
        char line[64];

        cr_assert_eq(next_of("copy " TOKEN " 6\nready\n", &report), 1);
        cr_assert(report.kind == REPORT_COPY && streq(report.token, TOKEN) && report.size == 6);
        cr_assert_eq(next_of("copy " TOKEN " 7\nready\n", &report), 0);
        cr_assert_eq(next_of("copy " TOKEN " x\n", &report), -EBADMSG);
        cr_assert_eq(next_of("copy short 0\nready\n", &report), 1);
        cr_assert(report.kind == REPORT_COPY && report.size == 0);

        /* One that is too large is read, and costs no memory. */
        for (size_t size = DRIVER_COPY_MAX; size <= DRIVER_COPY_MAX + 1; size++) {
                ReportReader r = {};

                (void) snprintf(line, sizeof(line), "copy " TOKEN " %zu\n", size);
                feed(&r, line, strlen(line), 1000, count_copies);
                feed(&r, large, size - 1, 100000, count_copies);
                cr_assert_eq(r.value.allocated > DRIVER_COPY_MAX / 2, size == DRIVER_COPY_MAX);
                feed(&r, large, 1, 1, count_copies);
                feed(&r, "ready\n", 6, 1, count_copies);
                report_reader_done(&r);
        }
        cr_assert(copies == 2 && copies_kept == 1);
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

Test(report, parked) {
        Report report;

        cr_assert_eq(next_of("parked " TOKEN " 4711\n", &report), 1);
        cr_assert(report.kind == REPORT_PARKED && report.pid == 4711);
        cr_assert_str_eq(report.token, TOKEN);

        cr_assert_eq(next_of("parked " TOKEN " 1\n", &report), -EBADMSG);
        cr_assert_eq(next_of("parked " TOKEN " 2147483648\n", &report), -EBADMSG);
        cr_assert_eq(next_of("parked " TOKEN " -2\n", &report), -EBADMSG);
        cr_assert_eq(next_of("parked " TOKEN "0 2\n", &report), 0);
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

/* ---- values ---- */

static unsigned n_found;

static void found_in_order(const Report *r) {
        static const struct {
                ReportKind kind;
                AgentValueKind value_kind;
                const char *value;
        } expected[] = {
                { REPORT_READY, 0, NULL },
                { REPORT_VALUE, AGENT_VALUE_RESULT, "{\"n\":\n1}" },
                { REPORT_VALUE, AGENT_VALUE_PNG, "\x89PNG\r\ndone " TOKEN " 0 kept\n" },
                { REPORT_VALUE, AGENT_VALUE_SVG, "" },
                { REPORT_VALUE, _AGENT_VALUE_INVALID, "" },
                { REPORT_DONE, 0, NULL },
        };

        cr_assert_lt(n_found, ELEMENTSOF(expected));
        cr_assert_eq(r->kind, expected[n_found].kind);
        if (r->kind == REPORT_VALUE) {
                cr_assert_eq(r->value_kind, expected[n_found].value_kind);
                cr_assert_str_eq(r->token, TOKEN);
                cr_assert_eq(r->size, strlen(expected[n_found].value));
                cr_assert_eq(memcmp(r->value, expected[n_found].value, r->size), 0);
        }
        n_found++;
}

Test(report, values_in_pieces_of_every_size) {
        static const char text[] = "ready\nvalue " TOKEN " result 8\n{\"n\":\n1}\n"
                                   "value " TOKEN " image/png 35\n\x89PNG\r\ndone " TOKEN " 0 kept\n"
                                   "value " TOKEN " image/svg+xml 0\n\nvalue " TOKEN " image/tiff 3\nabc"
                                   "done " TOKEN " 3 kept\n";

        for (size_t step = 1; step < sizeof(text); step++) {
                ReportReader r = {};

                n_found = 0;
                feed(&r, text, sizeof(text) - 1, step, found_in_order);
                cr_assert_eq(n_found, 6);
                report_reader_done(&r);
        }
}

static size_t value_size;

static void found_large(const Report *r) {
        if (r->kind == REPORT_VALUE)
                value_size = r->value_kind < 0 ? SIZE_MAX : r->size;
        n_found++;
}

/* What is as large as it may be is taken, what is larger is read and costs no memory. */
Test(report, large_values) {
        static char text[3 * MIB];
        ReportReader r = {};
        int n;

        for (int over = 0; over <= 1; over++) {
                size_t size = agent_value_max(AGENT_VALUE_JPEG) + (size_t) over;

                memset(text, 'x', sizeof(text));
                n = snprintf(text, sizeof(text), "value " TOKEN " image/jpeg %zu\n", size);
                text[n] = 'y';
                (void) strcpy(text + n + size, "ready\n");

                n_found = 0;
                feed(&r, text, (size_t) n + size + 6, 50 * KIB, found_large);
                cr_assert_eq(n_found, 2);
                cr_assert_eq(value_size, over ? SIZE_MAX : size);
                cr_assert_leq(r.value.allocated, BUFFER_KEEP);
        }
}

/* Not one byte of what is announced has come. */
Test(report, announced_values_cost_nothing) {
        static const char line[] = "value " TOKEN " image/png 9999999999\n";
        ReportReader r = {};
        Report report;
        size_t room;

        put(&r, line, sizeof(line) - 1);
        cr_assert_eq(report_next(&r, &report), 0);
        (void) report_reader_end(&r, &room);
        cr_assert_leq(r.value.allocated, 64 * KIB);
        report_reader_done(&r);
        cr_assert_null(r.value.data);
}

Test(report, bad_values) {
        static const char *const garbage[] = {
                "value " TOKEN " result -1\n", "value " TOKEN " result x\n", "value " TOKEN " result 12345678901\n",
        };
        Report report;

        for (size_t i = 0; i < ELEMENTSOF(garbage); i++)
                cr_assert_eq(next_of(garbage[i], &report), -EBADMSG, "'%s'", garbage[i]);

        /* Of no turn, but its bytes are its bytes. */
        cr_assert_eq(next_of("value short result 6\nready\n", &report), 1);
        cr_assert(report.kind == REPORT_VALUE && report.token[0] == 0);
        cr_assert_eq(next_of("value " TOKEN " result\n", &report), 0);
}
