/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "lib/json-writer.h"
#include "lib/json.h"

TestSuite(json_writer, .timeout = 10);

static void check_text(Buffer *b, const JsonWriter *w, const char *expected) {
        cr_assert_eq(w->error, 0);
        cr_assert_eq(buffer_size(b), strlen(expected), "%.*s", (int) buffer_size(b), buffer_data(b));
        cr_assert_arr_eq(buffer_data(b), expected, strlen(expected), "%.*s", (int) buffer_size(b), buffer_data(b));
}

/* What is written must be read back as what it was. */
static json_object *parse(Buffer *b) {
        json_object *o = NULL;

        cr_assert_eq(json_parse(buffer_data(b), buffer_size(b), &o, NULL), 0, "%.*s", (int) buffer_size(b),
                     buffer_data(b));
        return o;
}

static json_object *member(json_object *o, const char *key) {
        json_object *value = NULL;

        cr_assert(json_object_object_get_ex(o, key, &value), "no member %s", key);
        return value;
}

Test(json_writer, empty_object) {
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);

        json_write_object(&w, NULL);
        json_write_object_end(&w);
        check_text(&b, &w, "{}");
}

Test(json_writer, commas_between_and_after_objects) {
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);

        json_write_object(&w, NULL);
        json_write_object(&w, "a");
        json_write_object(&w, "b");
        json_write_object_end(&w);
        json_write_null(&w, "c");
        json_write_object(&w, "d");
        json_write_bool(&w, "e", true);
        json_write_bool(&w, "f", false);
        json_write_object_end(&w);
        json_write_object_end(&w);
        json_write_string(&w, "g", "h");
        json_write_string(&w, "i", NULL);
        json_write_object_end(&w);
        check_text(&b, &w, "{\"a\":{\"b\":{},\"c\":null,\"d\":{\"e\":true,\"f\":false}},\"g\":\"h\",\"i\":null}");
        json_object_put(parse(&b));
}

Test(json_writer, appends_to_what_is_there) {
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);

        cr_assert_eq(buffer_append_str(&b, "before "), 0);
        json_write_uint(&w, NULL, 7);
        check_text(&b, &w, "before 7");
}

Test(json_writer, short_escapes) {
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);

        json_write_string(&w, NULL, "\"\\/\n\r\t\b\f\x1B\x7F");
        check_text(&b, &w, "\"\\\"\\\\/\\n\\r\\t\\u0008\\u000c\\u001b\x7F\"");
}

Test(json_writer, every_character_survives) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);
        char all[128];

        for (size_t i = 0; i < sizeof(all); i++)
                all[i] = (char) i;

        json_write_bytes(&w, NULL, all, sizeof(all));
        cr_assert_eq(w.error, 0);
        for (size_t i = 0; i < buffer_size(&b); i++)
                cr_assert_geq((unsigned char) buffer_data(&b)[i], ' ', "a control character at %zu", i);

        o = parse(&b);
        cr_assert_eq(json_object_get_string_len(o), (int) sizeof(all));
        cr_assert_arr_eq(json_object_get_string(o), all, sizeof(all));
}

/* Escapes at the start, in the middle, at the end, and next to each other. */
Test(json_writer, runs_between_escapes) {
        static const char *const texts[] = { "", "\n", "\n\n", "a\n", "\na", "a\nb", "ü\"ü", "\"ü\"", "😀\\" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_json_ json_object *o = NULL;
                _cleanup_(buffer_done) Buffer b = {};
                JsonWriter w = JSON_WRITER(&b);

                json_write_string(&w, NULL, texts[i]);
                o = parse(&b);
                cr_assert_str_eq(json_object_get_string(o), texts[i]);
        }
}

Test(json_writer, nul_inside) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);

        json_write_object(&w, NULL);
        json_write_bytes(&w, "x", "\0a\0", 3);
        json_write_bytes(&w, "y", NULL, 0);
        json_write_object_end(&w);
        check_text(&b, &w, "{\"x\":\"\\u0000a\\u0000\",\"y\":\"\"}");

        o = parse(&b);
        cr_assert_eq(json_object_get_string_len(member(o, "x")), 3);
}

Test(json_writer, keys_are_escaped) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);

        json_write_object(&w, NULL);
        json_write_int(&w, "a\"\n\\", 1);
        json_write_object_end(&w);

        o = parse(&b);
        cr_assert_eq(json_object_get_int64(member(o, "a\"\n\\")), 1);
}

Test(json_writer, integers) {
        static const int64_t values[] = { 0, 1, -1, 9, 10, -10, 99, 100, 1234567890123456789, INT64_MAX, INT64_MIN };

        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                _cleanup_json_ json_object *o = NULL;
                _cleanup_(buffer_done) Buffer b = {};
                JsonWriter w = JSON_WRITER(&b);

                json_write_int(&w, NULL, values[i]);
                o = parse(&b);
                cr_assert(json_object_is_type(o, json_type_int));
                cr_assert_eq(json_object_get_int64(o), values[i]);
        }
}

Test(json_writer, unsigned_integers) {
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);

        json_write_object(&w, NULL);
        json_write_uint(&w, "a", 0);
        json_write_uint(&w, "b", (uint64_t) INT64_MAX);
        json_write_uint(&w, "c", (uint64_t) INT64_MAX + 1);
        json_write_uint(&w, "d", UINT64_MAX);
        json_write_object_end(&w);
        check_text(&b, &w,
                   "{\"a\":0,\"b\":9223372036854775807,\"c\":9223372036854775808,"
                   "\"d\":18446744073709551615}");
}

Test(json_writer, milliseconds) {
        static const struct {
                uint64_t usec;
                const char *text;
        } table[] = {
                { 0, "0.000" }, { 1, "0.001" }, { 10, "0.010" }, { 999, "0.999" }, { 1000, "1.000" },
                { 1234567, "1234.567" }, { UINT64_MAX, "18446744073709551.615" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(buffer_done) Buffer b = {};
                JsonWriter w = JSON_WRITER(&b);

                json_write_usec_as_ms(&w, NULL, table[i].usec);
                check_text(&b, &w, table[i].text);
                json_object_put(parse(&b));
        }
}

Test(json_writer, deep_nesting) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);
        json_object *inner;

        for (int i = 0; i < JSON_DEPTH_MAX; i++)
                json_write_object(&w, i == 0 ? NULL : "x");
        for (int i = 0; i < JSON_DEPTH_MAX; i++)
                json_write_object_end(&w);

        inner = o = parse(&b);
        for (int i = 1; i < JSON_DEPTH_MAX; i++)
                inner = member(inner, "x");
}

Test(json_writer, long_text) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);
        _cleanup_free_ char *text = malloc(MIB);

        cr_assert_not_null(text);
        for (size_t i = 0; i < MIB; i++)
                text[i] = i % 3 ? 'x' : '\n';

        json_write_bytes(&w, NULL, text, MIB);
        o = parse(&b);
        cr_assert_eq(json_object_get_string_len(o), (int) MIB);
        cr_assert_eq(memcmp(json_object_get_string(o), text, MIB), 0);
}

Test(json_writer, errors_stick) {
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);

        w.error = -ENOMEM;
        json_write_object(&w, NULL);
        json_write_string(&w, "a", "\n");
        json_write_object_end(&w);
        cr_assert_eq(w.error, -ENOMEM);
        cr_assert_eq(buffer_size(&b), 0);
}

Test(json_writer, arrays) {
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);

        json_write_object(&w, NULL);
        json_write_array(&w, "a");
        json_write_array_end(&w);
        json_write_array(&w, "b");
        json_write_int(&w, NULL, 1);
        json_write_object(&w, NULL);
        json_write_object_end(&w);
        json_write_string(&w, NULL, "x");
        json_write_array_end(&w);
        json_write_null(&w, "c");
        json_write_object_end(&w);
        check_text(&b, &w, "{\"a\":[],\"b\":[1,{},\"x\"],\"c\":null}");
}

Test(json_writer, numbers) {
        static const double table[] = { 0, -1, 0.5, 33.985, 0.1 + 0.2, 1e15, 999999999999999, 1e300, -5e-324, 1.0 / 3 };
        _cleanup_(buffer_done) Buffer text = {};
        JsonWriter short_writer = JSON_WRITER(&text);

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_json_ json_object *o = NULL;
                _cleanup_(buffer_done) Buffer b = {};
                JsonWriter w = JSON_WRITER(&b);

                json_write_number(&w, NULL, table[i]);
                o = parse(&b);
                cr_assert_eq(json_object_get_double(o), table[i], "%.*s", (int) buffer_size(&b), buffer_data(&b));
        }

        json_write_number(&short_writer, NULL, 33.985);
        json_write_number(&short_writer, NULL, 600);
        check_text(&text, &short_writer, "33.985,600");
}
