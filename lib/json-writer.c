/* SPDX-License-Identifier: MIT */

/* Appends to a buffer; remembers whether a comma is due and the first error. */

#include "json-writer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base64.h"

static void write_raw(JsonWriter *w, const char *data, size_t size) {
        if (w->error >= 0)
                w->error = buffer_append(w->out, data, size);
}

static void write_literal(JsonWriter *w, const char *s) {
        write_raw(w, s, strlen(s));
}

/* The two-character escape of a character, or 0. */
static char short_escape(char c) {
        switch (c) {
        case '"':
        case '\\':
                return c;
        case '\n':
                return 'n';
        case '\r':
                return 'r';
        case '\t':
                return 't';
        default:
                return 0;
        }
}

static void write_escaped(JsonWriter *w, char c) {
        char text[8] = { '\\', short_escape(c) };

        if (text[1] == 0)
                (void) snprintf(text, sizeof(text), "\\u%04x", (unsigned char) c);
        write_literal(w, text);
}

static bool is_plain(const char *data, size_t size) {
        for (size_t i = 0; i < size; i++)
                if ((unsigned char) data[i] < ' ' || data[i] == '"' || data[i] == '\\')
                        return false;
        return true;
}

/* Quotes around what needs no escapes, with a character before and one after (0: none), in one go: that is
 * what nearly all keys and most values are, and appending them piece by piece takes most of a message's time. */
static void write_plain(JsonWriter *w, char before, const char *data, size_t size, char after) {
        char *start, *p;

        if (w->error >= 0)
                w->error = buffer_reserve(w->out, size + 4, &start);
        if (w->error < 0)
                return;

        p = start;
        if (before)
                *p++ = before;
        *p++ = '"';
        if (size > 0) /* data may be NULL then */
                p = mempcpy(p, data, size);
        *p++ = '"';
        if (after)
                *p++ = after;
        buffer_commit(w->out, (size_t) (p - start));
}

/* Runs of ordinary characters are copied as a whole. */
static void write_quoted(JsonWriter *w, const char *data, size_t size) {
        size_t done = 0;

        if (is_plain(data, size))
                return write_plain(w, 0, data, size, 0);

        write_raw(w, "\"", 1);
        for (size_t i = 0; i < size; i++) {
                if (is_plain(data + i, 1))
                        continue;
                write_raw(w, data + done, i - done);
                write_escaped(w, data[i]);
                done = i + 1;
        }
        write_raw(w, data + done, size - done);
        write_raw(w, "\"", 1);
}

static void begin_value(JsonWriter *w, const char *key) {
        size_t size = key ? strlen(key) : 0;
        char comma = w->comma ? ',' : 0;

        w->comma = true;
        if (key && is_plain(key, size))
                return write_plain(w, comma, key, size, ':');

        if (comma)
                write_raw(w, ",", 1);
        if (key) {
                write_quoted(w, key, size);
                write_raw(w, ":", 1);
        }
}

void json_write_object(JsonWriter *w, const char *key) {
        begin_value(w, key);
        write_raw(w, "{", 1);
        w->comma = false;
}

void json_write_object_end(JsonWriter *w) {
        write_raw(w, "}", 1);
        w->comma = true;
}

void json_write_array(JsonWriter *w, const char *key) {
        begin_value(w, key);
        write_raw(w, "[", 1);
        w->comma = false;
}

void json_write_array_end(JsonWriter *w) {
        write_raw(w, "]", 1);
        w->comma = true;
}

void json_write_bytes(JsonWriter *w, const char *key, const char *data, size_t size) {
        begin_value(w, key);
        write_quoted(w, data, size);
}

void json_write_string(JsonWriter *w, const char *key, const char *value) {
        if (value)
                json_write_bytes(w, key, value, strlen(value));
        else
                json_write_null(w, key);
}

static void write_number(JsonWriter *w, const char *key, bool negative, uint64_t magnitude) {
        char text[24], *p = text + sizeof(text);

        *--p = 0;
        do
                *--p = (char) ('0' + magnitude % 10);
        while ((magnitude /= 10) > 0);
        if (negative)
                *--p = '-';

        begin_value(w, key);
        write_literal(w, p);
}

void json_write_base64(JsonWriter *w, const char *key, const char *data, size_t size) {
        begin_value(w, key);
        write_raw(w, "\"", 1);
        if (w->error >= 0)
                w->error = base64_append(w->out, data, size);
        write_raw(w, "\"", 1);
}

void json_write_text(JsonWriter *w, const char *key, const char *text, size_t size) {
        begin_value(w, key);
        write_raw(w, text, size);
}

void json_write_int(JsonWriter *w, const char *key, int64_t value) {
        write_number(w, key, value < 0, value < 0 ? -(uint64_t) value : (uint64_t) value);
}

void json_write_uint(JsonWriter *w, const char *key, uint64_t value) {
        write_number(w, key, false, value);
}

void json_number_print(double value, char ret[JSON_NUMBER_TEXT_MAX]) {
        (void) snprintf(ret, JSON_NUMBER_TEXT_MAX, "%.15g", value);
        if (strtod(ret, NULL) != value)
                (void) snprintf(ret, JSON_NUMBER_TEXT_MAX, "%.17g", value);
}

void json_write_number(JsonWriter *w, const char *key, double value) {
        char text[JSON_NUMBER_TEXT_MAX];

        /* Most are whole, and printf(3) of a double is slow. */
        if (value >= 0 && value < 1e15 && value == (double) (uint64_t) value) {
                json_write_uint(w, key, (uint64_t) value);
                return;
        }

        json_number_print(value, text);
        begin_value(w, key);
        write_literal(w, text);
}

void json_write_bool(JsonWriter *w, const char *key, bool value) {
        begin_value(w, key);
        write_literal(w, value ? "true" : "false");
}

void json_write_null(JsonWriter *w, const char *key) {
        begin_value(w, key);
        write_literal(w, "null");
}

void json_write_usec_as_ms(JsonWriter *w, const char *key, uint64_t usec) {
        char fraction[5] = { '.', (char) ('0' + usec / 100 % 10), (char) ('0' + usec / 10 % 10),
                             (char) ('0' + usec % 10) };

        json_write_uint(w, key, usec / 1000);
        write_literal(w, fraction);
}
