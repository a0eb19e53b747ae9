/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include <criterion/criterion.h>

#include "agent/kept.h"
#include "lib/frame.h"
#include "lib/json.h"

TestSuite(message, .timeout = 10);

#define REQUEST(members, code) "{\"type\":\"execute\"," members "}\0" code

Test(message, request) {
        static const char payload[] = REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":1500", "a\nb");
        ExecuteRequest r;

        cr_assert_eq(request_parse(payload, sizeof(payload) - 1, &r), 0);
        cr_assert_str_eq(r.interpreter, "bash");
        cr_assert_eq(r.timeout_usec, 1500000);
        cr_assert_eq(r.code_size, 3);
        cr_assert_eq(memcmp(r.code, "a\nb", 3), 0);
}

Test(message, request_for_checkpoints) {
        static const char
                never[] = REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":1", ""),
                always[] = REQUEST("\"interpreter\":\"python\",\"timeout_ms\":1,\"checkpoints\":\"always\","
                                   "\"checkpoint_mb\":3", "");
        ExecuteRequest r;

        cr_assert_eq(request_parse(never, sizeof(never) - 1, &r), 0);
        cr_assert_eq(r.checkpoints, CHECKPOINTS_NEVER);
        cr_assert_eq(request_parse(always, sizeof(always) - 1, &r), 0);
        cr_assert_eq(r.checkpoints, CHECKPOINTS_ALWAYS);
        cr_assert_eq(r.checkpoint_bytes, 3 * MIB);
}

Test(message, request_without_code) {
        static const char payload[] = REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":0", "");
        ExecuteRequest r;

        cr_assert_eq(request_parse(payload, sizeof(payload) - 1, &r), 0);
        cr_assert_eq(r.code_size, 0);
}

Test(message, bad_requests) {
#define PAYLOAD(text) { text, sizeof(text) - 1 }
        static const struct {
                const char *data;
                size_t size;
        } payloads[] = {
                PAYLOAD(""),
                PAYLOAD("\0"),
                PAYLOAD("{}\0"),
                PAYLOAD("{\"type\":\"execute\",\"interpreter\":\"bash\",\"timeout_ms\":1}"),
                PAYLOAD("{\"type\":\"run\",\"interpreter\":\"bash\",\"timeout_ms\":1}\0"),
                PAYLOAD(REQUEST("\"interpreter\":\"bash\"", "")),
                PAYLOAD(REQUEST("\"timeout_ms\":1", "")),
                PAYLOAD(REQUEST("\"interpreter\":1,\"timeout_ms\":1", "")),
                PAYLOAD(REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":-1", "")),
                PAYLOAD(REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":true", "")),
                PAYLOAD(REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":604800001", "")),
                PAYLOAD(REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":18446744073709551615", "")),
                PAYLOAD(REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":1,\"x\":1", "")),
                PAYLOAD(REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":1,\"checkpoints\":\"often\"", "")),
                PAYLOAD(REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":1,\"checkpoint_mb\":18446744073709551615", "")),
                PAYLOAD(REQUEST("\"interpreter\":\"0123456789abcdef\",\"timeout_ms\":1", "")),
        };
        ExecuteRequest r;

        for (size_t i = 0; i < ELEMENTSOF(payloads); i++)
                cr_assert_lt(request_parse(payloads[i].data, payloads[i].size, &r), 0, "%zu", i);
}

static json_object *frame_json(Buffer *frames, uint8_t type, uint64_t turn) {
        json_object *o;
        Frame f;

        cr_assert_eq(frame_peek(frames, AGENT_PAYLOAD_MAX, &f), 1);
        cr_assert(f.type == type && f.turn == turn);
        cr_assert_eq(frame_length(&f), buffer_size(frames));
        cr_assert_eq(json_parse(f.payload, f.size, &o, NULL), 0);
        return o;
}

Test(message, hello) {
        _cleanup_(buffer_done) Buffer frames = {};
        _cleanup_json_ json_object *o = NULL;

        cr_assert_eq(hello_append(NULL, &frames), 0);
        o = frame_json(&frames, AGENT_FRAME_EVENT, 0);
        cr_assert_str_eq(json_object_get_string(json_object_object_get(o, "event")), "hello");
        cr_assert_eq(json_object_get_int(json_object_object_get(o, "protocol")), NIX_SANDBOX_AGENT_PROTOCOL);
}

Test(message, hello_to_another_daemon) {
        const HelloState state = { .turn = 7, .running = true, .total_usec = 8, .age_usec = 9, .request = "{\"a\":1}" };
        _cleanup_(buffer_done) Buffer frames = {};
        _cleanup_json_ json_object *o = NULL;

        cr_assert_eq(hello_append(&state, &frames), 0);
        o = frame_json(&frames, AGENT_FRAME_EVENT, 0);
        cr_assert_eq(json_object_get_int(json_object_object_get(o, "turn")), 7);
        cr_assert(json_object_get_boolean(json_object_object_get(o, "running")));
        cr_assert_eq(json_object_get_int(json_object_object_get(o, "total_us")), 8);
        cr_assert_eq(json_object_get_int(json_object_object_get(o, "age_us")), 9);
        cr_assert_eq(json_object_get_int(json_object_object_get(json_object_object_get(o, "request"), "a")), 1);
}

Test(message, request_with_a_tag) {
        static const char payload[] = REQUEST("\"interpreter\":\"bash\",\"timeout_ms\":1,\"tag\":\"t\",\"origin\":\"created\"",
                                              "x");
        char long_one[2 * REQUEST_HEAD_MAX];
        ExecuteRequest r;

        cr_assert_eq(request_parse(payload, sizeof(payload) - 1, &r), 0);
        memset(long_one, ' ', sizeof(long_one));
        memcpy(long_one, payload, strlen(payload));
        long_one[sizeof(long_one) - 1] = 0;
        cr_assert_lt(request_parse(long_one, sizeof(long_one), &r), 0);
}

static void result_frame(const TurnResult *t, Buffer *frames) {
        Kept k = {};

        kept_begin(&k, 9, NULL, NULL);
        cr_assert_eq(kept_finish(&k, t, frames), 0);
        buffer_done(&k.result);
}

Test(message, result_is_exactly_that) {
        _cleanup_(buffer_done) Buffer frames = {};
        _cleanup_json_ json_object *o = NULL;
        char file[] = "/work\"space\n/\xc3\xa9";
        TurnResult t = {
                .exit_code = 139, .signal = 11, .lost = true, .late = true, .duration_usec = UINT64_MAX,
                .out = { .bytes = UINT64_MAX, .omitted = 1, .dropped = 2, .file = file },
                .full = "/tmp", .error = "start", .error_text = "it \"broke\"",
        };

        result_frame(&t, &frames);
        o = frame_json(&frames, AGENT_FRAME_RESULT, 9);
        cr_assert_str_eq(json_text(o, NULL),
                         "{\"exit_code\":139,\"signal\":11,\"state\":\"lost\",\"late\":true,"
                         "\"duration_us\":18446744073709551615,"
                         "\"stdout\":{\"bytes\":18446744073709551615,\"omitted\":1,\"dropped\":2,"
                         "\"file\":\"/work\\\"space\\n/\xc3\xa9\"},"
                         "\"full\":\"/tmp\",\"error\":\"start\",\"error_text\":\"it \\\"broke\\\"\"}");
}

/* The result of most turns, and the one that the round trip is measured with. */
Test(message, what_goes_without_saying_is_left_out) {
        _cleanup_(buffer_done) Buffer frames = {};
        _cleanup_json_ json_object *o = NULL;
        TurnResult t = { .duration_usec = 12 };

        result_frame(&t, &frames);
        o = frame_json(&frames, AGENT_FRAME_RESULT, 9);
        cr_assert_str_eq(json_text(o, NULL), "{\"exit_code\":0,\"duration_us\":12}");
}
