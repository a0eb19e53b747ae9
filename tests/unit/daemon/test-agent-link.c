/* SPDX-License-Identifier: MIT */

/* The other end of the socketpair is an agent that does as the test says, mostly nothing good. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/agent-link.h"
#include "lib/fd-util.h"
#include "lib/frame.h"
#include "lib/json.h"

static sd_event *event;
static AgentLink *agent;
static int peer;
static unsigned n_hello, n_output, n_value, n_result, n_operated, n_lost;
static bool free_in_callback;
static Buffer output;
static AgentResult last; /* its strings are gone */
static AgentHello last_hello;
static char last_file[512], last_why[128], last_report[128];
static uint64_t last_operation;
static const char *last_error;

static void maybe_free(void) {
        if (free_in_callback)
                agent = agent_link_free(agent);
}

static void on_hello(AgentLink *l, const AgentHello *hello, void *userdata) {
        n_hello++;
        last_hello = *hello;
        maybe_free();
}

static void on_output(AgentLink *l, OutputStream stream, bool tail, const char *data, size_t size, void *userdata) {
        n_output++;
        cr_assert_eq(buffer_printf(&output, "%s%s:%.*s;", stream == OUTPUT_STDOUT ? "out" : "err", tail ? "+" : "",
                                   (int) size, data), 0);
        maybe_free();
}

static size_t value_sizes;

static void on_value(AgentLink *l, AgentValueKind kind, const char *data, size_t size, void *userdata) {
        n_value++;
        value_sizes += size;
        cr_assert_eq(buffer_printf(&output, "%s:%.*s;", agent_value_to_string(kind), (int) MIN(size, (size_t) 8), data),
                     0);
        maybe_free();
}

static void on_result(AgentLink *l, const AgentResult *result, void *userdata) {
        n_result++;
        last = *result;
        (void) snprintf(last_file, sizeof(last_file), "%s", result->output[OUTPUT_STDOUT].file ?: "");
        maybe_free();
}

static void on_operated(AgentLink *l, uint64_t id, const AgentOperated *operated, void *userdata) {
        size_t size;

        n_operated++;
        last_operation = id;
        last_error = operated->error;
        (void) snprintf(last_report, sizeof(last_report), "%s%s", operated->error_text ?: "",
                        operated->report ? json_text(operated->report, &size) : "");
        maybe_free();
}

static uint64_t last_checkpoints[AGENT_CHECKPOINTS_MAX];
static size_t n_checkpoints;

static void on_checkpoints(AgentLink *l, const uint64_t *turns, size_t n, void *userdata) {
        memcpy(last_checkpoints, turns, n * sizeof(*turns));
        n_checkpoints = n;
        maybe_free();
}

/* Nothing follows it: the owner frees the link, as the session does. */
static void on_lost(AgentLink *l, const char *why, void *userdata) {
        n_lost++;
        (void) snprintf(last_why, sizeof(last_why), "%s", why);
        agent = agent_link_free(agent);
}

static const AgentLinkHandlers handlers = {
        .on_hello = on_hello,
        .on_output = on_output,
        .on_value = on_value,
        .on_result = on_result,
        .on_operated = on_operated,
        .on_checkpoints = on_checkpoints,
        .on_lost = on_lost,
};

static void begin(void) {
        int fds[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        n_hello = n_output = n_value = n_result = n_operated = n_lost = 0;
        peer = fds[1];
        cr_assert_eq(agent_link_new(event, fds[0], &handlers, NULL, &agent), 0);
}

static void end(void) {
        agent = agent_link_free(agent);
        peer = safe_close(peer);
        buffer_done(&output);
}

static void setup(void) {
        cr_assert_geq(sd_event_new(&event), 0);
        begin();
}

static void teardown(void) {
        end();
        event = sd_event_unref(event);
}

TestSuite(agent_link, .init = setup, .fini = teardown, .timeout = 30);

static void pump(void) {
        int n = 0, r;

        while ((r = sd_event_run(event, 0)) > 0)
                cr_assert_lt(n++, 10000);
        cr_assert_geq(r, 0);
}

static void say_bytes(const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t n = send(peer, p, size, MSG_NOSIGNAL);

                if (n < 0) {
                        if (errno != EAGAIN)
                                return; /* it hung up, which is what the test wants */
                        pump();
                        continue;
                }
                p += n;
                size -= (size_t) n;
        }
        pump();
}

static void say(uint8_t type, uint64_t turn, const char *payload) {
        _cleanup_(buffer_done) Buffer b = {};

        cr_assert_eq(frame_append(&b, type, turn, payload, strlen(payload)), 0);
        say_bytes(buffer_data(&b), buffer_size(&b));
}

#define HELLO "{\"event\":\"hello\",\"protocol\":3,\"version\":\"x\"}"
#define OUTPUT "{\"bytes\":0,\"omitted\":0,\"dropped\":0,\"file\":null}"
#define RESULT_WITH(code, signal, state, out, more)                                                              \
        "{\"exit_code\":" code ",\"signal\":" signal ",\"timed_out\":false,\"interrupted\":false,\"state\":" state \
        ",\"restarted\":false,\"late\":false,\"stdout\":" out ",\"stderr\":" OUTPUT                              \
        ",\"duration_us\":5,\"error\":null,\"error_text\":null" more "}"
#define RESULT RESULT_WITH("0", "0", "\"kept\"", OUTPUT, "")
#define RESULT_OUT(name, bytes) \
        RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"out\":[{\"name\":\"" name "\",\"bytes\":" bytes "}]")
#define RESULT_FILE(file) \
        RESULT_WITH("0", "0", "\"kept\"", "{\"bytes\":1,\"omitted\":2,\"dropped\":3,\"file\":" file "}", "")

static void run_turn(uint64_t turn) {
        cr_assert_eq(agent_link_execute(agent, &(AgentRequest) { .turn = turn, .interpreter = INTERPRETER_BASH,
                                        .timeout_usec = 1500000, .origin = "created", .tag = turn == 7 ? "t-1" : NULL,
                                        .code = "echo", .size = 4 }), 0);
}

static void begin_turn(void) {
        say(AGENT_FRAME_EVENT, 0, HELLO);
        cr_assert_eq(n_hello, 1);
        run_turn(1);
}

Test(agent_link, request) {
        static const char expected[] = "{\"type\":\"execute\",\"interpreter\":\"bash\",\"timeout_ms\":1500,"
                                       "\"origin\":\"created\",\"tag\":\"t-1\"}\0echo";
        char data[256];
        Frame f;

        run_turn(7);
        _cleanup_(buffer_done) Buffer b = {};
        ssize_t n = read(peer, data, sizeof(data));
        cr_assert_gt(n, 0);
        cr_assert_eq(buffer_append(&b, data, (size_t) n), 0);
        cr_assert_eq(frame_peek(&b, 1000, &f), 1);
        cr_assert_eq(f.type, AGENT_FRAME_REQUEST);
        cr_assert_eq(f.turn, 7);
        cr_assert_eq(f.size, sizeof(expected) - 1);
        cr_assert_arr_eq(f.payload, expected, sizeof(expected) - 1);
        buffer_consume(&b, frame_length(&f));

        cr_assert_eq(agent_link_interrupt(agent), 0);
        n = read(peer, data, sizeof(data));
        cr_assert_eq(buffer_append(&b, data, (size_t) n), 0);
        cr_assert_eq(frame_peek(&b, 1000, &f), 1);
        cr_assert_eq(f.type, AGENT_FRAME_INTERRUPT);
        cr_assert_eq(f.turn, 7);
        cr_assert_eq(f.size, 0);
}

Test(agent_link, turns) {
        for (uint64_t turn = 1; turn <= 3; turn++) {
                if (turn == 1)
                        begin_turn();
                else
                        run_turn(turn);
                say(AGENT_FRAME_STDOUT, turn, "a");
                say(AGENT_FRAME_STDERR, turn, "b");
                say(AGENT_FRAME_STDOUT_TAIL, turn, "c");
                say(AGENT_FRAME_STDERR_TAIL, turn, "");
                say(AGENT_FRAME_RESULT, turn, RESULT);
                cr_assert_eq(n_result, turn);
        }
        cr_assert_eq(n_output, 12);
        cr_assert_eq(n_lost, 0);
        cr_assert_eq(memcmp(buffer_data(&output), "out:a;err:b;out+:c;err+:;", 25), 0);
}

Test(agent_link, turn_sent_before_the_hello) {
        run_turn(1);
        say(AGENT_FRAME_EVENT, 0, HELLO);
        say(AGENT_FRAME_RESULT, 1, RESULT);
        cr_assert_eq(n_result, 1);
        cr_assert_eq(n_lost, 0);
}

Test(agent_link, result_members) {
        begin_turn();
        say(AGENT_FRAME_RESULT, 1,
            "{\"exit_code\":255,\"signal\":64,\"timed_out\":true,\"interrupted\":true,\"state\":\"lost\","
            "\"restarted\":true,\"late\":true,\"stdout\":{\"bytes\":1,\"omitted\":2,\"dropped\":3,\"file\":\"/workspace/~x\"},"
            "\"stderr\":" OUTPUT ",\"duration_us\":9,\"error\":\"missing\",\"error_text\":\"t\"}");
        cr_assert_eq(n_result, 1);
        cr_assert_eq(last.exit_code, 255);
        cr_assert_eq(last.signal, 64);
        cr_assert(last.timed_out && last.interrupted && last.lost && last.restarted && last.late);
        cr_assert_eq(last.output[OUTPUT_STDOUT].bytes, 1);
        cr_assert_eq(last.output[OUTPUT_STDOUT].omitted, 2);
        cr_assert_eq(last.output[OUTPUT_STDOUT].dropped, 3);
        cr_assert_eq(last.duration_usec, 9);
        cr_assert_str_eq(last_file, "/workspace/~x");
}

Test(agent_link, full_places) {
        static const char *const places[] = { AGENT_PLACES };

        begin_turn();
        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                _cleanup_free_ char *text = NULL;

                cr_assert_gt(asprintf(&text, RESULT_WITH("1", "0", "\"kept\"", OUTPUT, ",\"full\":\"%s\""), places[i]),
                             0);
                say(AGENT_FRAME_RESULT, i + 1, text);
                cr_assert_str_eq(last.full, places[i]);
                run_turn(i + 2);
        }
        say(AGENT_FRAME_RESULT, ELEMENTSOF(places) + 1, RESULT);
        cr_assert_null(last.full);
        cr_assert_eq(n_lost, 0);
}

static void say_value(uint8_t kind, uint8_t more, const char *data, size_t size) {
        const uint8_t head[] = { kind, more };
        _cleanup_(buffer_done) Buffer payload = {}, b = {};

        cr_assert_eq(buffer_append(&payload, head, sizeof(head)), 0);
        cr_assert_eq(buffer_append(&payload, data, size), 0);
        cr_assert_eq(frame_append(&b, AGENT_FRAME_VALUE, 1, buffer_data(&payload), buffer_size(&payload)), 0);
        say_bytes(buffer_data(&b), buffer_size(&b));
}

Test(agent_link, values) {
        static char large[AGENT_PAYLOAD_MAX - AGENT_VALUE_HEAD_SIZE];

        memset(large, 'x', sizeof(large));
        begin_turn();
        say_value(AGENT_VALUE_RESULT, 0, "1", 1);
        say_value(AGENT_VALUE_PNG, 1, large, sizeof(large));
        say_value(AGENT_VALUE_PNG, 1, large, sizeof(large));
        cr_assert_eq(n_value, 1);
        say_value(AGENT_VALUE_PNG, 0, "", 0);
        say_value(AGENT_VALUE_HTML, 0, "", 0);
        say(AGENT_FRAME_RESULT, 1, RESULT_WITH("0", "0", "\"kept\"", OUTPUT,
                                               ",\"values_dropped\":3,\"out\":[{\"name\":\"a\",\"bytes\":5}],\"out_more\":4"));
        cr_assert_eq(n_lost, 0, "%s", last_why);
        cr_assert_eq(n_value, 3);
        cr_assert_eq(value_sizes, 1 + 2 * sizeof(large));
        cr_assert_eq(memcmp(buffer_data(&output), "result:1;image/png:xxxxxxxx;text/html:;", 39), 0);
        cr_assert(last.values_dropped == 3 && last.n_out == 1 && last.out[0].bytes == 5 && last.out_more == 4);
}

Test(agent_link, value_freed_in_a_callback) {
        begin_turn();
        free_in_callback = true;
        say_value(AGENT_VALUE_PNG, 1, "x", 1);
        say_value(AGENT_VALUE_PNG, 0, "y", 1);
        cr_assert(n_value == 1 && !agent);
}

Test(agent_link, in_single_bytes) {
        _cleanup_(buffer_done) Buffer b = {};

        run_turn(1);
        cr_assert_eq(frame_append(&b, AGENT_FRAME_EVENT, 0, HELLO, strlen(HELLO)), 0);
        cr_assert_eq(frame_append(&b, AGENT_FRAME_STDOUT, 1, "xyz", 3), 0);
        cr_assert_eq(frame_append(&b, AGENT_FRAME_RESULT, 1, RESULT, strlen(RESULT)), 0);
        for (size_t i = 0; i < buffer_size(&b); i++)
                say_bytes(buffer_data(&b) + i, 1);
        cr_assert_eq(n_result, 1);
        cr_assert_eq(n_lost, 0);
}

/* Several frames in one write, and the link freed at the first. */
Test(agent_link, freed_in_a_callback) {
        _cleanup_(buffer_done) Buffer b = {};

        begin_turn();
        free_in_callback = true;
        for (size_t i = 0; i < 3; i++)
                cr_assert_eq(frame_append(&b, AGENT_FRAME_STDOUT, 1, "x", 1), 0);
        say_bytes(buffer_data(&b), buffer_size(&b));
        cr_assert_eq(n_output, 1);
        cr_assert_null(agent);
        cr_assert_eq(n_lost, 0);
}

Test(agent_link, hang_up) {
        begin_turn();
        peer = safe_close(peer);
        pump();
        cr_assert_eq(n_lost, 1);
        cr_assert_str_eq(last_why, "it ended");
}

Test(agent_link, half_frame_and_hang_up) {
        begin_turn();
        say_bytes("\0\0\0\x20\x03", 5);
        peer = safe_close(peer);
        pump();
        cr_assert_eq(n_lost, 1);
        cr_assert_eq(n_output, 0);
}

/* ---- faults: told once, and nothing of it gets through ---- */

static void check_fault(const char *what) {
        pump();
        cr_assert_eq(n_lost, 1, "%s: lost %u times", what, n_lost);
        cr_assert_null(agent);
        cr_assert_eq(n_result, 0, "%s", what);
        say(AGENT_FRAME_RESULT, 1, RESULT);
        cr_assert_eq(n_lost, 1, "%s: again", what);
        end();
        begin();
}

Test(agent_link, malformed_hellos) {
        static const char *const payloads[] = {
                "", "{", "null", "[]", "\"hello\"", "{}", "\xFF",
                "{\"event\":\"hello\"}",
                "{\"event\":\"hello\",\"protocol\":1}",
                "{\"event\":\"bye\",\"protocol\":1,\"version\":\"x\"}",
                "{\"event\":1,\"protocol\":1,\"version\":\"x\"}",
                "{\"event\":\"hello\",\"protocol\":\"1\",\"version\":\"x\"}",
                "{\"event\":\"hello\",\"protocol\":-1,\"version\":\"x\"}",
                "{\"event\":\"hello\",\"protocol\":1.5,\"version\":\"x\"}",
                "{\"event\":\"hello\",\"protocol\":1,\"version\":null}",
                "{\"event\":\"hello\",\"protocol\":1,\"version\":\"x\\u0000\"}",
        };

        for (size_t i = 0; i < ELEMENTSOF(payloads); i++) {
                say(AGENT_FRAME_EVENT, 0, payloads[i]);
                cr_assert_eq(n_hello, 0);
                check_fault(payloads[i]);
        }
}

#define CHECKPOINTS(turns) "{\"event\":\"checkpoints\",\"interpreter\":\"python\",\"turns\":" turns "}"

Test(agent_link, checkpoints) {
        say(AGENT_FRAME_EVENT, 0, HELLO);
        say(AGENT_FRAME_EVENT, 0, CHECKPOINTS("[3,9,10,11]"));
        cr_assert_eq(n_checkpoints, 4);
        cr_assert(last_checkpoints[0] == 3 && last_checkpoints[3] == 11);
        say(AGENT_FRAME_EVENT, 0, CHECKPOINTS("[]"));
        cr_assert_eq(n_checkpoints, 0);
        cr_assert_eq(n_lost, 0);
}

Test(agent_link, malformed_checkpoints) {
        static const char *const payloads[] = {
                HELLO, "", "[]", "{\"event\":\"checkpoints\"}", CHECKPOINTS("3"), CHECKPOINTS("[1,2,3,4,5]"),
                CHECKPOINTS("[-1]"), CHECKPOINTS("[1.5]"), CHECKPOINTS("[\"1\"]"), CHECKPOINTS("[null]"),
                "{\"event\":\"checkpoints\",\"interpreter\":\"bash\",\"turns\":[]}",
        };

        for (size_t i = 0; i < ELEMENTSOF(payloads); i++) {
                say(AGENT_FRAME_EVENT, 0, HELLO);
                say(AGENT_FRAME_EVENT, 0, payloads[i]);
                check_fault(payloads[i]);
        }
}

Test(agent_link, result_that_went_back) {
        begin_turn();
        say(AGENT_FRAME_RESULT, 1, RESULT_WITH("1", "0", "\"rolled_back\"", OUTPUT, ",\"rolled_back_to\":3,\"pipes_gone\":true"));
        cr_assert(last.rolled_back && last.rolled_back_to == 3 && last.pipes_gone && !last.children_gone);
}

Test(agent_link, hello_of_another_protocol) {
        say(AGENT_FRAME_EVENT, 0, "{\"event\":\"hello\",\"protocol\":0,\"version\":\"x\"}");
        cr_assert_not_null(strstr(last_why, "sandbox-agent is too old"));
        check_fault("old");
        say(AGENT_FRAME_EVENT, 0, "{\"event\":\"hello\",\"protocol\":4,\"version\":\"x\"}");
        cr_assert_not_null(strstr(last_why, "sandboxd is too old"));
        check_fault("new");
}

Test(agent_link, two_hellos) {
        begin_turn();
        say(AGENT_FRAME_EVENT, 0, HELLO);
        check_fault("two hellos");
}

Test(agent_link, frames_before_the_hello) {
        for (unsigned type = 0; type < 16; type++) {
                if (type == AGENT_FRAME_EVENT)
                        continue;
                run_turn(1);
                say((uint8_t) type, 1, RESULT);
                check_fault("before the hello");
        }
}

Test(agent_link, frames_of_another_turn) {
        static const uint64_t turns[] = { 0, 2, UINT64_MAX };

        for (unsigned type = AGENT_FRAME_RESULT; type <= AGENT_FRAME_STDERR_TAIL; type++)
                for (size_t i = 0; i < ELEMENTSOF(turns); i++) {
                        begin_turn();
                        say((uint8_t) type, turns[i], RESULT);
                        check_fault("another turn");
                }
}

Test(agent_link, frames_without_a_turn) {
        for (unsigned type = AGENT_FRAME_RESULT; type <= AGENT_FRAME_STDERR_TAIL; type++) {
                say(AGENT_FRAME_EVENT, 0, HELLO);
                say((uint8_t) type, 0, RESULT);
                check_fault("no turn");
        }
}

Test(agent_link, frame_after_the_result) {
        begin_turn();
        say(AGENT_FRAME_RESULT, 1, RESULT);
        cr_assert_eq(n_result, 1);
        say(AGENT_FRAME_STDOUT, 1, "x");
        cr_assert_eq(n_lost, 1);
        cr_assert_eq(n_output, 0);
}

Test(agent_link, unknown_types) {
        static const uint8_t types[] = { 0, AGENT_FRAME_REQUEST, AGENT_FRAME_INTERRUPT, 9, 255 };

        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                begin_turn();
                say(types[i], 1, "");
                check_fault("unknown type");
        }
}

Test(agent_link, malformed_values) {
        static char large[AGENT_PAYLOAD_MAX - AGENT_VALUE_HEAD_SIZE];

        begin_turn();
        say(AGENT_FRAME_VALUE, 1, "x");
        check_fault("short");

        begin_turn();
        say_value(_AGENT_VALUE_MAX, 0, "", 0);
        check_fault("kind");
        begin_turn();
        say_value(255, 0, "", 0);
        check_fault("kind");
        begin_turn();
        say_value(AGENT_VALUE_PNG, 2, "", 0);
        check_fault("more");

        begin_turn();
        say_value(AGENT_VALUE_PNG, 1, "x", 1);
        say_value(AGENT_VALUE_JPEG, 0, "x", 1);
        check_fault("another kind");

        begin_turn();
        for (size_t n = 0; n <= agent_value_max(AGENT_VALUE_PNG); n += sizeof(large))
                say_value(AGENT_VALUE_PNG, 1, large, sizeof(large));
        check_fault("large");

        begin_turn();
        say_value(AGENT_VALUE_PNG, 1, "x", 1);
        say(AGENT_FRAME_RESULT, 1, RESULT);
        check_fault("cut short by the result");
}

Test(agent_link, malformed_results) {
        static const char *const payloads[] = {
                "", "{", "null", "[]", "{}", "{\"exit_code\":0}", "{\"duration_us\":1}", "\xFF", RESULT "x",
                RESULT_WITH("256", "0", "\"kept\"", OUTPUT, ""),
                RESULT_WITH("-1", "0", "\"kept\"", OUTPUT, ""),
                RESULT_WITH("1e99", "0", "\"kept\"", OUTPUT, ""),
                RESULT_WITH("\"0\"", "0", "\"kept\"", OUTPUT, ""),
                RESULT_WITH("null", "0", "\"kept\"", OUTPUT, ""),
                RESULT_WITH("0", "65", "\"kept\"", OUTPUT, ""),
                RESULT_WITH("0", "0", "\"\"", OUTPUT, ""),
                RESULT_WITH("0", "0", "\"Kept\"", OUTPUT, ""),
                RESULT_WITH("0", "0", "true", OUTPUT, ""),
                RESULT_WITH("0", "0", "\"rolled_back\"", OUTPUT, ""),
                RESULT_WITH("0", "0", "\"lost\"", OUTPUT, ",\"obstacle\":\"rain\""),
                RESULT_WITH("0", "0", "\"kept\"", "[]", ""),
                "{\"exit_code\":0}", "{\"duration_us\":5}",
                RESULT_WITH("0", "0", "\"kept\"", "{\"bytes\":0,\"omitted\":-1,\"dropped\":0,\"file\":null}", ""),
                RESULT_WITH("0", "0", "\"kept\"", "{\"bytes\":0,\"omitted\":0,\"dropped\":0,\"file\":null,\"x\":1}", ""),
                RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"x\":1"),
                RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"exit_code\":0"),
                RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"error\":7"),
                RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"full\":\"/etc\""),
                RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"full\":\"\""),
                RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"full\":7"),
                RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"values_dropped\":-1"),
                RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"out\":{}"),
                RESULT_WITH("0", "0", "\"kept\"", OUTPUT, ",\"out\":[7]"),
                RESULT_OUT("", "1"), RESULT_OUT("..", "1"), RESULT_OUT("a/b", "1"), RESULT_OUT("\\n", "1"),
                RESULT_OUT("\\u009b", "1"), RESULT_OUT("\\u202e", "1"), RESULT_OUT("a", "-1"), RESULT_OUT("a", "1,\"x\":1"),
                RESULT_FILE("7"),
                RESULT_FILE("\"\""),
                RESULT_FILE("\"a\\nb\""),
                RESULT_FILE("\"\\u001b[2J\""),
                RESULT_FILE("\"\\u007f\""),
                RESULT_FILE("\"a\\u0000b\""),
                RESULT_FILE("\"\\u009b2J\""), /* one character, and moves a terminal */
                RESULT_FILE("\"\\u202e\""),
        };

        for (size_t i = 0; i < ELEMENTSOF(payloads); i++) {
                begin_turn();
                say(AGENT_FRAME_RESULT, 1, payloads[i]);
                check_fault(payloads[i]);
        }
}

/* What is 0, false, null or "kept" may be left out. */
Test(agent_link, shortest_result) {
        begin_turn();
        say(AGENT_FRAME_RESULT, 1, "{\"exit_code\":3,\"duration_us\":9,\"stderr\":{\"bytes\":4}}");
        cr_assert_eq(n_result, 1);
        cr_assert(last.exit_code == 3 && last.duration_usec == 9 && !last.lost && !last.timed_out && !last.error);
        cr_assert(last.output[OUTPUT_STDOUT].bytes == 0 && last.output[OUTPUT_STDERR].bytes == 4);
}

Test(agent_link, long_file_name) {
        char name[300], payload[1024];

        for (size_t n = 256; n <= 257; n++) {
                memset(name, 'x', n);
                name[n] = 0;
                (void) snprintf(payload, sizeof(payload),
                                RESULT_WITH("0", "0", "\"kept\"",
                                            "{\"bytes\":1,\"omitted\":2,\"dropped\":3,\"file\":\"%s\"}", ""),
                                name);
                begin_turn();
                say(AGENT_FRAME_RESULT, 1, payload);
                if (n > 256)
                        check_fault("long name");
                else {
                        cr_assert_eq(n_result, 1);
                        end();
                        begin();
                }
        }
}

Test(agent_link, lengths) {
        static const struct {
                uint32_t length;
                bool fault;
        } table[] = {
                { 0, true }, { 8, true }, { AGENT_PAYLOAD_MAX + 9, false }, { AGENT_PAYLOAD_MAX + 10, true },
                { UINT32_MAX, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                const uint8_t header[] = {
                        (uint8_t) (table[i].length >> 24), (uint8_t) (table[i].length >> 16),
                        (uint8_t) (table[i].length >> 8), (uint8_t) table[i].length,
                };

                begin_turn();
                say_bytes(header, sizeof(header));
                if (table[i].fault)
                        check_fault("length");
                else {
                        cr_assert_eq(n_lost, 0);
                        end();
                        begin();
                }
        }
}

Test(agent_link, largest_frame) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_free_ char *data = malloc(AGENT_PAYLOAD_MAX);

        memset(data, 'x', AGENT_PAYLOAD_MAX);
        begin_turn();
        cr_assert_eq(frame_append(&b, AGENT_FRAME_STDOUT, 1, data, AGENT_PAYLOAD_MAX), 0);
        say_bytes(buffer_data(&b), buffer_size(&b));
        cr_assert_eq(n_output, 1);
        cr_assert_eq(n_lost, 0);
}

/* Bytes from a generator of our own, so that a failure comes again. */
Test(agent_link, garbage) {
        uint32_t seed = 1;

        for (int round = 0; round < 200; round++) {
                char data[64];

                for (size_t i = 0; i < sizeof(data); i++) {
                        seed = seed * 1664525 + 1013904223;
                        data[i] = (char) (seed >> 24);
                }
                data[0] = data[1] = 0; /* a length that may be believed */
                if (round % 2)
                        data[2] = 0;
                begin_turn();
                say_bytes(data, sizeof(data));
                peer = safe_close(peer);
                pump();
                cr_assert_eq(n_lost, 1);
                end();
                begin();
        }
}

/* ---- taking over ---- */

#define REQUEST_OF(interpreter, tag) \
        "{\"type\":\"execute\",\"interpreter\":" interpreter ",\"timeout_ms\":1500,\"origin\":\"created\",\"tag\":" tag "}"
#define HELLO_AGAIN(members) "{\"event\":\"hello\",\"protocol\":3,\"version\":\"x\"" members "}"
#define HELLO_TURN(turn, running) \
        HELLO_AGAIN(",\"turn\":" turn ",\"running\":" running ",\"total_us\":8,\"age_us\":9,\"request\":" \
                    REQUEST_OF("\"node\"", "\"t-1\""))

static uint8_t nonce[AGENT_NONCE_SIZE];

/* Sends the ATTACH and takes the nonce out of it. */
static void attach(void) {
        char data[256];
        uint8_t header[FRAME_HEADER_SIZE];

        cr_assert_eq(agent_link_attach(agent), 0);
        cr_assert_eq(read(peer, data, sizeof(data)), AGENT_ATTACH_SIZE);
        frame_encode_header(header, AGENT_FRAME_ATTACH, AGENT_ATTACH_TURN, AGENT_NONCE_SIZE);
        cr_assert_eq(memcmp(data, header, sizeof(header)), 0);
        memcpy(nonce, data + FRAME_HEADER_SIZE, sizeof(nonce));
}

static void attached(void) {
        attach();
        say_bytes(nonce, sizeof(nonce));
}

Test(agent_link, attach_ignores_what_came_before) {
        attach();
        say_bytes("half a frame, and then", 22);
        say(AGENT_FRAME_EVENT, 0, HELLO);
        say(AGENT_FRAME_RESULT, 3, RESULT);
        say_bytes(nonce, sizeof(nonce) - 1); /* and not quite it */
        say_bytes("x", 1);
        cr_assert(n_hello == 0 && n_result == 0 && n_lost == 0);
        for (size_t i = 0; i < sizeof(nonce); i++)
                say_bytes(nonce + i, 1);
        say(AGENT_FRAME_EVENT, 0, HELLO_TURN("3", "true"));
        cr_assert(n_hello == 1 && n_lost == 0);
        cr_assert(last_hello.turn == 3 && last_hello.running && last_hello.total_usec == 8 && last_hello.age_usec == 9);
        cr_assert(last_hello.interpreter == INTERPRETER_NODE && last_hello.timeout_usec == 1500000);

        say(AGENT_FRAME_STDOUT, 3, "x");
        say(AGENT_FRAME_RESULT, 3, RESULT);
        cr_assert(n_output == 1 && n_result == 1 && n_lost == 0);
        run_turn(4);
        say(AGENT_FRAME_RESULT, 4, RESULT);
        cr_assert_eq(n_result, 2);
}

Test(agent_link, attach_in_one_piece) {
        _cleanup_(buffer_done) Buffer b = {};

        attach();
        cr_assert_eq(buffer_append(&b, "garbage", 7), 0);
        cr_assert_eq(buffer_append(&b, nonce, sizeof(nonce)), 0);
        cr_assert_eq(frame_append(&b, AGENT_FRAME_EVENT, 0, HELLO_TURN("3", "false"), strlen(HELLO_TURN("3", "false"))), 0);
        cr_assert_eq(frame_append(&b, AGENT_FRAME_RESULT, 3, RESULT, strlen(RESULT)), 0);
        say_bytes(buffer_data(&b), buffer_size(&b));
        cr_assert(n_hello == 1 && n_result == 1 && n_lost == 0);
}

Test(agent_link, attach_to_one_that_has_run_nothing) {
        attached();
        say(AGENT_FRAME_EVENT, 0, HELLO_AGAIN(",\"turn\":0,\"running\":false,\"total_us\":0,\"age_us\":0"));
        cr_assert(n_hello == 1 && last_hello.turn == 0 && n_lost == 0);
        run_turn(1);
        say(AGENT_FRAME_RESULT, 1, RESULT);
        cr_assert_eq(n_result, 1);
}

Test(agent_link, attach_to_garbage) {
        static const char *const hellos[] = {
                HELLO, HELLO_TURN("-1", "true"), HELLO_TURN("9223372036854775808", "true"), HELLO_TURN("3", "1"),
                HELLO_TURN("0", "true"), HELLO_TURN("\"3\"", "true"),
                HELLO_AGAIN(",\"turn\":3,\"running\":true,\"total_us\":0,\"age_us\":0"),
                HELLO_AGAIN(",\"turn\":3,\"running\":true,\"total_us\":0,\"age_us\":0,\"request\":"
                            REQUEST_OF("\"perl\"", "null")),
                HELLO_AGAIN(",\"turn\":3,\"running\":true,\"total_us\":0,\"age_us\":0,\"request\":{}"),
        };

        for (size_t i = 0; i < ELEMENTSOF(hellos); i++) {
                attached();
                say(AGENT_FRAME_EVENT, 0, hellos[i]);
                cr_assert_eq(n_hello, 0, "%s", hellos[i]);
                check_fault(hellos[i]);
        }

        attached();
        say(AGENT_FRAME_RESULT, 3, RESULT);
        check_fault("a result before the hello");
        attached();
        say(AGENT_FRAME_EVENT, 0, HELLO_TURN("3", "true"));
        say(AGENT_FRAME_STDOUT, 4, "x");
        cr_assert_eq(n_output, 0);
        check_fault("another turn");
}

Test(agent_link, attach_does_not_read_for_ever) {
        static const char junk[64 * KIB];

        attach();
        for (size_t i = 0; i < 16 * MIB / sizeof(junk) + 2 && n_lost == 0; i++)
                say_bytes(junk, sizeof(junk));
        check_fault("endless");
}

/* A tag that is none is nobody's. */
Test(agent_link, attach_with_an_odd_tag) {
        attached();
        say(AGENT_FRAME_EVENT, 0,
            HELLO_AGAIN(",\"turn\":3,\"running\":true,\"total_us\":0,\"age_us\":0,\"request\":"
                        REQUEST_OF("\"bash\"", "\"../x\"")));
        cr_assert(n_hello == 1 && !last_hello.tag);
}

/* ---- operations ---- */

static void operate(uint64_t id) {
        _cleanup_json_ json_object *request = json_object_new_object();

        cr_assert_eq(json_put_string(request, "operation", "get"), 0);
        cr_assert_eq(agent_link_operate(agent, id, request, open("/dev/null", O_RDONLY | O_CLOEXEC)), 0);
}

static void begin_operation(void) {
        say(AGENT_FRAME_EVENT, 0, HELLO);
        operate(1);
}

#define OPERATED(error, text, report) "{\"error\":" error ",\"error_text\":" text ",\"report\":" report "}"

Test(agent_link, operation_with_its_descriptor) {
        static const char expected[] = "{\"operation\":\"get\"}";
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        char data[128];
        struct iovec part = { data, sizeof(data) };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
        };
        _cleanup_(buffer_done) Buffer b = {};
        Frame f;

        begin_operation();
        ssize_t n = recvmsg(peer, &message, MSG_CMSG_CLOEXEC);
        cr_assert_gt(n, 0);
        cr_assert_eq(buffer_append(&b, data, (size_t) n), 0);
        cr_assert_eq(frame_peek(&b, 1000, &f), 1);
        cr_assert_eq(f.type, AGENT_FRAME_OPERATE);
        cr_assert_eq(f.turn, 1);
        cr_assert_eq(f.size, sizeof(expected) - 1);
        cr_assert_arr_eq(f.payload, expected, sizeof(expected) - 1);
        cr_assert_not_null(CMSG_FIRSTHDR(&message));
        cr_assert_eq(CMSG_FIRSTHDR(&message)->cmsg_type, SCM_RIGHTS);
}

Test(agent_link, operations_beside_turns) {
        begin_turn();
        for (uint64_t id = 1; id <= 3; id++) {
                operate(id);
                say(AGENT_FRAME_STDOUT, 1, "a");
                say(AGENT_FRAME_OPERATED, id, OPERATED("null", "null", "{\"size\":1}"));
                cr_assert_eq(n_operated, id);
                cr_assert_eq(last_operation, id);
                cr_assert_null(last_error);
                cr_assert_str_eq(last_report, "{\"size\":1}");
        }
        operate(4);
        say(AGENT_FRAME_OPERATED, 4, OPERATED("\"no-file\"", "\"t\"", "null"));
        cr_assert_str_eq(last_error, "no-file");
        cr_assert_str_eq(last_report, "t");
        say(AGENT_FRAME_RESULT, 1, RESULT);
        cr_assert_eq(n_result, 1);
        cr_assert_eq(n_lost, 0);
}

/* Of one that was given up it is ignored, whatever it says, and once. */
Test(agent_link, late_answers) {
        begin_operation();
        agent_link_forget_operation(agent);
        operate(2);
        say(AGENT_FRAME_OPERATED, 1, "garbage");
        cr_assert_eq(n_operated, 0);
        say(AGENT_FRAME_OPERATED, 2, OPERATED("null", "null", "null"));
        cr_assert_eq(n_operated, 1);
        cr_assert_eq(n_lost, 0);
        say(AGENT_FRAME_OPERATED, 1, "garbage");
        cr_assert_eq(n_lost, 1);
}

Test(agent_link, answers_to_nothing) {
        say(AGENT_FRAME_OPERATED, 1, OPERATED("null", "null", "null"));
        cr_assert_eq(n_lost, 1);
        end();

        begin();
        begin_operation();
        say(AGENT_FRAME_OPERATED, 1, OPERATED("null", "null", "null"));
        say(AGENT_FRAME_OPERATED, 1, OPERATED("null", "null", "null"));
        cr_assert_eq(n_operated, 1);
        cr_assert_eq(n_lost, 1);
        end();

        begin();
        begin_operation();
        say(AGENT_FRAME_OPERATED, 0, OPERATED("null", "null", "null"));
        say(AGENT_FRAME_OPERATED, 0, OPERATED("null", "null", "null"));
        cr_assert_eq(n_operated, 0);
        cr_assert_eq(n_lost, 1);
}

Test(agent_link, hostile_answers) {
        static const char *const answers[] = {
                "", "{", "[]", "null", "{\"error\":1}", "{\"error\":\"ended\"}", "{\"error\":\"\"}",
                "{\"report\":[]}", "{\"report\":1}", "{\"error_text\":{}}", "{\"unknown\":1}",
                "{\"error\":\"io\",\"report\":{}}", "{\"error_text\":\"a\\u0000b\"}", "{\"error_text\":\"\xff\"}",
        };

        for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
                begin_operation();
                say(AGENT_FRAME_OPERATED, 1, answers[i]);
                cr_assert_eq(n_lost, 1, "%s", answers[i]);
                cr_assert_eq(n_operated, 0);
                end();
                begin();
        }

        _cleanup_free_ char *big = calloc(1, AGENT_OPERATED_MAX + 2);
        memset(big, ' ', AGENT_OPERATED_MAX + 1);
        memcpy(big, "{}", 2);
        begin_operation();
        say(AGENT_FRAME_OPERATED, 1, big);
        cr_assert_eq(n_lost, 1);
}

Test(agent_link, freed_when_operated) {
        begin_operation();
        free_in_callback = true;
        say(AGENT_FRAME_OPERATED, 1, OPERATED("null", "null", "null"));
        cr_assert_eq(n_operated, 1);
        cr_assert_null(agent);
}

Test(agent_link, request_of_an_operation_is_capped) {
        _cleanup_json_ json_object *request = json_object_new_object();
        _cleanup_free_ char *path = calloc(1, AGENT_OPERATE_MAX + 1);

        memset(path, 'x', AGENT_OPERATE_MAX);
        say(AGENT_FRAME_EVENT, 0, HELLO);
        cr_assert_eq(json_put_string(request, "path", path), 0);
        cr_assert_eq(agent_link_operate(agent, 1, request, -EBADF), -EMSGSIZE);
        operate(2);
        say(AGENT_FRAME_OPERATED, 2, OPERATED("null", "null", "null"));
        cr_assert_eq(n_operated, 1);
}
