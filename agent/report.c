/* SPDX-License-Identifier: MIT */

/*
 * Takes lines off the reader one by one. Strict: what is not exactly a report is none. Lines collect in a small
 * place of fixed size; the bytes of a value go past it into a buffer that is there only then.
 */

#include <errno.h>

#include "agent/report.h"
#include "lib/text.h"

#define WORDS_MAX 4U
#define LENGTH_DIGITS_MAX 10U
#define SKIP_SIZE (64 * KIB)

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

static int parse_parked(char *const words[WORDS_MAX], Report *ret) {
        Report report = { .kind = REPORT_PARKED };
        uint64_t pid;

        if (strlen(words[1]) != DRIVER_TOKEN_LENGTH)
                return 0;
        memcpy(report.token, words[1], DRIVER_TOKEN_LENGTH);

        if (parse_u64(words[2], &pid) < 0 || pid <= 1 || pid > INT32_MAX)
                return -EBADMSG;
        report.pid = (pid_t) pid;

        *ret = report;
        return 1;
}

static int parse_length(const char *s, uint64_t *ret) {
        return strlen(s) > LENGTH_DIGITS_MAX || parse_u64(s, ret) < 0 ? -EBADMSG : 0;
}

/* The bytes behind the line are no lines, whoever's they are. */
static int parse_value(ReportReader *reader, char *const words[WORDS_MAX]) {
        Report report = { .kind = REPORT_VALUE, .value_kind = agent_value_from_string(words[2]) };
        int r;

        r = parse_length(words[3], &reader->left);
        if (r < 0)
                return r;

        if (strlen(words[1]) == DRIVER_TOKEN_LENGTH)
                memcpy(report.token, words[1], DRIVER_TOKEN_LENGTH);
        if (report.value_kind >= 0 && reader->left > agent_value_max(report.value_kind))
                report.value_kind = _AGENT_VALUE_INVALID;

        reader->report = report;
        reader->keep = report.value_kind >= 0;
        reader->in_value = true;
        return 0;
}

static int parse_copy(ReportReader *reader, char *const words[WORDS_MAX]) {
        Report report = { .kind = REPORT_COPY };
        int r;

        r = parse_length(words[2], &reader->left);
        if (r < 0)
                return r;

        if (strlen(words[1]) == DRIVER_TOKEN_LENGTH)
                memcpy(report.token, words[1], DRIVER_TOKEN_LENGTH);

        reader->report = report;
        reader->keep = reader->left <= DRIVER_COPY_MAX;
        reader->in_value = true;
        return 0;
}

static int parse_line(ReportReader *reader, char *line, Report *ret) {
        char *words[WORDS_MAX];
        size_t n;

        n = line_split(line, words);
        if (n == 1 && streq(words[0], "ready")) {
                *ret = (Report) { .kind = REPORT_READY };
                return 1;
        }
        if (n == 4 && streq(words[0], "done"))
                return parse_done(words, ret);
        if (n == 4 && streq(words[0], "value"))
                return parse_value(reader, words);
        if (n == 3 && streq(words[0], "parked"))
                return parse_parked(words, ret);
        if (n == 3 && streq(words[0], "copy"))
                return parse_copy(reader, words);
        return 0;
}

static void reader_consume(ReportReader *reader, size_t n) {
        reader->size -= n;
        memmove(reader->data, reader->data + n, reader->size);
}

/* 1: the value is complete. */
static int take_value(ReportReader *reader, Report *ret) {
        size_t n = MIN(reader->left, reader->size);

        if (reader->keep && buffer_append(&reader->value, reader->data, n) < 0)
                return -ENOMEM;
        reader_consume(reader, n);
        reader->left -= n;
        if (reader->left > 0)
                return 0;

        reader->in_value = false;
        reader->report.value = buffer_data(&reader->value);
        reader->report.size = buffer_size(&reader->value);
        *ret = reader->report;
        return 1;
}

int report_next(ReportReader *reader, Report *ret) {
        if (!reader->in_value)
                buffer_consume(&reader->value, buffer_size(&reader->value));

        while (!reader->in_value) {
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
                reader_consume(reader, size + 1);

                r = parse_line(reader, line, ret);
                if (r != 0)
                        return r;
        }

        return take_value(reader, ret);
}

char *report_reader_end(ReportReader *reader, size_t *ret_room) {
        size_t room = 0;
        char *p;

        reader->past = false;
        if (reader->in_value && reader->size == 0) {
                room = reader->keep ? reader->left : MIN(reader->left, SKIP_SIZE);
                reader->past = buffer_reserve(&reader->value, room, &p) >= 0;
        }
        if (reader->past) {
                *ret_room = room;
                return p;
        }

        *ret_room = sizeof(reader->data) - reader->size;
        return reader->data + reader->size;
}

void report_reader_commit(ReportReader *reader, size_t n) {
        if (!reader->past) {
                reader->size += n;
                return;
        }

        buffer_commit(&reader->value, reader->keep ? n : 0);
        reader->left -= n;
}

void report_reader_done(ReportReader *reader) {
        buffer_done(&reader->value);
        *reader = (ReportReader) {};
}
