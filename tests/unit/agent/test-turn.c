/* SPDX-License-Identifier: MIT */

/*
 * A Turn with an interpreter that is a process of our own making: its driver is this test, at the other end
 * of its socket. Time passes by setting the deadline; what needs real programs is in tests/integration.
 */

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/turn.h"
#include "lib/fd-util.h"
#include "lib/frame.h"
#include "lib/json.h"

static SpoolDirectory spools;
static Interpreter interpreters[INTERPRETERS_MAX];
static Interpreter *python;
static Buffer frames;
static Turn turn;
static int driver = -EBADF;             /* the driver's end of the control socket */
static int fake_pid;
static pid_t made[8];
static size_t n_made;

/* A process that does nothing, in a session of its own, which SIGINT does not end. */
static pid_t make_process(void) {
        int ready[2];
        pid_t pid;
        char c;

        cr_assert_eq(pipe(ready), 0);
        pid = fork();
        if (pid == 0) {
                (void) setsid();
                (void) signal(SIGINT, SIG_IGN);
                (void) !write(ready[1], "", 1);
                for (;;)
                        (void) pause();
        }
        cr_assert_eq(read(ready[0], &c, 1), 1);
        cr_assert_lt(n_made, ELEMENTSOF(made));
        made[n_made++] = pid;
        (void) close(ready[0]);
        (void) close(ready[1]);
        return pid;
}

static void setup(void) {
        int control[2];

        interpreters_init(interpreters, &spools);
        turn_init(&turn, interpreters, &frames);
        python = interpreter_find(interpreters, "python");

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
        python->control = control[0];
        driver = control[1];
        for (size_t i = 0; i < _INTERPRETER_STREAM_MAX; i++) {
                int fds[2];

                cr_assert_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
                python->pipes[i].read_fd = fds[0];
                python->pipes[i].write_fd = fds[1];
        }
        python->pid = fake_pid = make_process();
        python->ready = true;
}

static void teardown(void) {
        for (size_t i = 0; i < n_made; i++) {
                (void) kill(made[i], SIGKILL);
                (void) waitpid(made[i], NULL, 0);
        }
}

TestSuite(turn, .init = setup, .fini = teardown, .timeout = 20);

static void begin(void) {
        static const char payload[] =
                "{\"type\":\"execute\",\"interpreter\":\"python\",\"timeout_ms\":60000}\0x = 1";

        cr_assert_eq(turn_begin(&turn, 5, payload, sizeof(payload) - 1), 0);
}

static void say(const char *text) {
        cr_assert_eq(write_full(driver, text, strlen(text)), 0);
        cr_assert_eq(turn_on_control(&turn, python), 0);
}

static void say_done(const char *token, const char *rest) {
        char line[64];

        (void) snprintf(line, sizeof(line), "done %s %s\n", token, rest);
        say(line);
}

static void die(int status) {
        cr_assert_eq(turn_on_death(&turn, fake_pid, status), 0);
}

/* Time passes until the stage's deadline. */
static void expire(TurnStage expected) {
        cr_assert_eq(turn.stage, expected);
        cr_assert_lt(turn_deadline(&turn), USEC_INFINITY);
        cr_assert_eq(turn_on_deadline(&turn), 0);
}

/* The RESULT of turn 5, which must be the last frame. */
static json_object *result(void) {
        json_object *o = NULL;
        Frame f;

        cr_assert_eq(turn.stage, TURN_IDLE);
        cr_assert_eq(turn_deadline(&turn), USEC_INFINITY);
        while (frame_peek(&frames, AGENT_PAYLOAD_MAX, &f) > 0) {
                cr_assert_null(o);
                cr_assert_eq(f.turn, 5);
                if (f.type == AGENT_FRAME_RESULT)
                        cr_assert_eq(json_parse(f.payload, f.size, &o, NULL), 0);
                buffer_consume(&frames, frame_length(&f));
        }
        cr_assert_not_null(o);
        return o;
}

static json_object *member(json_object *o, const char *key) {
        return json_object_object_get(o, key);
}

static void assert_result(const char *expected) {
        _cleanup_json_ json_object *o = result();
        _cleanup_free_ char *text = NULL;

        cr_assert_gt(asprintf(&text, "%d signal %d%s%s %s %s", json_object_get_int(member(o, "exit_code")),
                              json_object_get_int(member(o, "signal")),
                              json_object_get_boolean(member(o, "timed_out")) ? " timed_out" : "",
                              json_object_get_boolean(member(o, "interrupted")) ? " interrupted" : "",
                              json_object_get_string(member(o, "state")) ?: "kept",
                              json_object_get_string(member(o, "error")) ?: "fine"), 0);
        cr_assert_str_eq(text, expected);
}

Test(turn, request_reaches_the_driver) {
        char text[128] = "", expected[128];

        begin();
        cr_assert_gt(recv(driver, text, sizeof(text) - 1, 0), 0);
        (void) snprintf(expected, sizeof(expected), "execute %s 5\nx = 1", turn.token);
        cr_assert_str_eq(text, expected);
        cr_assert_eq(strlen(turn.token), DRIVER_TOKEN_LENGTH);
}

Test(turn, report_ends_it) {
        begin();
        say_done(turn.token, "3 kept");
        assert_result("3 signal 0 kept fine");
}

Test(turn, report_with_another_token_does_not) {
        begin();
        say_done("0123456789abcdef", "3 kept");
        cr_assert_eq(turn.stage, TURN_RUNNING);
}

Test(turn, report_when_idle_does_nothing) {
        begin();
        say_done(turn.token, "3 kept");
        assert_result("3 signal 0 kept fine");
        say_done(turn.token, "4 lost");
        cr_assert_eq(buffer_size(&frames), 0);
        cr_assert_not(python->killed);
}

Test(turn, output_up_to_the_report_is_its) {
        _cleanup_json_ json_object *o = NULL;
        Frame f;

        begin();
        cr_assert_eq(write(python->pipes[INTERPRETER_STDERR].write_fd, "text", 4), 4);
        say_done(turn.token, "0 kept");
        cr_assert_eq(frame_peek(&frames, AGENT_PAYLOAD_MAX, &f), 1);
        cr_assert(f.type == AGENT_FRAME_STDERR && f.size == 4);
        o = result();
        cr_assert_eq(json_object_get_int(member(member(o, "stderr"), "bytes")), 4);
}

/* ---- checkpoints ---- */

static void begin_with_checkpoints(void) {
        static const char payload[] = "{\"type\":\"execute\",\"interpreter\":\"python\",\"timeout_ms\":60000,"
                                      "\"checkpoints\":\"always\",\"checkpoint_mb\":1000}\0x = 1";
        char text[256];

        cr_assert_eq(turn_begin(&turn, 5, payload, sizeof(payload) - 1), 0);
        cr_assert_gt(recv(driver, text, sizeof(text), 0), 0);
}

/* As the driver names a copy, here a child of this test. The driver's end of the copy's channel, and its pid. */
static int park(const char *token, pid_t *ret_pid) {
        union {
                char space[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } rights = {};
        char line[64];
        struct iovec iov = { .iov_base = line };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &rights,
                .msg_controllen = sizeof(rights.space),
        };
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        int channel[2];

        *ret_pid = make_process();
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel), 0);
        iov.iov_len = (size_t) snprintf(line, sizeof(line), "parked %s %d\n", token, (int) *ret_pid);
        *c = (struct cmsghdr) { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
        memcpy(CMSG_DATA(c), &channel[0], sizeof(int));
        cr_assert_gt(sendmsg(driver, &message, 0), 0);
        (void) close(channel[0]);
        cr_assert_eq(turn_on_control(&turn, python), 0);
        return channel[1];
}

static void finish_with_checkpoint(int *ret_channel, pid_t *ret_pid) {
        begin_with_checkpoints();
        say_done(turn.token, "0 kept");
        assert_result("0 signal 0 kept fine");
        cr_assert(python->checkpoints.asked);
        *ret_channel = park(python->checkpoints.token, ret_pid);
        say_done(python->checkpoints.token, "0 kept");
        cr_assert_not(python->checkpoints.asked);
        cr_assert_eq(python->checkpoints.n, 1);
}

Test(turn, death_is_followed_by_a_checkpoint) {
        char text[64] = "", expected[64];
        pid_t copy;
        int channel;

        finish_with_checkpoint(&channel, &copy);
        begin_with_checkpoints();
        die(SIGSEGV);
        cr_assert_eq(turn.stage, TURN_PROMOTING);
        cr_assert(python->pid == copy && python->checkpoints.n == 0);

        cr_assert_gt(recv(channel, text, sizeof(text) - 1, 0), 0);
        (void) snprintf(expected, sizeof(expected), "wake %s 0\n", turn.token);
        cr_assert_str_eq(text, expected);
        driver = channel;
        say_done(turn.token, "0 kept");
        assert_result("139 signal 11 rolled_back fine");
        cr_assert(python->ready && !python->lost);

        /* The one that was used up is replaced. */
        cr_assert(python->checkpoints.asked);
        cr_assert_eq(python->checkpoints.asked_turn, 5);
}

Test(turn, checkpoint_that_dies_as_well) {
        pid_t copy;
        int channel;

        finish_with_checkpoint(&channel, &copy);
        begin_with_checkpoints();
        die(SIGSEGV);
        fake_pid = copy;
        die(SIGKILL);
        assert_result("139 signal 11 lost fine");
        cr_assert(python->lost);
}

Test(turn, checkpoint_that_does_not_answer) {
        pid_t copy;
        int channel;

        finish_with_checkpoint(&channel, &copy);
        begin_with_checkpoints();
        die(SIGSEGV);
        expire(TURN_PROMOTING);
        cr_assert(python->killed);
        fake_pid = copy;
        die(SIGKILL);
        assert_result("139 signal 11 lost fine");
}

Test(turn, checkpoints_that_nobody_asked_for) {
        pid_t copy;
        int channel;

        begin_with_checkpoints();
        channel = park("0123456789abcdef", &copy);
        cr_assert_eq(python->checkpoints.n, 0);
        say_done(turn.token, "0 kept");
        assert_result("0 signal 0 kept fine");

        /* Once only. */
        (void) close(park(python->checkpoints.token, &copy));
        (void) close(park(python->checkpoints.token, &copy));
        cr_assert_eq(python->checkpoints.n, 1);

        /* Without a descriptor it is none. */
        say("parked 0123456789abcdef 4711\n");
        cr_assert_eq(python->checkpoints.n, 1);
        (void) close(channel);
}

Test(turn, second_request_is_refused) {
        begin();
        cr_assert_eq(turn_begin(&turn, 6, "", 0), -EPROTO);
}

Test(turn, ladder) {
        begin();
        expire(TURN_RUNNING);
        expire(TURN_INTERRUPTED);
        expire(TURN_CHILDREN_KILLED);
        cr_assert_eq(turn.stage, TURN_ENDING);
        cr_assert(python->killed);
        die(SIGKILL);
        assert_result("124 signal 0 timed_out lost fine");
        cr_assert(python->lost);
}

Test(turn, ladder_that_the_driver_ends) {
        begin();
        expire(TURN_RUNNING);
        expire(TURN_INTERRUPTED);
        say_done(turn.token, "1 kept");
        assert_result("124 signal 0 timed_out kept fine");
        cr_assert_not(python->killed);
}

Test(turn, ladder_with_an_interpreter_that_does_not_die) {
        begin();
        expire(TURN_RUNNING);
        expire(TURN_INTERRUPTED);
        expire(TURN_CHILDREN_KILLED);
        expire(TURN_ENDING);
        assert_result("124 signal 0 timed_out lost fine");

        /* The next turn waits for its end, not for ever. */
        begin();
        cr_assert_eq(turn.stage, TURN_WAITING);
        turn.start_until_usec = 0;
        expire(TURN_WAITING);
        assert_result("1 signal 0 kept start");
}

Test(turn, crash_during_the_ladder) {
        begin();
        expire(TURN_RUNNING);
        die(SIGSEGV);
        assert_result("124 signal 11 timed_out lost fine");
}

Test(turn, interrupt_waits_for_the_driver_to_begin) {
        begin();
        cr_assert_eq(turn_interrupt(&turn, 4), 0);
        cr_assert_gt(turn_deadline(&turn), turn.settled_usec);
        cr_assert_eq(turn_interrupt(&turn, 5), 0);
        cr_assert_eq(turn_deadline(&turn), turn.settled_usec);
        expire(TURN_RUNNING);
        cr_assert_eq(turn_interrupt(&turn, 5), 0);
        say_done(turn.token, "1 kept");
        assert_result("130 signal 0 interrupted kept fine");
}

Test(turn, interrupt_after_the_time_out_changes_nothing) {
        begin();
        expire(TURN_RUNNING);
        cr_assert_eq(turn_interrupt(&turn, 5), 0);
        say_done(turn.token, "1 kept");
        assert_result("124 signal 0 timed_out kept fine");
}

Test(turn, death) {
        begin();
        die(W_EXITCODE(7, 0));
        assert_result("7 signal 0 lost fine");
}

Test(turn, death_after_the_report) {
        begin();
        cr_assert_gt(dprintf(driver, "done %s 3 kept\n", turn.token), 0);
        die(SIGSEGV);
        assert_result("3 signal 0 kept fine");
        cr_assert(python->lost);
}

Test(turn, garbage) {
        begin();
        say("\xff\n");
        cr_assert_eq(turn.stage, TURN_ENDING);
        die(SIGKILL);
        assert_result("1 signal 0 lost fine");
}

Test(turn, not_ready_in_time) {
        begin();
        python->ready = false;
        turn.stage = TURN_STARTING;
        expire(TURN_STARTING);
        cr_assert_eq(turn.stage, TURN_ENDING);
        die(SIGKILL);
        assert_result("1 signal 0 kept start");
        cr_assert_not(python->lost);
}

Test(turn, report_before_ready_does_not_count) {
        begin();
        python->ready = false;
        turn.stage = TURN_STARTING;
        say_done(turn.token, "0 kept");
        cr_assert_eq(turn.stage, TURN_STARTING);
        say("ready\n");
        cr_assert_eq(turn.stage, TURN_RUNNING);
        cr_assert(python->ready);
}

Test(turn, another_interpreter_dies) {
        begin();
        interpreter_find(interpreters, "node")->pid = 1000000000;
        interpreter_find(interpreters, "node")->ready = true;
        cr_assert_eq(turn_on_death(&turn, 1000000000, SIGKILL), 0);
        cr_assert(interpreter_find(interpreters, "node")->lost);
        cr_assert_eq(turn.stage, TURN_RUNNING);
        cr_assert_eq(turn_on_death(&turn, 999999999, SIGKILL), 0);
}

/* ---- values ---- */

static void say_value(const char *token, const char *kind, const char *value) {
        char text[256];

        (void) snprintf(text, sizeof(text), "value %s %s %zu\n%s", token, kind, strlen(value), value);
        say(text);
}

/* What turn 5 has told: "KIND VALUE," for each; the frames are done with. */
static const char *told_values(Buffer *b) {
        static char text[512];
        Frame f;

        text[0] = 0;
        while (frame_peek(b, AGENT_PAYLOAD_MAX, &f) > 0) {
                if (f.type == AGENT_FRAME_VALUE)
                        (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d %.*s,", f.payload[0],
                                        (int) f.size - 2, f.payload + 2);
                buffer_consume(b, frame_length(&f));
        }
        return text;
}

Test(turn, values_of_the_turn_only) {
        Buffer replay = {};

        say_value("0123456789abcdef", "result", "0");
        begin();
        say_value("0123456789abcdef", "result", "1");
        say_value(turn.token, "result", "2");
        say_value(turn.token, "image/png", "x");
        say_value(turn.token, "image/gif", "y");
        cr_assert_str_eq(told_values(&frames), "0 2,1 x,");

        /* To another daemon while it runs, and when it is over. */
        cr_assert_eq(kept_replay(&turn.kept, &replay), 0);
        cr_assert_str_eq(told_values(&replay), "0 2,1 x,");
        say_done(turn.token, "0 kept");
        say_value(turn.token, "result", "3");
        cr_assert_eq(kept_replay(&turn.kept, &replay), 0);
        cr_assert_str_eq(told_values(&replay), "0 2,1 x,");

        {
                _cleanup_json_ json_object *o = result();

                cr_assert_eq(json_object_get_int(member(o, "values_dropped")), 1);
        }

        begin();
        say_done(turn.token, "0 kept");
        cr_assert_eq(kept_replay(&turn.kept, &replay), 0);
        cr_assert_str_eq(told_values(&replay), "");
        buffer_done(&replay);
}

/* A length that is never filled holds up the turn that announced it, and no other. */
Test(turn, value_that_never_ends) {
        begin();
        say("value 0123456789abcdef result 4000\n");
        say_done(turn.token, "0 kept");
        cr_assert_eq(turn.stage, TURN_RUNNING);
        expire(TURN_RUNNING);
        expire(TURN_INTERRUPTED);
        expire(TURN_CHILDREN_KILLED);
        die(SIGKILL);
        assert_result("124 signal 0 timed_out lost fine");
        cr_assert_null(python->reports.value.data);
}
