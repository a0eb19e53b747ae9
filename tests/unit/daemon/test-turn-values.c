/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "daemon/turn-reply.h"
#include "lib/base64.h"
#include "lib/varlink.h"

#define PNG "\x89PNG\r\n\x1a\n"

static const TurnContext context = { .session_id = "0123456789ab", .session_name = "s", .environment = "e" };
static Turn *turn;

static void make(SessionOrigin origin) {
        turn = turn_free(turn);
        cr_assert_eq(turn_new(&context, INTERPRETER_PYTHON, origin, USEC_PER_SEC, "x", 1, &turn), 0);
}

static void setup(void) {
        make(SESSION_ORIGIN_RESUMED);
}

static void teardown(void) {
        turn = turn_free(turn);
}

TestSuite(turn_values, .init = setup, .fini = teardown, .timeout = 20);

static void take(AgentValueKind kind, const char *data, size_t size) {
        cr_assert_eq(turn_values_take(&turn->values, kind, data, size), 0);
}

static void take_text(AgentValueKind kind, const char *text) {
        take(kind, text, strlen(text));
}

static void finish(const AgentResult *result) {
        cr_assert_eq(turn_take_result(turn, result), 0);
}

static void check(const char *key, const char *expected) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_json_ json_object *o = NULL;
        json_object *value = NULL;

        cr_assert_eq(turn_reply_append(turn, &b), 0);
        cr_assert_eq(json_parse(buffer_data(&b), buffer_size(&b), &o, NULL), 0);
        cr_assert(json_object_object_get_ex(o, key, &value));
        cr_assert_str_eq(value ? json_text(value, NULL) : "null", expected);
}

static bool notice_has(const char *text) {
        return memmem(buffer_data(&turn->notice), buffer_size(&turn->notice), text, strlen(text));
}

Test(turn_values, in_the_reply_when_it_is_over) {
        take_text(AGENT_VALUE_PNG, PNG);
        take_text(AGENT_VALUE_HTML, "<b>\xc3\xa9</b>");
        take_text(AGENT_VALUE_RESULT, "1");
        take_text(AGENT_VALUE_RESULT, " {\"a\": [1.0, null]}\n");
        check("images", "0");
        check("pictures", "[]");
        check("result", "null");

        finish(&(AgentResult) {});
        check("images", "1");
        check("pictures", "[{\"type\":\"image/png\",\"data\":\"iVBORw0KGgo=\"},"
                          "{\"type\":\"text/html\",\"data\":\"PGI+w6k8L2I+\"}]");
        check("result", "{\"a\":[1.0,null]}");
        cr_assert_eq(buffer_size(&turn->notice), 0);
}

Test(turn_values, results_of_every_type) {
        static const char *const texts[] = { "null", "true", "-9223372036854775808", "18446744073709551615", "0.5", "\"\"",
                                             "[]", "{}", "\"a\\u0000b\"" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                make(SESSION_ORIGIN_RESUMED);
                take_text(AGENT_VALUE_RESULT, texts[i]);
                finish(&(AgentResult) {});
                check("result", texts[i]);
        }
}

Test(turn_values, what_is_no_json) {
        static const char *const texts[] = { "", " ", "NaN", "{\"a\":Infinity}", "{", "1 2", "{'a':1}", "\xff", "[1,]",
                                             "18446744073709551616", "{\"a\":1,\"a\":2}", "1e999", "\"\xed\xa0\x80\"" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                make(SESSION_ORIGIN_RESUMED);
                take_text(AGENT_VALUE_RESULT, "1");     /* the last one counts, also when it is bad */
                take_text(AGENT_VALUE_RESULT, texts[i]);
                finish(&(AgentResult) {});
                check("result", "null");
                cr_assert(notice_has("The result was left out"), "%s", texts[i]);
        }
}

/* Whoever gets the reply parses it, with a bound of his own. */
Test(turn_values, depth) {
        for (int depth = TURN_RESULT_DEPTH_MAX; depth <= TURN_RESULT_DEPTH_MAX + 1; depth++) {
                _cleanup_(buffer_done) Buffer b = {}, reply = {}, message = {};
                VarlinkReply parsed;

                for (int i = 0; i < depth; i++)
                        cr_assert_eq(buffer_append_str(&b, "["), 0);
                for (int i = 0; i < depth; i++)
                        cr_assert_eq(buffer_append_str(&b, "]"), 0);
                make(SESSION_ORIGIN_RESUMED);
                take(AGENT_VALUE_RESULT, buffer_data(&b), buffer_size(&b));
                finish(&(AgentResult) {});
                cr_assert_eq(turn->values.bad_result, depth > TURN_RESULT_DEPTH_MAX);

                cr_assert_eq(turn_reply_append(turn, &reply), 0);
                cr_assert_eq(varlink_reply_append_text(&message, buffer_data(&reply), buffer_size(&reply), 0), 0);
                cr_assert_eq(varlink_reply_parse(buffer_data(&message), buffer_size(&message) - 1, &parsed), 0);
                varlink_reply_done(&parsed);
        }
}

Test(turn_values, pictures_that_are_none) {
        take_text(AGENT_VALUE_PNG, "GIF89a");
        take_text(AGENT_VALUE_PNG, "\x89PNG");
        take_text(AGENT_VALUE_JPEG, PNG);
        take_text(AGENT_VALUE_SVG, "<svg>\xff");
        take_text(AGENT_VALUE_SVG, "");
        finish(&(AgentResult) {});
        check("pictures", "[]");
        cr_assert(notice_has("Pictures left out: 5."));
}

Test(turn_values, more_than_an_agent_sends) {
        static char large[AGENT_VALUES_SIZE / 2];

        for (unsigned i = 0; i < AGENT_VALUES_MAX; i++)
                take_text(AGENT_VALUE_JPEG, "\xff\xd8\xff");
        cr_assert_eq(turn_values_take(&turn->values, AGENT_VALUE_RESULT, "1", 1), -EBADMSG);

        make(SESSION_ORIGIN_RESUMED);
        take(AGENT_VALUE_PNG, large, sizeof(large));
        take(AGENT_VALUE_PNG, large, sizeof(large));
        cr_assert_eq(turn_values_take(&turn->values, AGENT_VALUE_RESULT, "1", 1), -EBADMSG);
}

/* The longest reply there can be is one message. */
Test(turn_values, largest_reply_fits) {
        static char large[2 * MIB], nuls[OUTPUT_HEAD_MAX];
        _cleanup_(buffer_done) Buffer reply = {}, message = {};

        memcpy(large, PNG, 8);
        take(AGENT_VALUE_PNG, large, sizeof(large));
        take(AGENT_VALUE_PNG, large, sizeof(large) - agent_value_max(AGENT_VALUE_RESULT));
        memset(large, ' ', agent_value_max(AGENT_VALUE_RESULT));
        large[0] = large[agent_value_max(AGENT_VALUE_RESULT) - 1] = '"';
        take(AGENT_VALUE_RESULT, large, agent_value_max(AGENT_VALUE_RESULT));
        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++) {
                cr_assert_eq(turn_take_output(turn, (OutputStream) i, false, nuls, sizeof(nuls)), 0);
                cr_assert_eq(turn_take_output(turn, (OutputStream) i, true, nuls, sizeof(nuls)), 0);
        }
        finish(&(AgentResult) {});
        cr_assert_eq(turn->values.n_pictures, 2);
        cr_assert_not_null(turn->values.result);

        cr_assert_eq(turn_reply_append(turn, &reply), 0);
        cr_assert_eq(varlink_reply_append_text(&message, buffer_data(&reply), buffer_size(&reply), 0), 0);
}

Test(turn_values, files_and_what_was_dropped) {
        const AgentResult result = {
                .values_dropped = 84,
                .out = { { "a b.png", 5 }, { "\xc3\xa9", 0 } },
                .n_out = 2,
                .out_more = 9,
        };

        finish(&result);
        check("outputs", "[{\"path\":\"/workspace/out/a b.png\",\"bytes\":5},"
                         "{\"path\":\"/workspace/out/\xc3\xa9\",\"bytes\":0}]");
        cr_assert(notice_has("Pictures or results left out: 84."));
        cr_assert(notice_has("not named: 9."));

        make(SESSION_ORIGIN_EPHEMERAL);
        finish(&result);
        check("outputs", "[]");
        cr_assert_not(notice_has("not named"));
}
