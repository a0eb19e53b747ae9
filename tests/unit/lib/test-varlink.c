/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include <criterion/criterion.h>

#include "lib/varlink.h"

TestSuite(varlink, .timeout = 20);

static int parse_call(const char *text, VarlinkCall *ret) {
        return varlink_call_parse(text, strlen(text), ret);
}

Test(varlink, calls) {
        _cleanup_(varlink_call_done) VarlinkCall c = {};

        cr_assert_eq(parse_call(" {\"method\":\"a.b.C\",\"parameters\":{\"x\":[1]},\"more\":true}\n", &c),
                     0);
        cr_assert_str_eq(c.method, "a.b.C");
        cr_assert_eq(c.flags, VARLINK_MORE);
        cr_assert_str_eq(json_text(c.parameters, NULL), "{\"x\":[1]}");
        varlink_call_done(&c);
        cr_assert_null(c.message);

        cr_assert_eq(parse_call("{\"oneway\":true,\"more\":false,\"method\":\"a.b.C\"}", &c), 0);
        cr_assert_eq(c.flags, VARLINK_ONEWAY);
        cr_assert_str_eq(json_text(c.parameters, NULL), "{}", "there is always an object");
        varlink_call_done(&c);

        cr_assert_eq(parse_call("{\"method\":\"a.b.C\",\"parameters\":null}", &c), 0);
        cr_assert_str_eq(json_text(c.parameters, NULL), "{}");
}

Test(varlink, no_calls) {
        static const char *const bad[] = {
                "",
                " ",
                "{",
                "{}",
                "[]",
                "\"a.b.C\"",
                "null",
                "{\"method\":null}",
                "{\"method\":1}",
                "{\"method\":\"\"}",
                "{\"method\":\"a b\"}",
                "{\"method\":\"a\\nb\"}",
                "{\"method\":\"a\\u0000\"}",
                "{\"method\":\"a.\xc3\xa4\"}",
                "{\"parameters\":{}}",
                "{\"method\":\"a.b.C\",\"parameters\":1}",
                "{\"method\":\"a.b.C\",\"parameters\":[]}",
                "{\"method\":\"a.b.C\",\"more\":1}",
                "{\"method\":\"a.b.C\",\"more\":true,\"oneway\":true}",
                "{\"method\":\"a.b.C\",\"upgrade\":true}",
                "{\"method\":\"a.b.C\",\"Method\":\"a.b.C\"}",
                "{\"method\":\"a.b.C\"}{}",
                "{\"method\":\"a.b.C\"",
                "{'method':'a.b.C'}",
                "{\"method\":\"a.b.C\",}",
        };
        VarlinkCall c = {};
        char text[400];

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                cr_assert_eq(parse_call(bad[i], &c), -EBADMSG, "'%s'", bad[i]);
                cr_assert_null(c.message);
        }

        cr_assert_eq(varlink_call_parse("{\"method\":\"a.b.C\"}\0", 19, &c), -EBADMSG, "a NUL inside");

        memset(text, 'm', sizeof(text));
        memcpy(text, "{\"method\":\"", 11);
        memcpy(text + 11 + 255, "\"}", 3);
        cr_assert_eq(parse_call(text, &c), 0);
        varlink_call_done(&c);
        memcpy(text + 11 + 255, "m\"}", 4);
        cr_assert_eq(parse_call(text, &c), -EBADMSG, "a name of 256 bytes");
}

static int parse_reply(const char *text, VarlinkReply *ret) {
        return varlink_reply_parse(text, strlen(text), ret);
}

Test(varlink, replies) {
        _cleanup_(varlink_reply_done) VarlinkReply r = {};

        cr_assert_eq(parse_reply("{}", &r), 0);
        cr_assert_null(r.error);
        cr_assert_null(r.parameters);
        cr_assert_eq(r.flags, 0);
        varlink_reply_done(&r);

        cr_assert_eq(parse_reply("{\"parameters\":{\"a\":1},\"continues\":true,\"new\":[]}", &r), 0);
        cr_assert_str_eq(json_text(r.parameters, NULL), "{\"a\":1}");
        cr_assert_eq(r.flags, VARLINK_CONTINUES);
        varlink_reply_done(&r);

        cr_assert_eq(parse_reply("{\"error\":\"a.b.E\",\"parameters\":{}}", &r), 0);
        cr_assert_str_eq(r.error, "a.b.E");
        varlink_reply_done(&r);

        cr_assert_eq(parse_reply("[]", &r), -EBADMSG);
        cr_assert_eq(parse_reply("{\"parameters\":1}", &r), -EBADMSG);
        cr_assert_eq(parse_reply("{\"error\":\"\"}", &r), -EBADMSG);
        cr_assert_eq(parse_reply("{\"error\":\"a.b.E\",\"continues\":true}", &r), -EBADMSG);
        cr_assert_eq(parse_reply("{\"parameters\":{}", &r), -EBADMSG);
}

static void expect_message(Buffer *b, const char *text) {
        cr_assert_eq(buffer_size(b), strlen(text) + 1);
        cr_assert_str_eq(buffer_data(b), text);
        buffer_consume(b, buffer_size(b));
}

Test(varlink, appends) {
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_(buffer_done) Buffer b = {};

        cr_assert_eq(json_put_string(o, "path", "a/b\n"), 0);

        cr_assert_eq(varlink_call_append(&b, "a.b.C", o, VARLINK_MORE), 0);
        expect_message(&b, "{\"method\":\"a.b.C\",\"parameters\":{\"path\":\"a/b\\n\"},\"more\":true}");
        cr_assert_eq(varlink_call_append(&b, "a.b.C", NULL, VARLINK_ONEWAY), 0);
        expect_message(&b, "{\"method\":\"a.b.C\",\"parameters\":{},\"oneway\":true}");
        cr_assert_eq(varlink_reply_append(&b, o, VARLINK_CONTINUES), 0);
        expect_message(&b, "{\"parameters\":{\"path\":\"a/b\\n\"},\"continues\":true}");
        cr_assert_eq(varlink_reply_append(&b, NULL, 0), 0);
        expect_message(&b, "{\"parameters\":{}}");
        cr_assert_eq(varlink_error_append(&b, "a.b.E", o), 0);
        expect_message(&b, "{\"error\":\"a.b.E\",\"parameters\":{\"path\":\"a/b\\n\"}}");
}

Test(varlink, appends_nothing_bad) {
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_free_ char *text = malloc(VARLINK_MESSAGE_MAX);
        _cleanup_(buffer_done) Buffer b = {};

        cr_assert_eq(varlink_call_append(&b, "a\".b", NULL, 0), -EINVAL);
        cr_assert_eq(varlink_error_append(&b, "", NULL), -EINVAL);

        memset(text, 'x', VARLINK_MESSAGE_MAX);
        cr_assert_eq(json_put_bytes(o, "t", text, VARLINK_MESSAGE_MAX), 0);
        cr_assert_eq(varlink_reply_append(&b, o, 0), -EMSGSIZE);
        cr_assert_eq(buffer_size(&b), 0);
}

Test(varlink, what_is_sent_is_understood) {
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_(varlink_call_done) VarlinkCall call = {};
        _cleanup_(buffer_done) Buffer b = {};

        cr_assert_eq(json_put_bytes(o, "s", "\0\x01\"\\\xc3\xa4", 6), 0);
        cr_assert_eq(varlink_call_append(&b, "a.b.C", o, VARLINK_MORE), 0);
        cr_assert_eq(varlink_call_parse(buffer_data(&b), buffer_size(&b) - 1, &call), 0);
        cr_assert(json_object_equal(call.parameters, o));

        buffer_consume(&b, buffer_size(&b));
        cr_assert_eq(varlink_error_append(&b, "a.b.E", o), 0);
        cr_assert_eq(varlink_reply_parse(buffer_data(&b), buffer_size(&b) - 1, &reply), 0);
        cr_assert(json_object_equal(reply.parameters, o));
}
