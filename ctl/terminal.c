/* SPDX-License-Identifier: MIT */

/* Looked up whenever it is needed: a terminal can be resized, and none of this is called often. */

#include "ctl/terminal.h"

#include <locale.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/text.h"

#define COLUMNS_DEFAULT 80

void terminal_set_locale(void) {
        (void) setlocale(LC_CTYPE, "");
        /* In the C locale every character beyond ASCII would be of unknown width. */
        if (MB_CUR_MAX == 1)
                (void) setlocale(LC_CTYPE, "C.UTF-8");
}

int terminal_columns(void) {
        const char *columns = getenv("COLUMNS");
        struct winsize size;
        uint64_t n;

        if (!isatty(STDOUT_FILENO))
                return 0;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
                return size.ws_col;
        if (columns && parse_u64(columns, &n) == 0 && n > 0 && n <= UINT16_MAX)
                return (int) n;
        return COLUMNS_DEFAULT;
}

bool terminal_has_colours(void) {
        const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

        return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && term && !streq(term, "dumb");
}

const char *style_begin(Style style) {
        static const char *const table[_STYLE_MAX] = {
                [STYLE_PLAIN] = "",
                [STYLE_TITLE] = "\033[1m",
                [STYLE_GOOD] = "\033[32m",
                [STYLE_WARN] = "\033[33m",
                [STYLE_BAD] = "\033[1;31m",
                [STYLE_COLD] = "\033[34m",
                [STYLE_DIM] = "\033[2m",
        };

        return terminal_has_colours() ? table[style] : "";
}

const char *style_end(Style style) {
        return style != STYLE_PLAIN && terminal_has_colours() ? "\033[0m" : "";
}

bool terminal_can_ask(void) {
        return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool terminal_ask(const char *question) {
        _cleanup_free_ char *line = NULL;
        size_t size = 0;

        fprintf(stderr, "%s [y/N] ", question);
        (void) fflush(stderr);
        return getline(&line, &size, stdin) > 0 && (line[0] == 'y' || line[0] == 'Y');
}
