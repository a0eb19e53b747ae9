/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "lib/json.h"

TestSuite(json_dispatch, .timeout = 10);

typedef struct Target {
        const char *string;
        JsonBytes bytes;
        bool boolean;
        int64_t integer;
        uint64_t natural;
        double number;
        json_object *object;
        json_object *array;
        json_object *any;
} Target;

#define ROW(n, k, m) { n, JSON_KIND_##k, offsetof(Target, m), 0 }

static const JsonField table[] = {
        ROW("string", STRING, string),  ROW("bytes", BYTES, bytes),    ROW("bool", BOOL, boolean),
        ROW("int", INT, integer),       ROW("uint", UINT, natural),    ROW("number", NUMBER, number),
        ROW("object", OBJECT, object),  ROW("array", ARRAY, array),    ROW("any", ANY, any),
        {},
};

static const JsonField mandatory[] = {
        { "string", JSON_KIND_STRING, offsetof(Target, string), JSON_MANDATORY },
        { "any", JSON_KIND_ANY, offsetof(Target, any), JSON_MANDATORY },
        {},
};

/* The parsed objects of a test are not freed before it ends: results borrow from them. */
static json_object *parse(const char *text) {
        json_object *o = NULL;

        cr_assert_eq(json_parse(text, strlen(text), &o, NULL), 0, "%s", text);
        return o;
}

static void assert_refused(const JsonField *t, const char *text, const char *expected_field) {
        const char *field = "unset";
        json_object *o = parse(text);
        Target target = {};

        cr_assert_eq(json_dispatch(o, t, JSON_UNKNOWN_REFUSE, &target, &field), -EINVAL, "%s", text);
        cr_assert(streq_ptr(field, expected_field), "%s: '%s'", text, field ?: "(null)");
        cr_assert_eq(json_dispatch(o, t, JSON_UNKNOWN_REFUSE, &target, NULL), -EINVAL);
        json_object_put(o);
}

Test(json_dispatch, every_kind) {
        json_object *o = parse("{\"string\":\"s\",\"bytes\":\"a\\u0000b\",\"bool\":true,\"int\":-5,"
                               "\"uint\":7,\"number\":1.5,\"object\":{},\"array\":[],\"any\":\"x\"}");
        Target t = {};

        cr_assert_eq(json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &t, NULL), 0);
        cr_assert_str_eq(t.string, "s");
        cr_assert_eq(t.bytes.size, 3);
        cr_assert(memcmp(t.bytes.data, "a\0b", 3) == 0);
        cr_assert(t.boolean);
        cr_assert_eq(t.integer, -5);
        cr_assert_eq(t.natural, 7);
        cr_assert_eq(t.number, 1.5);
        cr_assert(json_object_is_type(t.object, json_type_object));
        cr_assert(json_object_is_type(t.array, json_type_array));
        cr_assert(json_object_is_type(t.any, json_type_string));
        json_object_put(o);
}

Test(json_dispatch, missing_and_null_leave_defaults) {
        static const char *const texts[] = {
                "{}",
                "{\"string\":null,\"bytes\":null,\"bool\":null,\"int\":null,\"any\":null}",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                Target t = { .string = "default", .boolean = true, .integer = 9, .bytes = { "b", 1 } };
                json_object *o = parse(texts[i]);

                cr_assert_eq(json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &t, NULL), 0);
                cr_assert_str_eq(t.string, "default");
                cr_assert(t.boolean);
                cr_assert_eq(t.integer, 9);
                cr_assert_eq(t.bytes.size, 1);
                cr_assert_null(t.any);
                cr_assert_null(t.object);
                json_object_put(o);
        }
}

Test(json_dispatch, mandatory_members) {
        json_object *o = parse("{\"string\":\"\",\"any\":0}");
        Target t = {};

        cr_assert_eq(json_dispatch(o, mandatory, JSON_UNKNOWN_REFUSE, &t, NULL), 0);
        json_object_put(o);

        assert_refused(mandatory, "{}", "string");
        assert_refused(mandatory, "{\"string\":\"\"}", "any");
        assert_refused(mandatory, "{\"string\":null,\"any\":1}", "string");
        assert_refused(mandatory, "{\"string\":\"\",\"any\":null}", "any");
}

Test(json_dispatch, unknown_members) {
        json_object *o = parse("{\"string\":\"s\",\"new\":1}");
        Target t = {};

        assert_refused(table, "{\"string\":\"s\",\"new\":1}", "new");
        assert_refused(table, "{\"\":1}", "");
        assert_refused(table, "{\"String\":\"s\"}", "String");
        assert_refused(table, "{\"new\":null}", "new");

        cr_assert_eq(json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &t, NULL), 0);
        cr_assert_str_eq(t.string, "s");
        json_object_put(o);
}

Test(json_dispatch, no_object) {
        assert_refused(table, "[]", NULL);
        assert_refused(table, "\"string\"", NULL);
        assert_refused(table, "1", NULL);
        assert_refused(table, "null", NULL);
}

/* Every kind is offered every type that it does not take. */
Test(json_dispatch, wrong_types) {
        static const struct {
                const char *name;
                const char *wrong[6];
        } cases[] = {
                { "string", { "1", "1.5", "true", "{}", "[]" } },
                { "bytes", { "1", "1.5", "true", "{}", "[]" } },
                { "bool", { "1", "0", "\"true\"", "{}", "[]" } },
                { "int", { "1.5", "\"1\"", "true", "{}", "[]" } },
                { "uint", { "1.5", "\"1\"", "true", "{}", "[]" } },
                { "number", { "\"1.5\"", "true", "{}", "[]", "\"\"" } },
                { "object", { "1", "1.5", "true", "\"{}\"", "[]" } },
                { "array", { "1", "1.5", "true", "\"[]\"", "{}" } },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (const char *const *w = cases[i].wrong; *w; w++) {
                        char text[64];

                        (void) snprintf(text, sizeof(text), "{\"%s\":%s}", cases[i].name, *w);
                        assert_refused(table, text, cases[i].name);
                }
}

Test(json_dispatch, ranges) {
        json_object *o = parse("{\"int\":9223372036854775807,\"uint\":18446744073709551615,\"number\":-3}");
        Target t = {};

        cr_assert_eq(json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &t, NULL), 0);
        cr_assert_eq(t.integer, INT64_MAX);
        cr_assert_eq(t.natural, UINT64_MAX);
        cr_assert_eq(t.number, -3);
        json_object_put(o);

        o = parse("{\"int\":-9223372036854775808,\"uint\":0}");
        cr_assert_eq(json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &t, NULL), 0);
        cr_assert_eq(t.integer, INT64_MIN);
        cr_assert_eq(t.natural, 0);
        json_object_put(o);

        assert_refused(table, "{\"int\":9223372036854775808}", "int");
        assert_refused(table, "{\"int\":18446744073709551615}", "int");
        assert_refused(table, "{\"int\":1.0}", "int");
        assert_refused(table, "{\"int\":1e3}", "int");
        assert_refused(table, "{\"uint\":-1}", "uint");
        assert_refused(table, "{\"uint\":-9223372036854775808}", "uint");
        assert_refused(table, "{\"string\":\"a\\u0000b\"}", "string");
}
