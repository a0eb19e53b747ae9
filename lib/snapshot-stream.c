/* SPDX-License-Identifier: MIT */

/*
 * The reader never holds a piece of data: it hands on what it was fed. A stream comes from a jail, or from a
 * disk, so everything that could grow has its bound before any byte of it is read.
 */

#include "snapshot-stream.h"

#include <stdio.h>

#include "text.h"

static const char *const part_table[_SNAPSHOT_PART_MAX] = {
        [SNAPSHOT_WORKSPACE] = "workspace",
        [SNAPSHOT_PYTHON] = "python",
        [SNAPSHOT_BASH] = "bash",
        [SNAPSHOT_NODE] = "node",
};

const char *snapshot_part_to_string(SnapshotPart part) {
        assert(part >= 0 && part < _SNAPSHOT_PART_MAX);

        return part_table[part];
}

SnapshotPart snapshot_part_from_string(const char *name) {
        for (SnapshotPart p = 0; p < _SNAPSHOT_PART_MAX; p++)
                if (streq(part_table[p], name))
                        return p;

        return _SNAPSHOT_PART_INVALID;
}

/* What stands after a word and a space, or NULL when the line begins otherwise. */
static const char *after_word(const char *line, const char *word) {
        size_t n = strlen(word);

        return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

static int take_part(SnapshotReader *r, const char *name) {
        SnapshotPart part = snapshot_part_from_string(name);

        if (part < 0 || r->in_part || r->seen & 1U << part)
                return -EBADMSG;

        r->part = part;
        r->seen |= 1U << part;
        r->in_part = true;
        return SNAPSHOT_BEGIN;
}

/* Of a piece or a report: its bytes follow. */
static int take_length(SnapshotReader *r, SnapshotEvent state, const char *digits, uint64_t max) {
        uint64_t n;

        if (!r->in_part || digits[0] == '0' || parse_u64(digits, &n) < 0 || n > max)
                return -EBADMSG;

        r->state = state;
        r->left = n;
        return SNAPSHOT_MORE;
}

static int take_line(SnapshotReader *r) {
        const char *rest;

        rest = after_word(r->line, "part");
        if (rest)
                return take_part(r, rest);
        rest = after_word(r->line, "data");
        if (rest)
                return take_length(r, SNAPSHOT_DATA, rest, SNAPSHOT_DATA_MAX);
        rest = after_word(r->line, "end");
        if (rest)
                return take_length(r, SNAPSHOT_END, rest, SNAPSHOT_REPORT_MAX);
        if (r->in_part || !streq(r->line, "done"))
                return -EBADMSG;

        r->state = SNAPSHOT_DONE;
        return SNAPSHOT_DONE;
}

static int read_line(SnapshotReader *r, const char **data, size_t *size) {
        while (*size > 0) {
                char c = **data;

                (*data)++;
                (*size)--;
                if (c == '\n') {
                        r->line[r->line_size] = 0;
                        r->line_size = 0;
                        return take_line(r);
                }
                if (c == 0 || r->line_size == sizeof(r->line) - 1)
                        return -EBADMSG;
                r->line[r->line_size++] = c;
        }

        return SNAPSHOT_MORE;
}

static int read_data(SnapshotReader *r, const char **data, size_t *size) {
        r->data = *data;
        r->size = MIN(*size, r->left);
        *data += r->size;
        *size -= r->size;
        r->left -= r->size;
        if (r->left == 0)
                r->state = SNAPSHOT_MORE;
        return SNAPSHOT_DATA;
}

static int read_report(SnapshotReader *r, const char **data, size_t *size) {
        size_t n = MIN(*size, r->left);

        if (buffer_append(&r->report, *data, n) < 0)
                return -ENOMEM;
        *data += n;
        *size -= n;
        r->left -= n;
        if (r->left > 0)
                return SNAPSHOT_MORE;

        r->state = SNAPSHOT_MORE;
        r->in_part = false;
        r->data = buffer_data(&r->report);
        r->size = buffer_size(&r->report);
        return SNAPSHOT_END;
}

static int read_any(SnapshotReader *r, const char **data, size_t *size) {
        if (r->broken || r->state == SNAPSHOT_DONE)
                return -EBADMSG;
        if (r->state == SNAPSHOT_DATA)
                return read_data(r, data, size);
        if (r->state == SNAPSHOT_END)
                return read_report(r, data, size);

        buffer_consume(&r->report, buffer_size(&r->report));
        return read_line(r, data, size);
}

int snapshot_reader_next(SnapshotReader *r, const char **data, size_t *size) {
        int event = SNAPSHOT_MORE;

        r->data = NULL;
        r->size = 0;
        while (*size > 0 && event == SNAPSHOT_MORE)
                event = read_any(r, data, size);
        if (event < 0)
                r->broken = true;
        return event;
}

void snapshot_reader_done(SnapshotReader *r) {
        buffer_done(&r->report);
}

size_t snapshot_line(char ret[SNAPSHOT_LINE_MAX], SnapshotEvent event, SnapshotPart part, size_t length) {
        int n;

        if (event == SNAPSHOT_BEGIN)
                n = snprintf(ret, SNAPSHOT_LINE_MAX, "part %s\n", snapshot_part_to_string(part));
        else if (event == SNAPSHOT_DONE)
                n = snprintf(ret, SNAPSHOT_LINE_MAX, "done\n");
        else
                n = snprintf(ret, SNAPSHOT_LINE_MAX, "%s %zu\n", event == SNAPSHOT_DATA ? "data" : "end", length);

        assert(n > 0 && (unsigned) n < SNAPSHOT_LINE_MAX);
        return (size_t) n;
}
