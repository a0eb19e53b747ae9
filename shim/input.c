/* SPDX-License-Identifier: MIT */

/*
 * Input reads without ever setting O_NONBLOCK: the descriptor's flags may be shared with the editor or a
 * terminal, and a read after poll(2) has said so does not block.
 */

#include <errno.h>
#include <unistd.h>

#include "input.h"
#include "must.h"

#define READ_SIZE (32 * KIB)

void input_init(Input *i, int fd, size_t line_max) {
        *i = (Input) {
                .fd = fd,
                .scanner = { .delimiter = '\n', .max = line_max },
        };
}

void input_done(Input *i) {
        buffer_done(&i->buffer);
}

int input_read(Input *i) {
        ssize_t n;
        char *p;

        must(buffer_reserve(&i->buffer, READ_SIZE, &p));
        n = read(i->fd, p, READ_SIZE);
        if (n < 0)
                return -errno;

        buffer_commit(&i->buffer, (size_t) n);
        return n > 0;
}

/* Keeps the last bytes of a line that is being skipped. */
static void remember_tail(Input *i, const char *data, size_t size) {
        size_t n = MIN(size, sizeof(i->tail)), keep = MIN(i->n_tail, sizeof(i->tail) - n);

        memmove(i->tail, i->tail + i->n_tail - keep, keep);
        memcpy(i->tail + keep, data + size - n, n);
        i->n_tail = keep + n;
}

static void start_skipping(Input *i) {
        i->skipping = true;
        i->n_head = MIN(buffer_size(&i->buffer), sizeof(i->head));
        memcpy(i->head, buffer_data(&i->buffer), i->n_head);
        i->n_tail = 0;
}

/* Drops what there is of a line that is too long. True when that was its end. */
static bool skip(Input *i) {
        const char *data = buffer_data(&i->buffer), *end;
        size_t size = buffer_size(&i->buffer);

        end = memchr(data, '\n', size);
        if (end)
                size = (size_t) (end - data);
        remember_tail(i, data, size);
        /* Where there is no line end to drop with it, the last byte stands in for that. */
        record_consume(&i->scanner, &i->buffer, end ? size : size - 1);
        i->skipping = !end;
        return end;
}

InputLine input_next(Input *i, const char **ret, size_t *ret_size) {
        int r;

        if (i->has_line) {
                record_consume(&i->scanner, &i->buffer, i->consume);
                i->has_line = false;
        }

        if (!i->skipping) {
                r = record_peek(&i->scanner, &i->buffer, &i->consume);
                if (r == 0)
                        return INPUT_NONE;
                if (r > 0) {
                        i->has_line = true;
                        *ret = buffer_data(&i->buffer);
                        *ret_size = i->consume;
                        return INPUT_LINE;
                }
                start_skipping(i);
        }

        return buffer_size(&i->buffer) > 0 && skip(i) ? INPUT_LINE_TOO_LONG : INPUT_NONE;
}
