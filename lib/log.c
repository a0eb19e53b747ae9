/* SPDX-License-Identifier: MIT */

/*
 * Lines to standard error. The descriptor is shared with whoever started us, so it is never made
 * non-blocking; instead a line stays below PIPE_BUF and is written only when poll(2) says that so much
 * fits. The state is the program's name, level and style, set once by log_open() before there is anything
 * to log and read ever after.
 */

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define LINE_MAX_SIZE 2048U
_Static_assert(LINE_MAX_SIZE <= PIPE_BUF, "a line must fit a pipe that is writable");

static const char *log_program;
static int log_level = LOG_INFO;
static bool log_to_journal;

static int level_from_string(const char *s) {
        static const char *const names[] = {
                [LOG_ERR] = "err",   [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
                [LOG_INFO] = "info", [LOG_DEBUG] = "debug",
        };

        for (size_t i = 0; s && i < ELEMENTSOF(names); i++)
                if (streq_ptr(names[i], s))
                        return (int) i;

        return -EINVAL;
}

/* $JOURNAL_STREAM is inherited by programs whose standard error went elsewhere since: it names the file by
 * device and inode (systemd.exec(5)). */
static bool stderr_is_journal(void) {
        const char *e = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        return e && sscanf(e, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
               st.st_dev == device && st.st_ino == inode;
}

void log_open(const char *program, int default_level) {
        int level;

        level = level_from_string(getenv("NIX_SANDBOX_LOG"));

        log_program = program;
        log_level = level < 0 ? default_level : level;
        log_to_journal = stderr_is_journal();
}

bool log_enabled(int level) {
        return level <= log_level;
}

bool log_is_journal(void) {
        return log_to_journal;
}

static void line_write(const char *line, size_t size) {
        struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

        /* POLLERR or POLLHUP: nobody reads any more, and writing would raise SIGPIPE. */
        if (poll(&p, 1, /* timeout= */ 0) == 1 && p.revents == POLLOUT)
                (void) !write(STDERR_FILENO, line, size);
}

/* Ends the text of n bytes as one line. The buffer has room for the LF in the place of the NUL. */
static size_t line_finish(char *line, size_t n) {
        /* Cut where vsnprintf() did, but not inside of a character. */
        if (n > LINE_MAX_SIZE - 2) {
                n = LINE_MAX_SIZE - 1;
                do
                        n--;
                while (((uint8_t) line[n] & 0xc0) == 0x80);
        }

        for (size_t i = 0; i < n; i++)
                if ((uint8_t) line[i] < 0x20 || line[i] == 0x7f)
                        line[i] = ' ';

        line[n] = '\n';
        return n + 1;
}

static size_t line_prefix(char *line, int level) {
        int n;

        if (log_to_journal)
                n = snprintf(line, LINE_MAX_SIZE, "<%d>", level);
        else
                n = snprintf(line, LINE_MAX_SIZE, "%.64s: ", log_program ?: program_invocation_short_name);

        return n > 0 ? (size_t) n : 0;
}

int log_full(int level, int error, const char *format, ...) {
        int saved = errno, n;
        char line[LINE_MAX_SIZE];
        size_t prefix;
        va_list ap;

        error = abs(error);
        if (!log_enabled(level))
                return -error;

        prefix = line_prefix(line, level);

        errno = error;          /* for %m */
        va_start(ap, format);
        n = vsnprintf(line + prefix, sizeof(line) - prefix, format, ap);
        va_end(ap);
        if (n > 0)
                line_write(line, line_finish(line, prefix + (size_t) n));

        errno = saved;
        return -error;
}
