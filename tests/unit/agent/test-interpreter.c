/* SPDX-License-Identifier: MIT */

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "agent/drivers.h"
#include "agent/interpreter.h"
#include "lib/fd-util.h"

#define TOKEN "0123456789abcdef"

TestSuite(interpreter, .timeout = 10);

/* What a driver reads, up to the end of `last`. */
static void expect(Interpreter *i, int fd, const char *const parts[], size_t n) {
        for (size_t k = 0; k < n; k++)
                for (size_t left = strlen(parts[k]); left > 0;) {
                        char text[4096];
                        ssize_t got;

                        interpreter_flush(i);
                        got = read(fd, text, MIN(left, sizeof(text)));
                        cr_assert_gt(got, 0);
                        cr_assert_arr_eq(text, parts[k] + strlen(parts[k]) - left, (size_t) got);
                        left -= (size_t) got;
                }
}

Test(interpreter, code_that_may_end_it) {
        static const char *const dangerous[] = { "exec ls", "x; exec 2>&1", "kill -9 $$", "(exec a)", "a&&exec b",
                                                 "sleep 1\nkill $!", "exec", "{ kill 1; }",
                                                 "bash -c 'kill -9 $PPID'" };
        static const char *const harmless[] = { "", "find . -exec ls {} +", "executor", "x=exec1", "pkill x", "kill_it",
                                                "docker-exec", "echo 'it.exec'" };
        Interpreter table[INTERPRETERS_MAX], *i;

        interpreters_init(table, NULL);
        i = interpreter_find(table, "bash");
        for (size_t k = 0; k < ELEMENTSOF(dangerous); k++)
                cr_assert(interpreter_may_end(i, dangerous[k], strlen(dangerous[k])), "%s", dangerous[k]);
        for (size_t k = 0; k < ELEMENTSOF(harmless); k++)
                cr_assert_not(interpreter_may_end(i, harmless[k], strlen(harmless[k])), "%s", harmless[k]);
        /* No end of string is needed, or looked past. */
        cr_assert(interpreter_may_end(i, "exec ls", 4));
        cr_assert_not(interpreter_may_end(i, "exec ls", 3));
        cr_assert_not(interpreter_may_end(interpreter_find(table, "python"), "exec ('x')", 10));
}

/* The socket takes less than the text that python's driver is sent first: nothing may overtake what is left of it. */
Test(interpreter, commands_need_their_text) {
        Interpreter table[INTERPRETERS_MAX], *i;
        _cleanup_close_ int theirs = -EBADF;
        int fds[2], room = 1;
        char load[64];

        interpreters_init(table, NULL);
        i = interpreter_find(table, "python");
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        cr_assert_eq(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
        i->control = fds[0];
        theirs = fds[1];

        cr_assert_eq(interpreter_command(i, "execute", TOKEN, "x = 1", 5), 0);
        cr_assert_eq(interpreter_command(i, "list", TOKEN, "/a\n", 3), 0);
        cr_assert_eq(interpreter_command(i, "list", TOKEN, "/b\n", 3), 0);

        (void) snprintf(load, sizeof(load), "load " TOKEN " %zu\n", strlen(driver_python_commands));
        expect(i, theirs, (const char *const[]) {
                "execute " TOKEN " 5\nx = 1", load, driver_python_commands,
                "list " TOKEN " 3\n/a\n", "list " TOKEN " 3\n/b\n",
        }, 5);
        cr_assert_eq(buffer_size(&i->unsent), 0);

        interpreter_ended(i);
        cr_assert_not(i->loaded);
}
