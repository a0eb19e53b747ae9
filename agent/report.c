/* SPDX-License-Identifier: MIT */

/* Takes lines off the reader one by one. Strict: what is not exactly a report is none. */

#include <errno.h>

#include "agent/report.h"

#define WORDS_MAX 4U

/* Cuts a line into words at single blanks. Their number, or WORDS_MAX + 1 when there are more. */
static size_t line_split(char *line, char *ret_words[WORDS_MAX]) {
        char *save = NULL;
        size_t n = 0;

        for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
                if (n == WORDS_MAX)
                        return WORDS_MAX + 1;
                ret_words[n++] = w;
        }

        return n;
}

static bool line_is_text(const char *line, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (line[i] < ' ' || line[i] > '~')
                        return false;
        return true;
}

static int parse_status(const char *s, int *ret) {
        int n = 0;

        if (!*s || strlen(s) > 3)
                return -EBADMSG;

        for (; *s; s++) {
                if (*s < '0' || *s > '9')
                        return -EBADMSG;
                n = n * 10 + *s - '0';
        }
        if (n > 255)
                return -EBADMSG;

        *ret = n;
        return 0;
}

static int parse_done(char *const words[WORDS_MAX], Report *ret) {
        Report report = { .kind = REPORT_DONE };
        int r;

        /* Of no turn of ours; whatever else it says. */
        if (strlen(words[1]) != DRIVER_TOKEN_LENGTH)
                return 0;
        memcpy(report.token, words[1], DRIVER_TOKEN_LENGTH);

        r = parse_status(words[2], &report.status);
        if (r < 0)
                return r;

        if (streq(words[3], "lost"))
                report.lost = true;
        else if (!streq(words[3], "kept"))
                return -EBADMSG;

        *ret = report;
        return 1;
}

static int parse_line(char *line, Report *ret) {
        char *words[WORDS_MAX];
        size_t n;

        n = line_split(line, words);
        if (n == 1 && streq(words[0], "ready")) {
                *ret = (Report) { .kind = REPORT_READY };
                return 1;
        }
        if (n == 4 && streq(words[0], "done"))
                return parse_done(words, ret);
        return 0;
}

int report_next(ReportReader *reader, Report *ret) {
        for (;;) {
                char line[DRIVER_LINE_MAX + 1];
                size_t size;
                char *end;
                int r;

                end = memchr(reader->data, '\n', reader->size);
                size = end ? (size_t) (end - reader->data) : reader->size;
                if (size > DRIVER_LINE_MAX || !line_is_text(reader->data, size))
                        return -EBADMSG;
                if (!end)
                        return 0;

                memcpy(line, reader->data, size);
                line[size] = 0;
                reader->size -= size + 1;
                memmove(reader->data, end + 1, reader->size);

                r = parse_line(line, ret);
                if (r != 0)
                        return r;
        }
}
