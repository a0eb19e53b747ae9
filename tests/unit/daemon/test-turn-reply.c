/* SPDX-License-Identifier: MIT */

#include <signal.h>

#include <criterion/criterion.h>

#include "daemon/turn-reply.h"

static TurnContext context;
static Turn *turn;

static void make(SessionOrigin origin) {
        turn = turn_free(turn);
        cr_assert_eq(turn_new(&context, INTERPRETER_PYTHON, origin, 2500000, "x", 1, &turn), 0);
        turn->number = 7;
}

static void setup(void) {
        context = (TurnContext) {
                .session_id = "0123456789ab",
                .session_name = "work",
                .environment = "default",
        };
        make(SESSION_ORIGIN_RESUMED);
}

static void teardown(void) {
        turn = turn_free(turn);
}

TestSuite(turn_reply, .init = setup, .fini = teardown, .timeout = 10);

static json_object *reply(void) {
        _cleanup_(buffer_done) Buffer b = {};
        json_object *o = NULL;

        cr_assert_eq(turn_reply_append(turn, &b), 0);
        cr_assert_eq(json_parse(buffer_data(&b), buffer_size(&b), &o, NULL), 0, "%.*s", (int) buffer_size(&b),
                     buffer_data(&b));
        return o;
}

static void check_reply(const char *expected) {
        _cleanup_json_ json_object *o = reply();

        cr_assert_str_eq(json_text(o, NULL), expected);
}

static void check_notice(const char *expected) {
        cr_assert_eq(buffer_size(&turn->notice), strlen(expected), "%.*s", (int) buffer_size(&turn->notice),
                     buffer_data(&turn->notice));
        cr_assert_arr_eq(buffer_data(&turn->notice), expected, strlen(expected), "%.*s",
                         (int) buffer_size(&turn->notice), buffer_data(&turn->notice));
}

static void check_member(const char *key, const char *expected) {
        _cleanup_json_ json_object *o = reply();
        json_object *value = NULL;

        cr_assert(json_object_object_get_ex(o, key, &value));
        cr_assert(streq_ptr(json_object_get_string(value), expected), "%s: %s", key, json_object_get_string(value));
}

static void take(const AgentResult *result) {
        cr_assert_eq(turn_take_result(turn, result), 0);
        cr_assert(turn->finished);
}

Test(turn_reply, finished) {
        cr_assert_eq(turn_take_output(turn, OUTPUT_STDOUT, false, "out\n", 4), 0);
        cr_assert_eq(turn_take_output(turn, OUTPUT_STDERR, false, "e\0\xFF", 3), 0);
        take(&(AgentResult) { .exit_code = 3, .duration_usec = 12345 });
        check_reply("{\"session\":\"work\",\"id\":\"0123456789ab\",\"environment\":\"default\","
                    "\"interpreter\":\"python\",\"turn\":7,\"stdout\":\"out\\n\",\"stderr\":\"e\\u0000\uFFFD\","
                    "\"exit_code\":3,\"signal\":null,\"timed_out\":false,\"duration_ms\":12.345,\"state\":\"kept\","
                    "\"session_state\":\"resumed\",\"truncated\":{\"stdout\":0,\"stderr\":0},"
                    "\"files\":{\"stdout\":null,\"stderr\":null},\"images\":0,\"pictures\":[],"
                    "\"result\":null,\"outputs\":[],\"notice\":null}");
}

Test(turn_reply, ephemeral) {
        context.session_name = NULL;
        make(SESSION_ORIGIN_EPHEMERAL);
        take(&(AgentResult) { .lost = true });
        check_member("session", NULL);
        check_member("state", "none");
        check_member("session_state", "ephemeral");
}

Test(turn_reply, still_running) {
        cr_assert_eq(turn_take_output(turn, OUTPUT_STDOUT, false, "so far", 6), 0);
        check_member("exit_code", NULL);
        check_member("stdout", "so far");
        check_member("duration_ms", "0.000");
        turn->started = 1;
        _cleanup_json_ json_object *o = reply();
        cr_assert_gt(json_object_get_double(json_object_object_get(o, "duration_ms")), 0);
}

Test(turn_reply, origin_and_state) {
        make(SESSION_ORIGIN_CREATED);
        take(&(AgentResult) { .lost = true, .exit_code = 1 });
        check_member("session_state", "created");
        check_member("state", "lost");
}

Test(turn_reply, signals) {
        take(&(AgentResult) { .exit_code = 128 + SIGSEGV, .signal = SIGSEGV, .lost = true });
        check_member("signal", "SIGSEGV");
        check_notice("python was ended by SIGSEGV. Its variables and imports are lost, files in /workspace are "
                     "kept; the next turn starts a new one.");
}

Test(turn_reply, signal_without_a_name) {
        take(&(AgentResult) { .exit_code = 190, .signal = 62, .lost = true });
        json_object_put(reply());
        cr_assert_gt(buffer_size(&turn->notice), 0);
}

Test(turn_reply, timed_out) {
        take(&(AgentResult) { .exit_code = 124, .timed_out = true });
        check_notice("Timed out after 2.5 s and was interrupted. State was kept. Ask for a longer timeout, or start "
                     "long work in the background and look at it in a later turn.");
        check_member("timed_out", "true");
}

Test(turn_reply, timed_out_and_lost) {
        take(&(AgentResult) { .exit_code = 124, .timed_out = true, .lost = true });
        check_notice("Timed out after 2.5 s; it ignored the interrupt, so the interpreter was killed. Its variables "
                     "and imports are lost, files in /workspace are kept; the next turn starts a new one. Ask for a "
                     "longer timeout, or start long work in the background and look at it in a later turn.");
}

/* Of a sandbox that is thrown away nothing is kept and nothing can be lost. */
Test(turn_reply, timed_out_ephemeral) {
        make(SESSION_ORIGIN_EPHEMERAL);
        take(&(AgentResult) { .exit_code = 124, .timed_out = true });
        check_notice("Timed out after 2.5 s and was interrupted. Ask for a longer timeout, or start long work in the "
                     "background and look at it in a later turn.");
}

Test(turn_reply, interrupted) {
        take(&(AgentResult) { .exit_code = 130, .interrupted = true });
        check_notice("Interrupted on request. State was kept.");
}

Test(turn_reply, exited) {
        take(&(AgentResult) { .exit_code = 5, .lost = true });
        check_notice("python ended with code 5. Its variables and imports are lost, files in /workspace are kept; "
                     "the next turn starts a new one.");
}

Test(turn_reply, rolled_back) {
        take(&(AgentResult) { .exit_code = 139, .signal = SIGSEGV, .rolled_back = true, .rolled_back_to = 4,
                              .pipes_gone = true, .children_gone = true, .threads_gone = true });
        check_member("state", "rolled_back");
        check_notice("python was ended by SIGSEGV.\n"
                     "The state is that after turn 4 again. Files that were written since, and processes that were "
                     "started, stay as they are.\n"
                     "Pipes and sockets that were open then are closed.\n"
                     "Processes that it had started can no longer be waited for: poll() of one says 0.\n"
                     "Its threads are gone; a lock that one of them held is never released.");
}

Test(turn_reply, begun_with_an_older_state) {
        take(&(AgentResult) { .restarted = true, .rolled_back_to = 4 });
        check_member("state", "rolled_back");
        check_notice("python had ended since its last turn: this turn began with the state after turn 4.");
}

Test(turn_reply, no_checkpoint) {
        take(&(AgentResult) { .exit_code = 5, .lost = true, .obstacle = "threads" });
        check_notice("python ended with code 5. Its variables and imports are lost, files in /workspace are kept; "
                     "the next turn starts a new one.\n"
                     "There was no checkpoint to go back to: threads were running.");
}

Test(turn_reply, restarted_and_late) {
        take(&(AgentResult) { .restarted = true, .late = true });
        check_notice("A new python was started for this turn, because the last one had ended.\n"
                     "The output begins with what background processes wrote after the last turn.");
}

Test(turn_reply, long_output) {
        cr_assert_eq(turn_take_output(turn, OUTPUT_STDOUT, false, "head", 4), 0);
        cr_assert_eq(turn_take_output(turn, OUTPUT_STDOUT, true, "tail", 4), 0);
        take(&(AgentResult) { .output[OUTPUT_STDOUT] = { .bytes = 1000, .omitted = 992, .file = "/workspace/f" } });
        check_member("stdout", "head\n[… 992 bytes omitted …]\ntail");
        check_member("truncated", "{ \"stdout\": 992, \"stderr\": 0 }");
        check_member("files", "{ \"stdout\": \"\\/workspace\\/f\", \"stderr\": null }");
        check_notice("stdout was long: its start and end are shown, 992 bytes between them left out; read "
                     "/workspace/f for more.");
}

Test(turn_reply, long_output_without_a_file) {
        make(SESSION_ORIGIN_EPHEMERAL);
        take(&(AgentResult) { .output[OUTPUT_STDERR] = { .bytes = 9, .omitted = 1, .file = "/workspace/f" } });
        check_member("files", "{ \"stdout\": null, \"stderr\": null }");
        check_notice("stderr was long: its start and end are shown, 1 bytes between them left out.");
}

/* A character that the gap cuts is not put together from two strange halves. */
Test(turn_reply, gap_inside_a_character) {
        cr_assert_eq(turn_take_output(turn, OUTPUT_STDOUT, false, "a\xC3", 2), 0);
        cr_assert_eq(turn_take_output(turn, OUTPUT_STDOUT, true, "\xBC" "b", 2), 0);
        take(&(AgentResult) { .output[OUTPUT_STDOUT] = { .bytes = 9, .omitted = 5 } });
        check_member("stdout", "a\uFFFD\n[… 5 bytes omitted …]\n\uFFFD" "b");
}

Test(turn_reply, head_and_tail_meet_inside_a_character) {
        cr_assert_eq(turn_take_output(turn, OUTPUT_STDOUT, false, "a\xC3", 2), 0);
        cr_assert_eq(turn_take_output(turn, OUTPUT_STDOUT, true, "\xBC" "b", 2), 0);
        take(&(AgentResult) { .output[OUTPUT_STDOUT] = { .bytes = 4 } });
        check_member("stdout", "aüb");
        check_notice("");
}

Test(turn_reply, dropped) {
        take(&(AgentResult) { .output[OUTPUT_STDOUT] = { .dropped = 12 } });
        check_notice("12 bytes that background processes wrote to stdout between turns were dropped.");
}

Test(turn_reply, more_output_than_an_agent_may_send) {
        _cleanup_free_ char *data = calloc(1, OUTPUT_HEAD_MAX);
        int r = 0, n = 0;

        while (r == 0 && n++ < 100)
                r = turn_take_output(turn, OUTPUT_STDOUT, false, data, OUTPUT_HEAD_MAX);
        cr_assert_eq(r, -EBADMSG);
}

Test(turn_reply, limits) {
        const Limits limits = { .memory_mb = 512, .processes = 64, .cpus = 0.5 };

        turn->full = "/workspace";
        for (TurnHit h = 0; h < _TURN_HIT_MAX; h++)
                cr_assert_eq(turn_describe_hit(turn, &limits, /* workspace_mb= */ 256, h), 0);
        check_notice("Memory limit 512 MB reached: a process was killed. Use less memory at once, or give the session "
                     "more ('sandboxctl set').\n"
                     "Out of memory: a process was killed, because all your sessions together, or the machine, reached "
                     "their limit. End sessions that are not needed.\n"
                     "Process limit 64 reached: starting a process or thread failed.\n"
                     "CPU limit 0.5 reached: the turn was held back for a good part of its time.\n"
                     "Disk limit 256 MB of /workspace reached: writing fails. Delete files there, or write less.");
}

Test(turn_reply, full_place_of_unknown_size) {
        const Limits limits = {};

        take(&(AgentResult) { .full = "/dev/shm" });
        cr_assert_eq(turn_describe_hit(turn, &limits, /* workspace_mb= */ 256, TURN_HIT_DISK), 0);
        check_notice("Disk limit of /dev/shm reached: writing fails. Delete files there, or use /workspace.");
}

Test(turn_reply, streamed_output) {
        _cleanup_json_ json_object *o = NULL;

        cr_assert_eq(turn_output_to_json(OUTPUT_STDERR, "a\0b", 3, &o), 0);
        cr_assert_str_eq(json_text(o, NULL), "{\"output\":{\"stream\":\"stderr\",\"text\":\"a\\u0000b\"}}");
}
