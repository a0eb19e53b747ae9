/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "daemon/variables.h"
#include "lib/json.h"

static Buffer out;
static JsonWriter writer;
static uint64_t more;

static void setup(void) {
        writer = JSON_WRITER(&out);
        more = 0;
}

static void teardown(void) {
        buffer_done(&out);
}

TestSuite(variables, .init = setup, .fini = teardown, .timeout = 20);

static int list(const char *answer) {
        return variables_write(&writer, "python", answer, strlen(answer), &more);
}

static void expect(const char *text) {
        cr_assert_eq(buffer_append(&out, "", 1), 0);
        cr_assert_str_eq(buffer_data(&out), text);
}

Test(variables, list) {
        cr_assert_eq(list("[{\"name\":\"x\",\"type\":\"int\",\"size\":28,\"text\":\"42\"},"
                          "{\"name\":\"y\",\"type\":\"str\",\"size\":null,\"text\":\"'\\u00e4'\"},{\"more\":7}]\n"), 0);
        cr_assert_eq(more, 7);
        expect("{\"interpreter\":\"python\",\"name\":\"x\",\"type\":\"int\",\"text\":\"42\",\"size\":28},"
               "{\"interpreter\":\"python\",\"name\":\"y\",\"type\":\"str\",\"text\":\"'\xc3\xa4'\",\"size\":null}");
}

Test(variables, empty_list) {
        cr_assert_eq(list("[]"), 0);
        cr_assert_eq(buffer_size(&out), 0);
}

Test(variables, what_a_terminal_would_obey_is_blank) {
        cr_assert_eq(list("[{\"name\":\"a\\u001b\",\"type\":\"\\u0000\\u007f\",\"text\":\"\\u001b[2J\\n\\t\\u0085\\u009bx\\u00a0\"}]"), 0);
        expect("{\"interpreter\":\"python\",\"name\":\"a \",\"type\":\"  \",\"text\":\" [2J    x\xc2\xa0\",\"size\":null}");
}

Test(variables, is_no_list) {
        static const char *const answers[] = {
                "", "{}", "null", "1", "[", "[1]", "[null]", "[{}]", "[{\"more\":1},{\"name\":\"x\",\"type\":\"t\",\"text\":\"\"}]",
                "[{\"name\":\"\",\"type\":\"t\",\"text\":\"\"}]", "[{\"name\":\"x\",\"type\":\"t\"}]",
                "[{\"name\":\"x\",\"type\":\"t\",\"text\":\"\",\"size\":-1}]", "[{\"name\":\"x\",\"type\":\"t\",\"text\":\"\",\"size\":1.5}]",
                "[{\"name\":\"x\",\"type\":\"t\",\"text\":\"\",\"new\":1}]", "[{\"name\":1,\"type\":\"t\",\"text\":\"\"}]", "[\"\xff\"]",
        };

        for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
                cr_assert_eq(list(answers[i]), -EINVAL, "%s", answers[i]);
                cr_assert_eq(buffer_size(&out), 0);
        }
}

Test(variables, caps) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_free_ char *name = calloc(1, VARIABLE_NAME_MAX + 2), *text = calloc(1, VARIABLE_BRIEF_MAX + 8);
        _cleanup_json_ json_object *o = NULL;

        memset(name, 'n', VARIABLE_NAME_MAX + 1);
        cr_assert_eq(buffer_printf(&b, "[{\"name\":\"%s\",\"type\":\"\",\"text\":\"\"}]%c", name, 0), 0);
        cr_assert_eq(list(buffer_data(&b)), -EINVAL);

        name[VARIABLE_NAME_MAX] = 0;
        memset(text, 't', VARIABLE_BRIEF_MAX + 5);
        memcpy(text + VARIABLE_BRIEF_MAX - 1, "\xc3\xa4", 2);
        buffer_consume(&b, buffer_size(&b));
        cr_assert_eq(buffer_printf(&b, "[{\"name\":\"%s\",\"type\":\"\",\"text\":\"%s\"}]%c", name, text, 0), 0);
        cr_assert_eq(list(buffer_data(&b)), 0);
        cr_assert_eq(json_parse(buffer_data(&out), buffer_size(&out), &o, NULL), 0);
        cr_assert_eq(json_object_get_string_len(json_object_object_get(o, "text")), VARIABLE_BRIEF_MAX - 1,
                     "no half a character");

        buffer_consume(&b, buffer_size(&b));
        for (size_t i = 0; i <= VARIABLES_MAX; i++)
                cr_assert_eq(buffer_printf(&b, "%c{\"name\":\"x\",\"type\":\"\",\"text\":\"\"}", i == 0 ? '[' : ','), 0);
        cr_assert_eq(buffer_append(&b, "]", 2), 0);
        cr_assert_eq(list(buffer_data(&b)), -EINVAL);
}

static int one(const char *answer, char **ret_error) {
        return variable_write(&writer, NULL, "bash", answer, strlen(answer), ret_error);
}

Test(variables, one) {
        _cleanup_free_ char *error = NULL;

        cr_assert_eq(one("{\"name\":\"x\",\"type\":\"list\",\"size\":5,\"text\":\"[1,\\n\\t2]\\r\",\"truncated\":true}", &error), 0);
        cr_assert_null(error);
        expect("{\"interpreter\":\"bash\",\"name\":\"x\",\"type\":\"list\",\"text\":\"[1,\\n\\t2] \",\"size\":5,\"truncated\":true}");
}

Test(variables, one_that_is_not_there) {
        _cleanup_free_ char *error = NULL;

        cr_assert_eq(one("{\"error\":\"there is none\"}", &error), 0);
        cr_assert_str_eq(error, "there is none");
        cr_assert_eq(buffer_size(&out), 0);
}

Test(variables, one_that_is_none) {
        static const char *const answers[] = { "", "[]", "null", "{}", "{\"error\":1}", "{\"name\":\"x\"}" };

        for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
                _cleanup_free_ char *error = NULL;

                cr_assert_eq(one(answers[i], &error), -EINVAL, "%s", answers[i]);
                cr_assert_null(error);
                cr_assert_eq(buffer_size(&out), 0);
        }
}
