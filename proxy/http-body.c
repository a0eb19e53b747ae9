/* SPDX-License-Identifier: MIT */

/*
 * HttpBody: an automaton over single bytes, but for data, which is copied in runs. A chunk's size line is written
 * when its line feed has come, and the CR LF behind its data when both have, so that nothing unverified goes out.
 */

#include "http-body.h"
#include "proxy/http-chars.h"

/* Sixteen digits are all that fits into 64 bits. */
#define SIZE_DIGITS_MAX 16U

enum {
        STATE_DONE,
        STATE_LENGTH,
        STATE_SIZE,             /* in the digits of a chunk's size */
        STATE_SIZE_LF,
        STATE_DATA,
        STATE_DATA_CR,
        STATE_DATA_LF,
        STATE_LINE,             /* at the beginning of a line of the trailer */
        STATE_NAME,
        STATE_VALUE,
        STATE_VALUE_LF,
        STATE_END_LF,           /* of the empty line */
        STATE_FAILED,
};

static void begin_chunk(HttpBody *b) {
        b->state = STATE_SIZE;
        b->left = 0;
        b->n_digits = 0;
}

void http_body_init(HttpBody *b, HttpBodyKind kind, uint64_t length) {
        *b = (HttpBody){};

        if (kind == HTTP_BODY_CHUNKED)
                begin_chunk(b);
        else if (kind == HTTP_BODY_LENGTH && length > 0) {
                b->state = STATE_LENGTH;
                b->left = length;
        } else
                b->state = STATE_DONE;
}

bool http_body_is_complete(const HttpBody *b) {
        return b->state == STATE_DONE;
}

static int fail(HttpBody *b, HttpError error) {
        b->state = STATE_FAILED;
        b->error = error;
        return (int) error;
}

static int size_byte(HttpBody *b, char c) {
        int digit = char_hex(c);

        if (digit >= 0 && b->n_digits < SIZE_DIGITS_MAX) {
                b->left = b->left << 4 | (uint64_t) digit;
                b->n_digits++;
                return HTTP_OK;
        }
        if (c != '\r' || b->n_digits == 0)
                return fail(b, HTTP_E_CHUNK);

        b->state = STATE_SIZE_LF;
        return HTTP_OK;
}

/* A line is NAME ":" VALUE CR LF; an empty one ends the trailer. */
static int trailer_byte(HttpBody *b, char c) {
        if (b->state == STATE_LINE && c == '\r')
                b->state = STATE_END_LF;
        else if (b->state == STATE_LINE && char_is_token(c))
                b->state = STATE_NAME;
        else if (b->state == STATE_NAME && c == ':')
                b->state = STATE_VALUE;
        else if (b->state == STATE_VALUE && c == '\r')
                b->state = STATE_VALUE_LF;
        else if (b->state == STATE_VALUE_LF && c == '\n')
                b->state = STATE_LINE;
        else if (!(b->state == STATE_NAME && char_is_token(c)) && !(b->state == STATE_VALUE && char_is_field(c)))
                return fail(b, HTTP_E_TRAILER);

        return HTTP_OK;
}

/* Any byte but those of data. HTTP_OK, an error, or -ENOMEM. */
static int control_byte(HttpBody *b, char c, Buffer *out) {
        int r = 0;

        if (b->state >= STATE_LINE && ++b->trailer_size > HTTP_TRAILER_MAX)
                return fail(b, HTTP_E_TRAILER_LONG);

        switch (b->state) {
        case STATE_SIZE:
                return size_byte(b, c);

        case STATE_SIZE_LF:
                if (c != '\n')
                        return fail(b, HTTP_E_CHUNK);
                if (b->left > 0)
                        r = buffer_printf(out, "%llx\r\n", (unsigned long long) b->left);
                b->state = b->left > 0 ? STATE_DATA : STATE_LINE;
                return r;

        case STATE_DATA_CR:
                if (c != '\r')
                        return fail(b, HTTP_E_CHUNK);
                b->state = STATE_DATA_LF;
                return HTTP_OK;

        case STATE_DATA_LF:
                if (c != '\n')
                        return fail(b, HTTP_E_CHUNK);
                begin_chunk(b);
                return buffer_append_str(out, "\r\n");

        case STATE_END_LF:
                if (c != '\n')
                        return fail(b, HTTP_E_TRAILER);
                b->state = STATE_DONE;
                return buffer_append_str(out, "0\r\n\r\n");

        default:
                return trailer_byte(b, c);
        }
}

int http_body_feed(HttpBody *b, const char *data, size_t size, size_t *ret_used, Buffer *out) {
        size_t used = 0, n;
        int r = 0;

        while (r == 0 && used < size && b->state != STATE_DONE && b->state != STATE_FAILED) {
                if (b->state != STATE_LENGTH && b->state != STATE_DATA) {
                        r = control_byte(b, data[used], out);
                        used += r == 0;
                        continue;
                }

                n = (size_t) MIN(b->left, (uint64_t) (size - used));
                r = buffer_append(out, data + used, n);
                used += n;
                b->left -= n;
                if (b->left == 0)
                        b->state = b->state == STATE_DATA ? STATE_DATA_CR : STATE_DONE;
        }
        if (r < 0) {
                b->state = STATE_FAILED;
                return r;
        }

        *ret_used = used;
        if (b->state == STATE_FAILED)
                return (int) b->error;
        return b->state == STATE_DONE ? HTTP_OK : HTTP_MORE;
}
