/* SPDX-License-Identifier: MIT */

/* Peers that mean harm, or are broken: each loses its link, and nobody else notices. */

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/text.h"
#include "varlink-fixture.h"

#define HALF_MESSAGE_USEC (50 * USEC_PER_MSEC)

static Fixture fixture;

static void setup_with_time(uint64_t half_message_usec) {
        const VarlinkServerLimits limits = {
                .connections_max = 6,
                .connections_per_uid_max = 4,
                .half_message_usec = half_message_usec,
        };

        fixture_init(&fixture, &limits);
}

static void setup(void) {
        setup_with_time(HALF_MESSAGE_USEC);
}

static void teardown(void) {
        fixture_done(&fixture);
}

TestSuite(varlink_hostile, .init = setup, .fini = teardown, .timeout = 60);

#define CALL(name, rest) "{\"method\":\"" TEST_INTERFACE "." name "\"" rest "}"

static void expect_alive(void) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert_geq(fd, 0);
        cr_assert(fixture_send_message(&fixture, fd, CALL("Echo", "")));
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
}

/* Runs the loop in real time until the peer has lost its link. */
static void expect_loss_in_time(unsigned n_connections) {
        uint64_t end = now_monotonic() + 20 * USEC_PER_SEC;

        while (varlink_server_connections(fixture.server) > n_connections) {
                cr_assert_lt(now_monotonic(), end);
                cr_assert(sd_event_run(fixture.event, USEC_PER_SEC) >= 0);
        }
}

Test(varlink_hostile, garbage_closes) {
        static const char *const garbage[] = {
                "",
                "hello",
                "GET / HTTP/1.1\r\n\r\n",
                "{}",
                "[]",
                "null",
                "{\"method\":1}",
                "{\"method\":\"\"}",
                "{\"method\":\"a b\"}",
                "{\"method\":\"test.unit.Echo\"",
                "{\"method\":\"test.unit.Echo\"}}",
                "{\"method\":\"test.unit.Echo\",\"method\":\"test.unit.Echo\"}",
                "{\"method\":\"test.unit.Echo\",\"parameters\":[]}",
                "{\"method\":\"test.unit.Echo\",\"more\":1}",
                "{\"method\":\"test.unit.Echo\",\"more\":true,\"oneway\":true}",
                "{\"method\":\"test.unit.Echo\",\"upgrade\":true}",
                "{\"method\":\"test.unit.Echo\",\"parameters\":{\"s\":\"\xff\"}}",
        };

        for (size_t i = 0; i < ELEMENTSOF(garbage); i++) {
                _cleanup_close_ int fd = fixture_connect(&fixture);

                cr_assert_geq(fd, 0);
                (void) fixture_send_message(&fixture, fd, garbage[i]);
                fixture_expect_hangup(&fixture, fd);
                cr_assert_eq(varlink_server_connections(fixture.server), 0, "'%s'", garbage[i]);
        }

        cr_assert_eq(fixture.n_calls, 0);
        expect_alive();
}

Test(varlink_hostile, nesting_closes) {
        _cleanup_close_ int fd = fixture_connect(&fixture);
        char text[2 * JSON_DEPTH_MAX + 100];
        char *p;

        p = stpcpy(text, "{\"method\":\"test.unit.Echo\",\"parameters\":{\"a\":");
        memset(p, '[', 2 * JSON_DEPTH_MAX);
        p[2 * JSON_DEPTH_MAX] = 0;
        (void) fixture_send_message(&fixture, fd, text);
        fixture_expect_hangup(&fixture, fd);
}

#define TOO_LARGE                                                                              \
        "{\"error\":\"" VARLINK_ERROR_INVALID_PARAMETER "\",\"parameters\":"                    \
        "{\"parameter\":\"parameters\",\"message\":\"A message may have at most 8388608 bytes.\"}}"

Test(varlink_hostile, oversize_gets_an_error_and_is_closed) {
        _cleanup_close_ int fd = fixture_connect(&fixture);
        _cleanup_free_ char *junk = malloc(10 * MIB);

        memset(junk, 'x', 10 * MIB);
        cr_assert_not(fixture_send(&fixture, fd, junk, 10 * MIB), "never read to its end");
        fixture_expect(&fixture, fd, TOO_LARGE);
        fixture_expect_hangup(&fixture, fd);
        expect_alive();
}

Test(varlink_hostile, largest_message_is_parsed_and_the_next_byte_is_not) {
        _cleanup_free_ char *junk = calloc(1, VARLINK_MESSAGE_MAX + 2);

        for (size_t extra = 0; extra < 2; extra++) {
                _cleanup_close_ int fd = fixture_connect(&fixture);

                memset(junk, ' ', VARLINK_MESSAGE_MAX + extra);
                memcpy(junk, CALL("Echo", ""), strlen(CALL("Echo", "")));
                (void) fixture_send(&fixture, fd, junk, VARLINK_MESSAGE_MAX + extra + 1);
                fixture_expect(&fixture, fd, extra == 0 ? "{\"parameters\":{}}" : TOO_LARGE);
        }
}

Test(varlink_hostile, too_large_a_reply_is_an_error) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, CALL("Repeat", ",\"parameters\":{\"size\":8388608}")));
        fixture_expect(&fixture, fd, "{\"error\":\"test.unit.Internal\",\"parameters\":"
                                     "{\"message\":\"The reply is too large to be sent.\"}}");
        cr_assert(fixture_send_message(&fixture, fd, CALL("Echo", "")));
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
}

Test(varlink_hostile, thousands_of_calls_in_one_write) {
        static const char call[] = CALL("Echo", "");
        _cleanup_close_ int fd = fixture_connect(&fixture), other = fixture_connect(&fixture);
        _cleanup_free_ char *calls = malloc(2000 * sizeof(call));

        for (size_t i = 0; i < 2000; i++)
                memcpy(calls + i * sizeof(call), call, sizeof(call));
        cr_assert_eq(send(fd, calls, 2000 * sizeof(call), 0), 2000 * sizeof(call));
        cr_assert_eq(send(other, call, sizeof(call), 0), sizeof(call));

        for (int i = 0; i < 4; i++)
                cr_assert(sd_event_run(fixture.event, 0) >= 0);
        cr_assert_leq(fixture.n_calls, 4, "one a turn of the loop");
        fixture_expect(&fixture, other, "{\"parameters\":{}}");

        for (size_t i = 0; i < 2000; i++)
                fixture_expect(&fixture, fd, "{\"parameters\":{}}");
}

/* It gets one reply more than fits, and nobody keeps others for it. */
Test(varlink_hostile, a_peer_that_never_reads_is_not_served_and_then_cut) {
        static const char call[] = CALL("Repeat", ",\"parameters\":{\"size\":1000000}");
        _cleanup_close_ int fd = fixture_connect(&fixture);

        for (int i = 0; i < 10; i++) {
                cr_assert_eq(send(fd, call, sizeof(call), MSG_NOSIGNAL), sizeof(call));
                fixture_pump(&fixture);
        }
        cr_assert_eq(fixture.n_calls, 1);
        expect_alive();

        expect_loss_in_time(0);
        expect_alive();
}

/* Reads what is there; how many messages ended in it. */
static unsigned read_some(int fd) {
        static char piece[100000];
        ssize_t n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);
        unsigned ends = 0;

        cr_assert(n > 0 || (n < 0 && errno == EAGAIN), "it hung up");
        for (ssize_t i = 0; i < n; i++)
                ends += piece[i] == 0;
        return ends;
}

/* After the suite's own. */
static void setup_patient(void) {
        teardown();
        setup_with_time(10 * HALF_MESSAGE_USEC);
}

/* A bit now and then is enough, and nothing that was called is lost. */
Test(varlink_hostile, a_peer_that_reads_slowly_is_served, .init = setup_patient) {
        static const char call[] = CALL("Repeat", ",\"parameters\":{\"size\":3000000}");
        _cleanup_close_ int fd = fixture_connect(&fixture);
        uint64_t pause = HALF_MESSAGE_USEC;
        unsigned ends = 0;

        for (int i = 0; i < 5; i++)
                cr_assert_eq(send(fd, call, sizeof(call), MSG_NOSIGNAL), sizeof(call));

        for (int i = 0; i < 20; i++) {
                fixture_pump(&fixture);
                ends += read_some(fd);
                for (uint64_t end = now_monotonic() + pause; now_monotonic() < end;)
                        cr_assert(sd_event_run(fixture.event, pause / 4) >= 0);
        }
        cr_assert_eq(fixture.n_calls, 1);

        for (int i = 0; i < 1000 && ends < 5; i++) {
                fixture_pump(&fixture);
                ends += read_some(fd);
        }
        cr_assert_eq(ends, 5);
        cr_assert_eq(fixture.n_calls, 5);
}

Test(varlink_hostile, a_listener_that_never_reads_is_cut) {
        _cleanup_close_ int fd = fixture_connect(&fixture);
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_free_ char *text = malloc(MIB);
        size_t queued = 0;
        int r;

        memset(text, 'x', MIB);
        cr_assert_eq(json_put_bytes(o, "text", text, MIB), 0);
        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", ",\"more\":true")));
        cr_assert_eq(fixture.parked_flags, VARLINK_MORE);

        while ((r = varlink_notify(fixture.parked, o)) >= 0) {
                cr_assert_gt(varlink_link_queued(fixture.parked), queued);
                queued = varlink_link_queued(fixture.parked);
                cr_assert_leq(queued, VARLINK_OUTPUT_MAX);
        }
        cr_assert_eq(r, -EPIPE);
        cr_assert_eq(fixture.n_disconnects, 0, "never from inside notify");

        fixture_pump(&fixture);
        cr_assert_eq(fixture.n_disconnects, 1);
        cr_assert_eq(varlink_server_connections(fixture.server), 0);
}

Test(varlink_hostile, a_slow_reader_is_waited_for) {
        _cleanup_close_ int fd = fixture_connect(&fixture);
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_free_ char *text = malloc(MIB);
        bool hangup;

        memset(text, 'x', MIB);
        cr_assert_eq(json_put_bytes(o, "text", text, MIB), 0);
        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", ",\"more\":true")));

        for (unsigned i = 0; i < 3; i++) {
                _cleanup_free_ char *message = NULL;

                cr_assert_eq(varlink_notify(fixture.parked, o), 0);
                cr_assert_gt(varlink_link_queued(fixture.parked), 0);
                message = fixture_receive(&fixture, fd, &hangup);
                cr_assert_geq(strlen(message), MIB);
                cr_assert_eq(varlink_link_queued(fixture.parked), 0);
        }

        cr_assert_eq(varlink_reply(fixture.parked, NULL), 0);
        fixture.parked = varlink_link_unref(fixture.parked);
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
}

Test(varlink_hostile, half_a_message_has_its_time) {
        _cleanup_close_ int fd = fixture_connect(&fixture), patient = fixture_connect(&fixture);

        cr_assert(fixture_send(&fixture, fd, "{\"meth", 6));
        cr_assert_eq(varlink_server_connections(fixture.server), 2);
        expect_loss_in_time(1);
        fixture_expect_hangup(&fixture, fd);

        cr_assert(fixture_send_message(&fixture, patient, CALL("Echo", "")));
        fixture_expect(&fixture, patient, "{\"parameters\":{}}");
}

Test(varlink_hostile, a_message_that_gets_on_is_waited_for) {
        static const char call[] = CALL("Echo", "");
        _cleanup_close_ int fd = fixture_connect(&fixture);

        /* Several times the limit in all, with a byte in every fifth of it. */
        for (size_t i = 0; i < sizeof(call); i++) {
                uint64_t end = now_monotonic() + HALF_MESSAGE_USEC / 5;

                cr_assert_eq(send(fd, call + i, 1, MSG_NOSIGNAL), 1);
                for (uint64_t now; (now = now_monotonic()) < end;)
                        cr_assert(sd_event_run(fixture.event, end - now) >= 0);
        }

        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
        for (uint64_t now, end = now_monotonic() + 3 * HALF_MESSAGE_USEC; (now = now_monotonic()) < end;)
                cr_assert(sd_event_run(fixture.event, end - now) >= 0);
        cr_assert_eq(varlink_server_connections(fixture.server), 1);
}

Test(varlink_hostile, a_parked_call_has_all_the_time) {
        static const char two[] = CALL("Park", "") "\0{\"half";
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert(fixture_send(&fixture, fd, "{", 1));
        cr_assert(fixture_send(&fixture, fd, two + 1, sizeof(two) - 2));
        for (uint64_t now, end = now_monotonic() + 3 * HALF_MESSAGE_USEC; (now = now_monotonic()) < end;)
                cr_assert(sd_event_run(fixture.event, end - now) >= 0);
        cr_assert_eq(fixture.n_disconnects, 0);

        cr_assert_eq(varlink_reply(fixture.parked, NULL), 0);
        fixture.parked = varlink_link_unref(fixture.parked);
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
        expect_loss_in_time(0);
}

Test(varlink_hostile, closing_does_not_wait_for_ever) {
        static const char call[] = CALL("Repeat", ",\"parameters\":{\"size\":1000000}");
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, call));
        cr_assert_eq(shutdown(fd, SHUT_WR), 0);
        fixture_pump(&fixture);
        cr_assert_eq(varlink_server_connections(fixture.server), 1, "the reply is not out yet");
        expect_loss_in_time(0);
}

Test(varlink_hostile, a_peer_that_will_not_be_written_to) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert_eq(shutdown(fd, SHUT_RD), 0);
        (void) fixture_send_message(&fixture, fd, CALL("Echo", ""));
        cr_assert_eq(varlink_server_connections(fixture.server), 0);
}
