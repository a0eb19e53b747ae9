/* SPDX-License-Identifier: MIT */

#include <unistd.h>

#include <criterion/criterion.h>

#include "shim/input.h"

TestSuite(input, .timeout = 20);

/* Everything that comes out of these pieces, one letter and the text for each line: L(line) T(head|tail). */
static void expect_lines(const char *const *pieces, const char *text) {
        _cleanup_(input_done) Input input;
        _cleanup_(buffer_done) Buffer got = {};
        int fds[2];

        cr_assert_eq(pipe(fds), 0);
        input_init(&input, fds[0], /* line_max= */ 8);
        for (; *pieces; pieces++) {
                const char *line;
                InputLine kind;
                size_t size;

                cr_assert_eq(write(fds[1], *pieces, strlen(*pieces)), (ssize_t) strlen(*pieces));
                cr_assert_eq(input_read(&input), 1);
                while ((kind = input_next(&input, &line, &size)) != INPUT_NONE)
                        if (kind == INPUT_LINE)
                                cr_assert(buffer_printf(&got, "L(%.*s)", (int) size, line) >= 0);
                        else
                                cr_assert(buffer_printf(&got, "T(%.4s|%.4s)", input.head,
                                                        input.tail + input.n_tail - 4) >= 0);
        }
        cr_assert_eq(buffer_append(&got, "", 1), 0);
        cr_expect_str_eq(buffer_data(&got), text);
        close(fds[1]);
        cr_expect_eq(input_read(&input), 0);
        close(fds[0]);
}

#define PIECES(...) ((const char *const[]) { __VA_ARGS__, NULL })

Test(input, lines_in_pieces) {
        expect_lines(PIECES("a\nbc\n", "d", "ef", "g\n\n", "h"), "L(a)L(bc)L(defg)L()");
        expect_lines(PIECES("12345678\n"), "L(12345678)");
}

Test(input, a_long_line_is_skipped_and_its_edges_kept) {
        expect_lines(PIECES("123456789\nok\n"), "T(1234|6789)L(ok)");
        expect_lines(PIECES("123456789", "abc", "def\nok\n"), "T(1234|cdef)L(ok)");
        expect_lines(PIECES("12345678", "9", "a", "\n", "ok\n"), "T(1234|789a)L(ok)");
        expect_lines(PIECES("x\n123456789012\n", "123456789\n\ny\n"), "L(x)T(1234|9012)T(1234|6789)L()L(y)");
}

Test(input, the_tail_is_what_came_last) {
        char big[1001] = "";
        const char *pieces[] = { big, big, "z\n", NULL };

        memset(big, 'b', sizeof(big) - 1);
        expect_lines(pieces, "T(bbbb|bbbz)");
}
