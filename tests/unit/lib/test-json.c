/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "lib/buffer.h"
#include "lib/json.h"

TestSuite(json, .timeout = 20);

typedef struct Text {
        const char *data;
        size_t size;
} Text;

#define T(s) { s, sizeof(s) - 1 }

static const Text good[] = {
        T("{}"), T("[]"), T("null"), T("true"), T("false"), T("0"), T("-0"), T("1.5"), T("\"\""),
        T(" \t\r\n1 \n"), T("[1,2,3]"), T("{\"a\":{\"b\":[null,true,false]}}"), T("{\"\":1}"),
        T("[0.1e-5,1E5,1e+2,-0.0]"), T("\"\\u0000\""), T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\""),
        T("\"\\ud83d\\ude00\""), T("\"\x7f\""), T("18446744073709551615"), T("-9223372036854775808"),
        T("1e-999"), T("[\"a:b\",\"{\",\"}\",\"\\\"\"]"), T("{\"a\":\"\\u0000\",\"b\":1}"),
        T("[\"\\u0000\",\"x\"]"), T("\"\\u0000\""), T("\"\\\\u0000\""), T("{\"a\\\\u0000\":1}"),
        T("[{\"a\":1},{\"a\":1}]"), T("{\"a\":{\"a\":1}}"), T("\"\xf0\x9f\x98\x80\""),
};

static const Text bad[] = {
        /* Nothing, or too little. */
        T(""), T("  "), T("["), T("{"), T("[1"), T("[1,"), T("{\"a\""), T("{\"a\":"), T("{\"a\":1"),
        T("\"abc"), T("\""), T("\"\\"), T("\"\\u12"), T("tru"), T("-"), T("1e"), T("1e+"), T("1."),
        /* Too much. */
        T("1 2"), T("{}{}"), T("[]]"), T("{}}"), T("truefalse"), T("nullx"), T("1\0"), T("[1]\0"),
        T("\0" "1"), T("[1\0]"), T("{\"a\":1}\0{\"b\":1}"), T("\"a\"\"b\""), T("1;"),
        /* Commas and colons. */
        T("[1,]"), T("[,1]"), T("[,]"), T("[1,,2]"), T("[1 2]"), T("{,}"), T("{\"a\":1,}"),
        T("{\"a\" 1}"), T("{\"a\":}"), T("{\"a\"}"), T("{\"a\":1:2}"), T("[\"a\":1]"), T("{1:2}"),
        T("{null:1}"), T(":"), T(","), T("{\"a\":1 \"b\":2}"), T("[}"), T("{]"), T("[1}"),
        T("{\"a\":1]"),
        /* What other readers take. */
        T("NaN"), T("[NaN]"), T("nan"), T("Infinity"), T("-Infinity"), T("[-Infinity]"), T("inf"),
        T("True"), T("NULL"), T("undefined"), T("{a:1}"), T("{'a':1}"), T("'a'"), T("/**/1"), T("1//"),
        T("#\n1"), T("\xef\xbb\xbf{}"), T("\f1"), T("1\v"), T("\xc2\xa0" "1"), T("\\u0020 1"),
        /* Numbers. */
        T("01"), T("-01"), T("00"), T("+1"), T(".5"), T("-.5"), T("1.e3"), T("0x10"), T("1_000"),
        T("1e1.5"), T("--1"), T("[1true]"), T("[truefalse]"), T("1e999"), T("-1e999"), T("[1,1e400]"),
        T("18446744073709551616"), T("99999999999999999999999999999999"), T("-9223372036854775809"),
        T("\xd9\xa1"),
        /* Strings. */
        T("\"\\x41\""), T("\"\\a\""), T("\"\\'\""), T("\"\\u12g4\""), T("\"\\u\""), T("\"a\tb\""),
        T("\"a\nb\""), T("\"\0\""), T("\"\x1f\""), T("\"\\\n\""), T("\"\\\0\""), T("{\"a\tb\":1}"),
        T("{\"a\\u0000b\":1}"), T("{\"\\u0000\" :1}"), T("{\"x\\u0000\\\"\"\n:1}"),
        /* UTF-8. */
        T("\"\xff\""), T("\"\xc0\x80\""), T("\"\xed\xa0\x80\""), T("\"\xf4\x90\x80\x80\""),
        T("\"\xe2\x82\""), T("{\"\x80\":1}"), T("\xff"), T("\"\xc3"),
        /* Members given twice. */
        T("{\"a\":1,\"a\":1}"), T("{\"a\":1,\"\\u0061\":2}"), T("[{\"x\":{\"b\":1,\"c\":2,\"b\":{}}}]"),
        T("{\"\":1,\"\":2}"), T("{\"\\ud800\":1,\"\\ud801\":2}"),
};

Test(json, good_text) {
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                _cleanup_json_ json_object *o = NULL;

                cr_assert_eq(json_parse(good[i].data, good[i].size, &o, NULL), 0, "%s", good[i].data);
                cr_assert_not_null(json_text(o, NULL));
        }
}

/* What takes many times its size is refused before it does. */
Test(json, values_are_counted) {
        static const struct {
                const char *text;
                size_t values;
        } cases[] = {
                { "1", 0 }, { "[]", 1 }, { "[1]", 1 }, { "[1,2]", 2 }, { "{\"a\":[[],{}],\"b\":\"[,{\"}", 6 }, { "[\"\\\",[\"]", 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_json_ json_object *o = NULL;
                const char *text = cases[i].text;

                cr_assert_eq(json_parse_bounded(text, strlen(text), cases[i].values, &o), 0, "%s", text);
                if (cases[i].values > 0)
                        cr_assert_eq(json_parse_bounded(text, strlen(text), cases[i].values - 1, &o), -EBADMSG, "%s", text);
        }
}

Test(json, bad_text) {
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                json_object *o = (json_object *) &o;
                size_t at = SIZE_MAX;

                cr_assert_eq(json_parse(bad[i].data, bad[i].size, &o, &at), -EBADMSG, "%s", bad[i].data);
                cr_assert_eq(o, (json_object *) &o, "failure leaves the result alone");
                cr_assert_leq(at, bad[i].size);
                cr_assert_eq(json_parse(bad[i].data, bad[i].size, &o, NULL), -EBADMSG);
        }
}

static size_t error_offset(const char *text) {
        json_object *o = NULL;
        size_t at = SIZE_MAX;

        cr_assert_eq(json_parse(text, strlen(text), &o, &at), -EBADMSG);
        return at;
}

Test(json, error_offset) {
        cr_assert_eq(error_offset("{\"a\":01}"), 6);
        cr_assert_eq(error_offset("{\"a\":1 2}"), 7);
        cr_assert_eq(error_offset("[\"abc\xff\"]"), 5);
        cr_assert_eq(error_offset("[1,\n Infinity]"), 5);
        cr_assert_eq(error_offset("[1,2"), 4);
}

/* No byte after the given size is read, and every proper prefix of an object is refused. */
Test(json, every_prefix) {
        static const char text[] = "{\"a\":[1,-2.5e3,true,null,\"x\\u00e9\\n\xc3\xa9\"],\"b\":{\"\":false}}";

        for (size_t n = 0; n < sizeof(text); n++) {
                _cleanup_free_ char *copy = malloc(MAX(n, 1U));
                _cleanup_json_ json_object *o = NULL;

                memcpy(copy, text, n);
                cr_assert_eq(json_parse(copy, n, &o, NULL), n == sizeof(text) - 1 ? 0 : -EBADMSG, "%zu", n);
        }
}

static int parse_nested(size_t depth, const char *open, const char *inner, const char *close) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_json_ json_object *o = NULL;

        for (size_t i = 0; i < depth; i++)
                cr_assert_eq(buffer_append_str(&b, open), 0);
        cr_assert_eq(buffer_append_str(&b, inner), 0);
        for (size_t i = 0; i < depth; i++)
                cr_assert_eq(buffer_append_str(&b, close), 0);

        return json_parse(buffer_data(&b), buffer_size(&b), &o, NULL);
}

Test(json, depth) {
        cr_assert_eq(parse_nested(JSON_DEPTH_MAX - 1, "[", "1", "]"), 0);
        cr_assert_eq(parse_nested(JSON_DEPTH_MAX, "[", "1", "]"), -EBADMSG);
        cr_assert_eq(parse_nested(JSON_DEPTH_MAX - 1, "{\"a\":", "1", "}"), 0);
        cr_assert_eq(parse_nested(JSON_DEPTH_MAX, "{\"a\":", "1", "}"), -EBADMSG);
        cr_assert_eq(parse_nested(1000000, "[", "", "]"), -EBADMSG);
        cr_assert_eq(parse_nested(1000000, "[", "", ""), -EBADMSG);
        cr_assert_eq(parse_nested(300000, "{\"a\":", "", ""), -EBADMSG);
}

Test(json, megabyte_of_junk) {
        static const char alphabet[] = "{}[]:,\"\\u0 1eE+-.tfn/*\n\x80";
        _cleanup_free_ char *junk = malloc(MIB);
        json_object *o = NULL;
        uint32_t x = 1;

        for (size_t i = 0; i < MIB; i++) {
                x = x * 1664525 + 1013904223;
                junk[i] = alphabet[(x >> 16) % (sizeof(alphabet) - 1)];
        }
        cr_assert_eq(json_parse(junk, MIB, &o, NULL), -EBADMSG);
        for (size_t i = 0; i < MIB; i += 97)
                cr_assert_lt(json_parse(junk + i, MIN(1000U, MIB - i), &o, NULL), 0);
        cr_assert_eq(json_parse_with_comments(junk, MIB, &o, NULL), -EBADMSG);

        memset(junk, '"', MIB);
        cr_assert_eq(json_parse(junk, MIB, &o, NULL), -EBADMSG);
        memset(junk, '9', MIB);
        cr_assert_eq(json_parse(junk, MIB, &o, NULL), -EBADMSG);
        memset(junk, ' ', MIB);
        cr_assert_eq(json_parse(junk, MIB, &o, NULL), -EBADMSG);
        memset(junk, '\\', MIB);
        cr_assert_eq(json_parse(junk, MIB, &o, NULL), -EBADMSG);
}

Test(json, large_string) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_json_ json_object *o = NULL;
        size_t size;

        cr_assert_eq(buffer_append_str(&b, "\""), 0);
        for (size_t i = 0; i < MIB; i++)
                cr_assert_eq(buffer_append_str(&b, "\xc3\xa9"), 0);
        cr_assert_eq(buffer_append_str(&b, "\""), 0);

        cr_assert_eq(json_parse(buffer_data(&b), buffer_size(&b), &o, NULL), 0);
        cr_assert_eq((size_t) json_object_get_string_len(o), 2 * MIB);
        cr_assert(memcmp(json_text(o, &size), buffer_data(&b), buffer_size(&b)) == 0);
        cr_assert_eq(size, buffer_size(&b));
}

static void assert_comments(const char *text, const char *expected) {
        _cleanup_json_ json_object *o = NULL;
        int r;

        r = json_parse_with_comments(text, strlen(text), &o, NULL);
        cr_assert_eq(r, expected ? 0 : -EBADMSG, "%s", text);
        if (expected)
                cr_assert_str_eq(json_text(o, NULL), expected);
}

Test(json, comments) {
        assert_comments("1", "1");
        assert_comments("/* a */ { // b\n \"a\": /**/ 1 /* c\n ** / */ } // d", "{\"a\":1}");
        assert_comments("{\"a\":\"/* no */ // comment\",\"b\":\"\\\"//\"}",
                        "{\"a\":\"/* no */ // comment\",\"b\":\"\\\"//\"}");
        assert_comments("// \"\n1", "1");
        assert_comments("/* \" */1", "1");
        assert_comments("//", NULL);
        assert_comments("1 /", NULL);
        assert_comments("1 /*", NULL);
        assert_comments("1 /*/", NULL);
        assert_comments("1 /* *", NULL);
        assert_comments("1/**/2", NULL);
        assert_comments("# x\n1", NULL);
        assert_comments("[1,] // still JSON", NULL);
        assert_comments("\"\\", NULL);
}

Test(json, comments_keep_places) {
        static const char text[] = "// one\n/* two */ [1, x]";
        json_object *o = NULL;
        size_t at = 0;

        cr_assert_eq(json_parse_with_comments(text, strlen(text), &o, &at), -EBADMSG);
        cr_assert_eq(text[at], 'x');
}

Test(json, text) {
        _cleanup_json_ json_object *o = json_object_new_object();
        size_t size = 0;

        cr_assert_eq(json_put_string(o, "s", "a/b\"\\\n\x01\xc3\xa9"), 0);
        cr_assert_eq(json_put_string(o, "n", NULL), 0);
        cr_assert_eq(json_put_bytes(o, "z", "\0x", 2), 0);
        cr_assert_eq(json_put_int(o, "i", INT64_MIN), 0);
        cr_assert_eq(json_put_uint(o, "u", UINT64_MAX), 0);
        cr_assert_eq(json_put_number(o, "d", 1.5), 0);
        cr_assert_eq(json_put_bool(o, "b", true), 0);
        cr_assert_eq(json_put_object(o, "o", json_object_new_object()), 0);
        cr_assert_eq(json_put_object(o, "on", NULL), 0);

        cr_assert_str_eq(json_text(o, &size),
                         "{\"s\":\"a/b\\\"\\\\\\n\\u0001\xc3\xa9\",\"n\":null,\"z\":\"\\u0000x\","
                         "\"i\":-9223372036854775808,\"u\":18446744073709551615,\"d\":1.5,\"b\":true,"
                         "\"o\":{},\"on\":null}");
        cr_assert_eq(size, strlen(json_text(o, NULL)));
        cr_assert_eq(json_put_bytes(o, "x", "", (size_t) INT32_MAX + 1), -ENOMEM);
}

Test(json, arrays) {
        _cleanup_json_ json_object *a = json_object_new_array();

        cr_assert_eq(json_array_put_string(a, "x"), 0);
        cr_assert_eq(json_array_put_string(a, NULL), 0);
        cr_assert_eq(json_array_put(a, json_object_new_object()), 0);
        cr_assert_eq(json_array_put(a, NULL), 0);
        cr_assert_str_eq(json_text(a, NULL), "[\"x\",null,{},null]");
}

/* json-c refuses to make an object its own member: then the reference that came with it must be gone. */
Test(json, put_takes_the_reference_when_it_fails) {
        json_object *o = json_object_new_object();

        cr_assert_lt(json_put_object(o, "self", json_object_get(o)), 0);
        cr_assert_eq(json_object_put(o), 1, "that was the last reference");
}

/* Few digits where they are enough, all of them where they are not. */
Test(json, numbers_come_back) {
        static const double values[] = { 33.985, 0.1, 2, 4.5888888888888888, 1e-7, 1.0 / 3 };
        _cleanup_json_ json_object *o = json_object_new_object(), *back = NULL;
        const char *text;
        size_t size;

        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                cr_assert_eq(json_put_number(o, "n", values[i]), 0);
                text = json_text(o, &size);
                if (i == 0)
                        cr_assert_str_eq(text, "{\"n\":33.985}");
                cr_assert_eq(json_parse(text, size, &back, NULL), 0);
                cr_assert_eq(json_object_get_double(json_object_object_get(back, "n")), values[i]);
                json_object_put(back);
                back = NULL;
        }
}
