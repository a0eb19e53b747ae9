/* SPDX-License-Identifier: MIT */

/* The service as well-behaved peers see it; the others are in test-varlink-hostile.c. */

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "varlink-fixture.h"

static Fixture fixture;

static void setup(void) {
        fixture_init(&fixture, &FIXTURE_LIMITS);
}

static void teardown(void) {
        fixture_done(&fixture);
}

TestSuite(varlink_server, .init = setup, .fini = teardown, .timeout = 30);

#define CALL(name, rest) "{\"method\":\"" TEST_INTERFACE "." name "\"" rest "}"
#define ECHO(n) CALL("Echo", ",\"parameters\":{\"n\":" n "}")
#define ECHOED(n) "{\"parameters\":{\"n\":" n "}}"

Test(varlink_server, answers_and_goes_on) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        for (int i = 0; i < 3; i++) {
                cr_assert(fixture_send_message(&fixture, fd, ECHO("1")));
                fixture_expect(&fixture, fd, ECHOED("1"));
        }

        cr_assert(fixture_send_message(&fixture, fd, CALL("Echo", "")));
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
        cr_assert_eq(varlink_server_connections(fixture.server), 1);
}

Test(varlink_server, messages_cut_at_every_byte) {
        static const char two[] = ECHO("1") "\0" ECHO("2");
        _cleanup_close_ int fd = fixture_connect(&fixture);

        for (size_t cut = 1; cut < sizeof(two); cut++) {
                cr_assert(fixture_send(&fixture, fd, two, cut));
                cr_assert(fixture_send(&fixture, fd, two + cut, sizeof(two) - cut));
                fixture_expect(&fixture, fd, ECHOED("1"));
                fixture_expect(&fixture, fd, ECHOED("2"));
        }

        for (size_t i = 0; i < sizeof(two); i++)
                cr_assert(fixture_send(&fixture, fd, two + i, 1));
        fixture_expect(&fixture, fd, ECHOED("1"));
        fixture_expect(&fixture, fd, ECHOED("2"));
}

Test(varlink_server, more_gives_several_replies) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, CALL("Count", ",\"more\":true")));
        fixture_expect(&fixture, fd, "{\"parameters\":{\"n\":1},\"continues\":true}");
        fixture_expect(&fixture, fd, "{\"parameters\":{\"n\":2},\"continues\":true}");
        fixture_expect(&fixture, fd, "{\"parameters\":{\"n\":3}}");

        cr_assert(fixture_send_message(&fixture, fd, CALL("Count", "")));
        fixture_expect(&fixture, fd, "{\"error\":\"" VARLINK_ERROR_EXPECTED_MORE "\",\"parameters\":{}}");
}

Test(varlink_server, oneway_gives_no_reply) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, CALL("Echo", ",\"oneway\":true")));
        cr_assert(fixture_send_message(&fixture, fd, CALL("Fail", ",\"oneway\":true")));
        cr_assert(fixture_send_message(&fixture, fd, CALL("Nothing", ",\"oneway\":true")));
        cr_assert_eq(fixture.n_calls, 1);
        cr_assert(fixture_send_message(&fixture, fd, ECHO("2")));
        fixture_expect(&fixture, fd, ECHOED("2"));
}

Test(varlink_server, oneway_of_a_peer_that_leaves_at_once) {
        int fd = fixture_connect(&fixture);
        static const char call[] = CALL("Echo", ",\"oneway\":true");

        cr_assert_eq(send(fd, call, sizeof(call), 0), sizeof(call));
        fd = safe_close(fd);
        fixture_pump(&fixture);
        cr_assert_eq(fixture.n_calls, 1);
        cr_assert_eq(varlink_server_connections(fixture.server), 0);
}

Test(varlink_server, failing_handlers_become_errors) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, CALL("Fail", "")));
        fixture_expect(&fixture, fd, "{\"error\":\"" TEST_INTERFACE ".Internal\","
                                     "\"parameters\":{\"message\":\"Input/output error\"}}");
        cr_assert(fixture_send_message(&fixture, fd, CALL("Forget", "")));
        fixture_expect(&fixture, fd, "{\"error\":\"" TEST_INTERFACE ".Internal\","
                                     "\"parameters\":{\"message\":\"Protocol error\"}}");
        cr_assert(fixture_send_message(&fixture, fd, CALL("Repeat", "")));
        fixture_expect(&fixture, fd, "{\"error\":\"" VARLINK_ERROR_INVALID_PARAMETER "\","
                                     "\"parameters\":{\"parameter\":\"size\","
                                     "\"message\":\"A number is needed.\"}}");
}

Test(varlink_server, unknown_methods_and_interfaces) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, CALL("Nothing", "")));
        fixture_expect(&fixture, fd, "{\"error\":\"" VARLINK_ERROR_METHOD_NOT_FOUND "\","
                                     "\"parameters\":{\"method\":\"" TEST_INTERFACE ".Nothing\"}}");
        cr_assert(fixture_send_message(&fixture, fd, "{\"method\":\"test.unit2.Echo\"}"));
        fixture_expect(&fixture, fd, "{\"error\":\"" VARLINK_ERROR_INTERFACE_NOT_FOUND "\","
                                     "\"parameters\":{\"interface\":\"test.unit2\"}}");
        cr_assert(fixture_send_message(&fixture, fd, "{\"method\":\"Echo\"}"));
        fixture_expect(&fixture, fd, "{\"error\":\"" VARLINK_ERROR_METHOD_NOT_FOUND "\","
                                     "\"parameters\":{\"method\":\"Echo\"}}");
        cr_assert(fixture_send_message(&fixture, fd, "{\"method\":\"org.varlink.service.Nothing\"}"));
        fixture_expect(&fixture, fd, "{\"error\":\"" VARLINK_ERROR_METHOD_NOT_FOUND "\","
                                     "\"parameters\":{\"method\":\"org.varlink.service.Nothing\"}}");
}

#define DESCRIBE(p) "{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{" p "}}"

Test(varlink_server, introspection) {
        _cleanup_close_ int fd = fixture_connect(&fixture);
        _cleanup_free_ char *text = NULL;
        bool hangup;

        cr_assert(fixture_send_message(&fixture, fd, "{\"method\":\"org.varlink.service.GetInfo\"}"));
        fixture_expect(&fixture, fd, "{\"parameters\":{"
                                     "\"interfaces\":[\"org.varlink.service\",\"test.unit\"],"
                                     "\"vendor\":\"vendor\",\"product\":\"product\",\"version\":\"1.2.3\","
                                     "\"url\":\"http://localhost/\"}}");

        cr_assert(fixture_send_message(&fixture, fd, DESCRIBE("\"interface\":\"test.unit\"")));
        fixture_expect(&fixture, fd, "{\"parameters\":{\"description\":\"interface test.unit\\n\"}}");

        cr_assert(fixture_send_message(&fixture, fd, DESCRIBE("\"interface\":\"org.varlink.service\"")));
        text = fixture_receive(&fixture, fd, &hangup);
        cr_assert_not_null(strstr(text, "interface org.varlink.service\\n"));

        cr_assert(fixture_send_message(&fixture, fd, DESCRIBE("\"interface\":\"a.b\"")));
        fixture_expect(&fixture, fd, "{\"error\":\"" VARLINK_ERROR_INTERFACE_NOT_FOUND "\","
                                     "\"parameters\":{\"interface\":\"a.b\"}}");

        cr_assert(fixture_send_message(&fixture, fd, DESCRIBE("\"interfac\":\"a.b\"")));
        fixture_expect(&fixture, fd, "{\"error\":\"" VARLINK_ERROR_INVALID_PARAMETER "\",\"parameters\":"
                                     "{\"parameter\":\"interfac\","
                                     "\"message\":\"Only 'interface', a string, is expected.\"}}");
}

Test(varlink_server, pipelined_calls_wait_for_the_parked_one) {
        static const char three[] = CALL("Park", "") "\0" ECHO("1") "\0" ECHO("2");
        _cleanup_close_ int fd = fixture_connect(&fixture);
        bool hangup;

        cr_assert(fixture_send(&fixture, fd, three, sizeof(three)));
        cr_assert(fixture_send_message(&fixture, fd, ECHO("3")));
        cr_assert_not_null(fixture.parked);
        cr_assert_eq(fixture.n_calls, 1);
        cr_assert_null(fixture_receive(&fixture, fd, &hangup));
        cr_assert_not(hangup);

        cr_assert_eq(varlink_reply(fixture.parked, NULL), 0);
        cr_assert_eq(fixture.n_calls, 1, "not from inside the reply");
        cr_assert_eq(varlink_reply(fixture.parked, NULL), -EBUSY, "answered already");
        fixture.parked = varlink_link_unref(fixture.parked);

        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
        fixture_expect(&fixture, fd, ECHOED("1"));
        fixture_expect(&fixture, fd, ECHOED("2"));
        fixture_expect(&fixture, fd, ECHOED("3"));
        cr_assert_eq(fixture.n_disconnects, 0);
}

Test(varlink_server, kept_calls_run_again_from_the_top) {
        static const char two[] = CALL("Again", ",\"parameters\":{\"n\":7}") "\0" ECHO("1");
        _cleanup_close_ int fd = fixture_connect(&fixture);
        bool hangup;

        fixture.n_again = 3;
        cr_assert(fixture_send(&fixture, fd, two, sizeof(two)));
        cr_assert_eq(fixture.n_calls, 1);

        cr_assert_eq(varlink_link_dispatch_again(fixture.parked), 0);
        fixture_pump(&fixture);
        cr_assert_eq(fixture.n_calls, 2);
        cr_assert_null(fixture_receive(&fixture, fd, &hangup));

        cr_assert_eq(varlink_link_dispatch_again(fixture.parked), 0);
        cr_assert_eq(varlink_link_dispatch_again(fixture.parked), -EBUSY, "answered");
        cr_assert_eq(fixture.n_calls, 3, "not from inside the reply");
        fixture_expect(&fixture, fd, ECHOED("7"));
        fixture_expect(&fixture, fd, ECHOED("1"));
        fixture.parked = varlink_link_unref(fixture.parked);
}

Test(varlink_server, kept_calls_may_be_answered_without_running_again) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        fixture.n_again = 2;
        cr_assert(fixture_send_message(&fixture, fd, CALL("Again", "")));
        cr_assert_eq(varlink_error(fixture.parked, "test.unit.No", NULL), 0);
        cr_assert_eq(varlink_link_dispatch_again(fixture.parked), -EBUSY);
        fixture_expect(&fixture, fd, "{\"error\":\"test.unit.No\",\"parameters\":{}}");

        /* What parks without asking for it is not run again. */
        fixture.parked = varlink_link_unref(fixture.parked);
        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", "")));
        cr_assert_eq(varlink_link_dispatch_again(fixture.parked), -EBUSY);
        cr_assert_eq(varlink_reply(fixture.parked, NULL), 0);
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
        fixture.parked = varlink_link_unref(fixture.parked);
}

Test(varlink_server, large_calls_are_not_kept) {
        _cleanup_close_ int fd = fixture_connect(&fixture);
        _cleanup_free_ char *call = NULL;

        cr_assert_geq(asprintf(&call, "%s%*s", CALL("Again", ""), (int) VARLINK_KEPT_MAX, ""), 0);
        fixture.n_again = 2;
        cr_assert(fixture_send_message(&fixture, fd, call));
        fixture_expect(&fixture, fd, "{\"error\":\"" TEST_INTERFACE ".Internal\","
                                     "\"parameters\":{\"message\":\"Message too long\"}}");
}

Test(varlink_server, disconnect_while_kept) {
        int fd = fixture_connect(&fixture);
        VarlinkLink *link;

        fixture.n_again = 2;
        cr_assert(fixture_send_message(&fixture, fd, CALL("Again", "")));
        link = varlink_link_ref(fixture.parked);
        fd = safe_close(fd);
        fixture_pump(&fixture);
        cr_assert_eq(fixture.n_disconnects, 1);
        cr_assert_eq(varlink_link_dispatch_again(link), -EPIPE);
        cr_assert_eq(fixture.n_calls, 1);
        (void) varlink_link_unref(link);
}

Test(varlink_server, disconnect_while_parked) {
        int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", "")));
        cr_assert_not_null(fixture.parked);
        fd = safe_close(fd);
        fixture_pump(&fixture);
        cr_assert_eq(fixture.n_disconnects, 1);
        cr_assert_eq(varlink_server_connections(fixture.server), 0);
}

Test(varlink_server, disconnect_while_parked_and_not_reading) {
        int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", "")));
        cr_assert(fixture_send_message(&fixture, fd, ECHO("1")));
        cr_assert(fixture_send_message(&fixture, fd, ECHO("2")));
        fd = safe_close(fd);
        fixture_pump(&fixture);
        cr_assert_eq(fixture.n_disconnects, 1);
        cr_assert_eq(fixture.n_calls, 1, "nobody would get the answers");
}

Test(varlink_server, half_close_still_gets_the_reply) {
        static const char two[] = CALL("Park", "") "\0" ECHO("1");
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert(fixture_send(&fixture, fd, two, sizeof(two)));
        cr_assert_eq(shutdown(fd, SHUT_WR), 0);
        fixture_pump(&fixture);
        cr_assert_eq(fixture.n_disconnects, 0);

        cr_assert_eq(varlink_reply(fixture.parked, NULL), 0);
        fixture.parked = varlink_link_unref(fixture.parked);
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
        fixture_expect(&fixture, fd, ECHOED("1"));
        fixture_expect_hangup(&fixture, fd);
        cr_assert_eq(varlink_server_connections(fixture.server), 0);
}

Test(varlink_server, half_close_then_disconnect) {
        int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", "")));
        cr_assert_eq(shutdown(fd, SHUT_WR), 0);
        fixture_pump(&fixture);
        cr_assert_eq(fixture.n_disconnects, 0);
        fd = safe_close(fd);
        fixture_pump(&fixture);
        cr_assert_eq(fixture.n_disconnects, 1);
}

Test(varlink_server, parked_calls_learn_of_the_end_of_the_server) {
        _cleanup_close_ int fd = fixture_connect(&fixture);

        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", "")));
        fixture.server = varlink_server_free(fixture.server);
        cr_assert_eq(fixture.n_disconnects, 1);
        fixture_expect_hangup(&fixture, fd);
}

Test(varlink_server, credentials_outlive_the_connection) {
        int fd = fixture_connect(&fixture);
        VarlinkLink *link;

        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", "")));
        link = varlink_link_ref(fixture.parked);
        fd = safe_close(fd);
        fixture_pump(&fixture);
        cr_assert_eq(varlink_link_peer(link)->uid, geteuid());
        cr_assert_eq(varlink_link_peer(link)->pid, getpid());
        cr_assert_eq(varlink_link_queued(link), 0);
        (void) varlink_link_unref(link);
}

Test(varlink_server, large_messages_both_ways) {
        _cleanup_close_ int fd = fixture_connect(&fixture);
        _cleanup_free_ char *call = NULL, *reply = NULL;
        size_t size = 3 * MIB;
        bool hangup;

        call = malloc(size + 1);
        memset(call, ' ', size);
        memcpy(call, "{\"method\":\"test.unit.Echo\",\"parameters\":{\"s\":\"", 46);
        memset(call + 46, 'y', size - 49);
        memcpy(call + size - 3, "\"}}", 4);

        cr_assert(fixture_send_message(&fixture, fd, call));
        reply = fixture_receive(&fixture, fd, &hangup);
        cr_assert_not_null(reply);
        cr_assert_eq(strlen(reply), size - strlen("\"method\":\"test.unit.Echo\","));
}

static unsigned n_drained, n_destroyed;

static void on_drained(VarlinkLink *l, void *userdata) {
        cr_assert_eq(varlink_link_queued(l), 0);
        cr_assert_eq(userdata, &fixture);
        n_drained++;
}

Test(varlink_server, is_told_when_replies_are_taken) {
        _cleanup_close_ int fd = fixture_connect(&fixture);
        _cleanup_free_ char *text = malloc(MIB), *message = NULL;
        bool hangup;

        memset(text, ' ', MIB);
        text[0] = '{';
        text[MIB - 1] = '}';
        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", ",\"more\":true")));
        varlink_link_on_drained(fixture.parked, on_drained, &fixture);
        cr_assert_eq(varlink_notify_text(fixture.parked, text, MIB), 0);
        cr_assert_gt(varlink_link_queued(fixture.parked), 0);
        cr_assert_eq(n_drained, 0);
        message = fixture_receive(&fixture, fd, &hangup);
        cr_assert(strstr(message, ",\"continues\":true}"));
        cr_assert_eq(n_drained, 1);

        cr_assert_eq(varlink_notify_text(fixture.parked, "{}", 2), 0);
        fixture_expect(&fixture, fd, "{\"parameters\":{},\"continues\":true}");
        cr_assert_eq(varlink_reply(fixture.parked, NULL), 0);
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
        cr_assert_eq(varlink_notify_text(fixture.parked, "{}", 2), -EBUSY);
        cr_assert_eq(n_drained, 1, "only after something was queued, and while the call runs");
        fixture.parked = varlink_link_unref(fixture.parked);
        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", "")));
        cr_assert_eq(varlink_notify_text(fixture.parked, "{}", 2), -EINVAL);
}

static void destroy(void *object) {
        cr_assert_eq(object, &fixture);
        n_destroyed++;
}

static void destroy_another(void *object) {
        n_destroyed += 100;
}

Test(varlink_server, an_object_lives_as_long_as_the_connection) {
        int fd = fixture_connect(&fixture);
        VarlinkLink *link;

        cr_assert(fixture_send_message(&fixture, fd, CALL("Park", "")));
        link = varlink_link_ref(fixture.parked);
        cr_assert_null(varlink_link_object(link, destroy));
        varlink_link_set_object(link, &fixture, destroy);
        cr_assert_eq(varlink_reply(link, NULL), 0);
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
        cr_assert_eq(varlink_link_object(link, destroy), &fixture);
        cr_assert_null(varlink_link_object(link, destroy_another), "of somebody else's");

        varlink_link_set_object(link, &fixture, destroy_another);
        cr_assert_eq(n_destroyed, 1);
        varlink_link_set_object(link, &fixture, destroy);
        cr_assert_eq(n_destroyed, 101);
        fd = safe_close(fd);
        fixture_pump(&fixture);
        cr_assert_eq(n_destroyed, 102);
        cr_assert_null(varlink_link_object(link, destroy));
        varlink_link_set_object(link, &fixture, destroy);
        cr_assert_eq(n_destroyed, 103, "too late");
        (void) varlink_link_unref(link);
}
