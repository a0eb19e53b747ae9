/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "lib/snapshot-stream.h"

TestSuite(snapshot_stream, .timeout = 10);

#define GOOD                            \
        "part python\n"                 \
        "data 5\nab\ncd"                \
        "data 1\ne"                     \
        "end 11\n{\"ok\":true}"         \
        "part workspace\n"              \
        "end 2\n{}"                     \
        "done\n"

/* Events as text: B python, D bytes (pieces that follow each other are one), E report, done; X for an error. */
static void describe(const char *text, size_t size, size_t step, Buffer *out) {
        SnapshotReader r = {};
        bool in_data = false;

        for (size_t i = 0; i < size; i += step) {
                const char *p = text + i;
                size_t left = MIN(step, size - i);

                for (int e; (e = snapshot_reader_next(&r, &p, &left)) != SNAPSHOT_MORE;) {
                        if (in_data && e != SNAPSHOT_DATA)
                                cr_assert_eq(buffer_append_str(out, "|"), 0);
                        if (e < 0) {
                                cr_assert_eq(e, -EBADMSG);
                                cr_assert_eq(buffer_append_str(out, "X"), 0);
                                goto end;
                        }
                        if (e == SNAPSHOT_BEGIN)
                                cr_assert_eq(buffer_printf(out, "B%s|", snapshot_part_to_string(r.part)), 0);
                        else if (e == SNAPSHOT_DATA || e == SNAPSHOT_END) {
                                if (!in_data || e == SNAPSHOT_END)
                                        cr_assert_eq(buffer_append_str(out, e == SNAPSHOT_DATA ? "D" : "E"), 0);
                                cr_assert_eq(buffer_append(out, r.data, r.size), 0);
                                if (e == SNAPSHOT_END)
                                        cr_assert_eq(buffer_append_str(out, "|"), 0);
                        } else
                                cr_assert_eq(buffer_append_str(out, "done"), 0);
                        in_data = e == SNAPSHOT_DATA;
                }
        }
end:
        cr_assert_eq(buffer_append(out, "", 1), 0);
        snapshot_reader_done(&r);
}

static void check(const char *text, size_t size, size_t step, const char *expected) {
        _cleanup_(buffer_done) Buffer out = {};

        describe(text, size, step, &out);
        cr_assert_str_eq(buffer_data(&out), expected, "%s", text);
}

Test(snapshot_stream, any_pieces) {
        for (size_t step = 1; step <= sizeof(GOOD); step++)
                check(GOOD, sizeof(GOOD) - 1, step, "Bpython|Dab\ncde|E{\"ok\":true}|Bworkspace|E{}|done");
}

/* Nothing is done before the last byte. */
Test(snapshot_stream, cut_anywhere) {
        for (size_t size = 0; size < sizeof(GOOD) - 1; size++) {
                _cleanup_(buffer_done) Buffer out = {};

                describe(GOOD, size, 7, &out);
                cr_assert_null(strstr(buffer_data(&out), "done"));
                cr_assert_null(strchr(buffer_data(&out), 'X'));
        }
}

Test(snapshot_stream, no_parts) {
        check("done\n", 5, 5, "done");
}

Test(snapshot_stream, garbage) {
        static const struct {
                const char *text, *expected;
        } table[] = {
                { "\n", "X" },
                { "dune\n", "X" },
                { "done \n", "X" },
                { "done\n\n", "doneX" },
                { "done\ndone\n", "doneX" },
                { "part\n", "X" },
                { "part \n", "X" },
                { "part perl\n", "X" },
                { "part python \n", "X" },
                { "part Python\n", "X" },
                { "part ../../../etc\n", "X" },
                { "part pythonpythonpythonpython\n", "X" },
                { "part python\npart bash\n", "Bpython|X" },
                { "part python\ndone\n", "Bpython|X" },
                { "part python\nend 1\n1part python\n", "Bpython|E1|X" },
                { "data 1\na", "X" },
                { "end 1\na", "X" },
                { "part bash\ndata 0\n", "Bbash|X" },
                { "part bash\ndata 01\na", "Bbash|X" },
                { "part bash\ndata -1\na", "Bbash|X" },
                { "part bash\ndata +1\na", "Bbash|X" },
                { "part bash\ndata  1\na", "Bbash|X" },
                { "part bash\ndata 1 \na", "Bbash|X" },
                { "part bash\ndata 1\r\na", "Bbash|X" },
                { "part bash\ndata\n", "Bbash|X" },
                { "part bash\ndata \n", "Bbash|X" },
                { "part bash\ndata 262145\n", "Bbash|X" },
                { "part bash\ndata 18446744073709551617\n", "Bbash|X" },
                { "part bash\nend 0\n", "Bbash|X" },
                { "part bash\nend 65537\n", "Bbash|X" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                for (size_t step = 1; step < 40; step += 13)
                        check(table[i].text, strlen(table[i].text), step, table[i].expected);
        check("do\0ne\n", 6, 6, "X");
        check("done\0\n", 6, 6, "X");
}

/* A reader that has met an error stays with it. */
Test(snapshot_stream, stays_broken) {
        const char *text = "x\ndone\n";
        size_t size = strlen(text);
        SnapshotReader r = {};

        cr_assert_eq(snapshot_reader_next(&r, &text, &size), -EBADMSG);
        cr_assert_eq(snapshot_reader_next(&r, &text, &size), -EBADMSG);
        snapshot_reader_done(&r);
}

Test(snapshot_stream, largest) {
        _cleanup_free_ char *bytes = calloc(1, SNAPSHOT_DATA_MAX);
        char line[SNAPSHOT_LINE_MAX];
        SnapshotReader r = {};
        const char *p = line;
        size_t size;

        size = snapshot_line(line, SNAPSHOT_BEGIN, SNAPSHOT_WORKSPACE, 0);
        cr_assert_eq(snapshot_reader_next(&r, &p, &size), SNAPSHOT_BEGIN);
        for (unsigned i = 0; i < 2; i++) {
                p = line;
                size = snapshot_line(line, i == 0 ? SNAPSHOT_DATA : SNAPSHOT_END, SNAPSHOT_WORKSPACE,
                                     i == 0 ? SNAPSHOT_DATA_MAX : SNAPSHOT_REPORT_MAX);
                cr_assert_eq(snapshot_reader_next(&r, &p, &size), SNAPSHOT_MORE);
                p = bytes;
                size = i == 0 ? SNAPSHOT_DATA_MAX : SNAPSHOT_REPORT_MAX;
                cr_assert_eq(snapshot_reader_next(&r, &p, &size), i == 0 ? SNAPSHOT_DATA : SNAPSHOT_END);
                cr_assert_eq(r.size, i == 0 ? SNAPSHOT_DATA_MAX : SNAPSHOT_REPORT_MAX);
                cr_assert_eq(size, 0);
        }
        p = line;
        size = snapshot_line(line, SNAPSHOT_DONE, SNAPSHOT_WORKSPACE, 0);
        cr_assert_eq(snapshot_reader_next(&r, &p, &size), SNAPSHOT_DONE);
        snapshot_reader_done(&r);
}
