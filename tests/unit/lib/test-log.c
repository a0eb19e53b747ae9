/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/fd-util.h"
#include "lib/log.h"
#include "lib/text.h"

TestSuite(log, .timeout = 10);

/* Standard error becomes a pipe whose other end is returned. */
static int capture(void) {
        int fds[2];

        cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
        cr_assert_eq(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
        safe_close(fds[1]);
        cr_assert_eq(fd_set_nonblock(fds[0], true), 0);
        return fds[0];
}

/* What was logged since the last time, as a string. */
static const char *captured(int fd) {
        static char text[8192];
        ssize_t n;

        n = read(fd, text, sizeof(text) - 1);
        text[MAX(n, 0)] = 0;
        return text;
}

Test(log, levels) {
        int fd = capture();

        (void) unsetenv("NIX_SANDBOX_LOG");
        log_open("prog", LOG_NOTICE);
        cr_assert(log_enabled(LOG_ERR));
        cr_assert(log_enabled(LOG_NOTICE));
        cr_assert_not(log_enabled(LOG_INFO));

        log_info("not this");
        log_debug("nor this");
        cr_assert_str_eq(captured(fd), "");
        log_notice("but %s", "this");
        cr_assert_str_eq(captured(fd), "prog: but this\n");
}

Test(log, level_from_the_environment) {
        (void) setenv("NIX_SANDBOX_LOG", "debug", true);
        log_open("prog", LOG_ERR);
        cr_assert(log_enabled(LOG_DEBUG));

        (void) setenv("NIX_SANDBOX_LOG", "err", true);
        log_open("prog", LOG_INFO);
        cr_assert_not(log_enabled(LOG_WARNING));

        (void) setenv("NIX_SANDBOX_LOG", "nonsense", true);
        log_open("prog", LOG_INFO);
        cr_assert(log_enabled(LOG_INFO));
        cr_assert_not(log_enabled(LOG_DEBUG));
}

Test(log, errors) {
        int fd = capture();

        log_open("prog", LOG_INFO);
        errno = EINTR;
        cr_assert_eq(log_error_errno(-ENOENT, "Failed: %m"), -ENOENT);
        cr_assert_eq(errno, EINTR, "errno is kept");
        cr_assert_str_eq(captured(fd), "prog: Failed: No such file or directory\n");
        cr_assert_eq(log_error_errno(ENOENT, "Failed: %m"), -ENOENT);
        cr_assert_str_eq(captured(fd), "prog: Failed: No such file or directory\n");
        cr_assert_eq(log_debug_errno(-EPERM, "not shown"), -EPERM);
        cr_assert_str_eq(captured(fd), "");
        cr_assert_eq(log_oom(), -ENOMEM);
        cr_assert_str_eq(captured(fd), "prog: Out of memory.\n");
}

Test(log, one_line_each) {
        int fd = capture();

        log_open("prog", LOG_INFO);
        log_info("a\nb\tc\x1b[31m\x7f \xc3\xa9");
        cr_assert_str_eq(captured(fd), "prog: a b c [31m  \xc3\xa9\n");
}

/* Longer than a line, whatever the place of the cut in a character. */
Test(log, long_lines_are_cut) {
        int fd = capture();

        log_open("prog", LOG_INFO);
        for (unsigned shift = 0; shift < 5; shift++) {
                _cleanup_free_ char *big = malloc(MIB + 1);
                const char *line;

                for (size_t i = 0; i < MIB; i += 4)
                        memcpy(big + i, "\xf0\x9f\x98\x80", 4);
                big[MIB] = 0;

                log_info("%.*s%s", (int) shift, "xxxx", big);
                line = captured(fd);
                cr_assert_gt(strlen(line), 1000);
                cr_assert_leq(strlen(line), PIPE_BUF);
                cr_assert_eq(strchr(line, '\n'), line + strlen(line) - 1);
                cr_assert(utf8_is_valid(line, strlen(line), NULL));
        }
}

Test(log, lines_of_about_the_limit) {
        int fd = capture();
        char text[3000];

        log_open("p", LOG_INFO);
        memset(text, 'x', sizeof(text));
        for (int n = 2030; n < 2060; n++) {
                const char *line;

                log_info("%.*s", n, text);
                line = captured(fd);
                cr_assert_eq(strlen(line), MIN((size_t) n + strlen("p: \n"), 2047U), "%d", n);
                cr_assert_eq(line[strlen(line) - 1], '\n');
        }
}

Test(log, prefix_for_the_journal) {
        int fd = capture();
        struct stat st;
        char e[64];

        cr_assert_eq(fstat(STDERR_FILENO, &st), 0);
        (void) snprintf(e, sizeof(e), "%llu:%llu", (unsigned long long) st.st_dev,
                        (unsigned long long) st.st_ino);
        (void) setenv("JOURNAL_STREAM", e, true);
        log_open("prog", LOG_INFO);
        log_warning("text");
        cr_assert_str_eq(captured(fd), "<4>text\n");

        /* Inherited from a service whose journal we are not connected to any more. */
        (void) snprintf(e, sizeof(e), "%llu:%llu", (unsigned long long) st.st_dev,
                        (unsigned long long) st.st_ino + 1);
        (void) setenv("JOURNAL_STREAM", e, true);
        log_open("prog", LOG_INFO);
        log_warning("text");
        cr_assert_str_eq(captured(fd), "prog: text\n");
}

Test(log, full_pipe_drops_lines) {
        int fd = capture();
        char block[4096] = "";

        cr_assert_eq(fd_set_nonblock(STDERR_FILENO, true), 0);
        while (write(STDERR_FILENO, block, sizeof(block)) > 0)
                ;
        cr_assert_eq(fd_set_nonblock(STDERR_FILENO, false), 0);

        log_open("prog", LOG_INFO);
        log_error("nobody reads this");
        cr_assert_not(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK);

        while (read(fd, block, sizeof(block)) > 0)
                cr_assert_null(memchr(block, 'n', sizeof(block)));
        log_error("but this");
        cr_assert_str_eq(captured(fd), "prog: but this\n");
}

Test(log, no_reader_is_no_signal) {
        int fd = capture();

        (void) signal(SIGPIPE, SIG_DFL);
        log_open("prog", LOG_INFO);
        safe_close(fd);
        log_error("nobody reads this");
        safe_close(STDERR_FILENO);
        log_error("nor this");
}

Test(log, before_it_is_opened) {
        int fd = capture();

        log_error("early");
        cr_assert_not_null(strstr(captured(fd), ": early\n"));
}
