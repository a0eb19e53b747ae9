/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Writes JSON text straight into a buffer, for messages that are made on every turn: building the same as a
 * tree of json-c objects and printing it costs ten times as much. Commas are put by the writer; that what
 * is begun is ended is the caller's care. Errors stick: they are asked for once, at the end.
 *
 * Strings must be valid UTF-8; NUL and other control characters are escaped. key is NULL inside arrays and
 * for the outermost value.
 */

#include "buffer.h"
#include "macro.h"

typedef struct JsonWriter {
        Buffer *out;
        bool comma;             /* a value stands before in the same object or array */
        int error;              /* 0, or -ENOMEM */
} JsonWriter;

#define JSON_WRITER(buffer) ((JsonWriter) { .out = (buffer) })

void json_write_object(JsonWriter *w, const char *key);
void json_write_object_end(JsonWriter *w);
void json_write_array(JsonWriter *w, const char *key);
void json_write_array_end(JsonWriter *w);
void json_write_string(JsonWriter *w, const char *key, const char *value);      /* NULL: null */
void json_write_bytes(JsonWriter *w, const char *key, const char *data, size_t size);
void json_write_int(JsonWriter *w, const char *key, int64_t value);
void json_write_uint(JsonWriter *w, const char *key, uint64_t value);
void json_write_number(JsonWriter *w, const char *key, double value);           /* must be finite */
void json_write_bool(JsonWriter *w, const char *key, bool value);
void json_write_null(JsonWriter *w, const char *key);
/* The bytes as base64. */
void json_write_base64(JsonWriter *w, const char *key, const char *data, size_t size);
/* What is JSON already. */
void json_write_text(JsonWriter *w, const char *key, const char *text, size_t size);
/* A time in µs as a number of milliseconds with three decimals. */
void json_write_usec_as_ms(JsonWriter *w, const char *key, uint64_t usec);

/* The shortest of two texts that gives the same number back: 33.985 is not 33.984999999999999. */
#define JSON_NUMBER_TEXT_MAX 32U
void json_number_print(double value, char ret[JSON_NUMBER_TEXT_MAX]);
