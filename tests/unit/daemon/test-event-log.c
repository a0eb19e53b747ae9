/* SPDX-License-Identifier: MIT */

#include <stdio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/event-log.h"
#include "link-fixture.h"

static LinkFixture fixture;
static EventLog event_log; /* big: not on the stack */

static void setup(void) {
        event_log = (EventLog) {};
        link_fixture_init(&fixture);
}

static void teardown(void) {
        link_fixture_done(&fixture);
        event_log_done(&event_log);
        cr_assert_null(event_log.followers);
}

TestSuite(event_log, .init = setup, .fini = teardown, .timeout = 20);

static void add(const char *event, const char *session, const char *name, uid_t uid, const char *detail) {
        event_log_add(&event_log, &(EventRecord){
                                                  .event = event,
                                                  .session = session,
                                                  .name = name,
                                                  .uid = uid,
                                                  .detail = detail,
                                  });
}

static json_object *events_of(json_object *reply) {
        json_object *array = NULL;

        cr_assert(json_object_object_get_ex(reply, "events", &array));
        return array;
}

static const char *text(json_object *events, size_t i, const char *key) {
        json_object *value = NULL;

        cr_assert(json_object_object_get_ex(json_object_array_get_idx(events, i), key, &value));
        return json_object_get_string(value);
}

static int64_t number(json_object *events, size_t i, const char *key) {
        json_object *value = NULL;

        cr_assert(json_object_object_get_ex(json_object_array_get_idx(events, i), key, &value));
        return json_object_get_int64(value);
}

static void check_length(uid_t uid, bool all, size_t expected) {
        _cleanup_json_ json_object *reply = NULL;

        cr_assert_eq(event_log_to_json(&event_log, uid, all, &reply), 0);
        cr_assert_eq(json_object_array_length(events_of(reply)), expected);
}

Test(event_log, empty) {
        check_length(0, true, 0);
        cr_assert_null(event_log_end_reason(&event_log, 0, ""));
        cr_assert_null(event_log_end_reason(&event_log, 0, "abc"));
}

Test(event_log, members) {
        _cleanup_json_ json_object *reply = NULL;
        json_object *events;

        add("killed", "0123456789ab", "na\"me", 4294967294, "idle");
        add("torn_down", "0123456789ab", NULL, 0, NULL);
        cr_assert_eq(event_log_to_json(&event_log, 0, true, &reply), 0);
        events = events_of(reply);
        cr_assert_eq(json_object_array_length(events), 2);
        cr_assert_eq(number(events, 0, "seq"), 0);
        cr_assert_eq(number(events, 1, "seq"), 1);
        cr_assert_gt(number(events, 0, "time_usec"), 0);
        cr_assert_eq(number(events, 0, "uid"), 4294967294);
        cr_assert_str_eq(text(events, 0, "event"), "killed");
        cr_assert_str_eq(text(events, 0, "session"), "0123456789ab");
        cr_assert_str_eq(text(events, 0, "name"), "na\"me");
        cr_assert_str_eq(text(events, 0, "detail"), "idle");
        cr_assert_null(text(events, 1, "name"));
        cr_assert_null(text(events, 1, "detail"));
}

Test(event_log, fields_and_who) {
        static const EventField fields[] = { { "turn", .number = 3 }, { "interpreter", .text = "python" }, {} };
        _cleanup_json_ json_object *reply = NULL;
        uid_t root = 0, other = 7;
        json_object *events;

        event_log_add(&event_log, &(EventRecord){ .event = "exec_turn", .session = "a", .fields = fields });
        event_log_add(&event_log, &(EventRecord){ .event = "exec_turn", .session = "a", .fields = fields, .detail = "x",
                                                  .by = &root });
        event_log_add(&event_log, &(EventRecord){ .event = "reloaded", .by = &other });
        cr_assert_eq(event_log_to_json(&event_log, 0, true, &reply), 0);
        events = events_of(reply);
        cr_assert_str_eq(text(events, 0, "detail"), "turn=3 interpreter=python");
        cr_assert_str_eq(text(events, 1, "detail"), "x turn=3 interpreter=python");
        cr_assert_null(text(events, 0, "by"));
        cr_assert_str_eq(text(events, 1, "by"), "0");
        cr_assert_str_eq(text(events, 2, "by"), "7");
        cr_assert_str_eq(text(events, 2, "session"), "");
        cr_assert_null(text(events, 2, "detail"));
}

static void count_in_order(const EventRecord *record, uint64_t time_usec, void *userdata) {
        unsigned *n = userdata;

        cr_assert_str_eq(record->event, *n == 0 ? "session_created" : "killed");
        cr_assert_str_eq(record->project, "/p");
        cr_assert_gt(time_usec, 0);
        (*n)++;
}

Test(event_log, the_sink_gets_all) {
        unsigned n = 0;

        event_log.sink = count_in_order;
        event_log.sink_userdata = &n;
        event_log_add(&event_log, &(EventRecord){ .event = "session_created", .session = "a", .project = "/p" });
        event_log_add(&event_log, &(EventRecord){ .event = "killed", .session = "a", .project = "/p" });
        cr_assert_eq(n, 2);
        event_log.sink = NULL;
}

Test(event_log, of_one_user) {
        add("frozen", "a", "n", 1, "standby");
        add("frozen", "b", "n", 2, NULL);
        add("thawed", "a", "n", 1, NULL);
        check_length(1, false, 2);
        check_length(2, false, 1);
        check_length(3, false, 0);
        check_length(3, true, 3);
}

Test(event_log, the_oldest_make_room) {
        _cleanup_json_ json_object *reply = NULL;
        char id[16];

        for (unsigned i = 0; i < EVENT_LOG_MAX + 3; i++) {
                (void) snprintf(id, sizeof(id), "%u", i);
                add("killed", id, id, 0, "idle");
        }
        cr_assert_eq(event_log_to_json(&event_log, 0, false, &reply), 0);
        cr_assert_eq(json_object_array_length(events_of(reply)), EVENT_LOG_MAX);
        cr_assert_eq(number(events_of(reply), 0, "seq"), 3);
        cr_assert_str_eq(text(events_of(reply), EVENT_LOG_MAX - 1, "session"), id);
        cr_assert_null(event_log_end_reason(&event_log, 0, "2"));
        cr_assert_str_eq(event_log_end_reason(&event_log, 0, "3"), "idle");
}

Test(event_log, end_reason) {
        add("session_created", "a", "n", 1, "default");
        add("killed", "a", "n", 1, "idle");
        add("torn_down", "a", "n", 1, NULL);
        add("session_created", "b", "n", 1, "default");

        cr_assert_str_eq(event_log_end_reason(&event_log, 1, "a"), "idle");
        cr_assert_null(event_log_end_reason(&event_log, 1, "b"), "it lives");
        cr_assert_null(event_log_end_reason(&event_log, 2, "a"), "of somebody else");
        cr_assert_null(event_log_end_reason(&event_log, 1, "n"), "a name is no id");
}

/* The turns of one session do not make the end of another unknown. */
Test(event_log, end_reason_among_many_turns) {
        add("killed", "a", "n", 1, "idle");
        for (unsigned i = 0; i < 2 * EVENT_LOG_MAX; i++)
                add("exec_turn", "b", "n", 1, NULL);
        cr_assert_str_eq(event_log_end_reason(&event_log, 1, "a"), "idle");
}

Test(event_log, followers) {
        _cleanup_json_ json_object *first = NULL, *second = NULL, *none = NULL;
        int own = link_fixture_call(&fixture, true), all = link_fixture_call(&fixture, true);

        cr_assert_eq(event_log_follow(&event_log, fixture.links[0], false), 0);
        cr_assert_eq(event_log_follow(&event_log, fixture.links[1], true), 0);

        add("frozen", "a", "n", getuid() + 1, NULL);
        add("thawed", "b", "n", getuid(), NULL);

        first = link_fixture_receive(&fixture, own);
        cr_assert_not_null(first);
        json_object *parameters = json_object_object_get(first, "parameters");
        cr_assert_str_eq(text(events_of(parameters), 0, "event"), "thawed");
        cr_assert(json_object_get_boolean(json_object_object_get(first, "continues")));
        none = link_fixture_receive(&fixture, own);
        cr_assert_null(none);

        for (size_t i = 0; i < 2; i++) {
                second = link_fixture_receive(&fixture, all);
                cr_assert_not_null(second);
                parameters = json_object_object_get(second, "parameters");
                cr_assert_str_eq(text(events_of(parameters), 0, "event"), i == 0 ? "frozen" : "thawed");
                json_object_put(TAKE_PTR(second));
        }
        (void) close(own);
        (void) close(all);
}

Test(event_log, a_follower_goes_away) {
        int a = link_fixture_call(&fixture, true), b = link_fixture_call(&fixture, true);

        cr_assert_eq(event_log_follow(&event_log, fixture.links[0], false), 0);
        cr_assert_eq(event_log_follow(&event_log, fixture.links[1], false), 0);
        (void) close(a);
        link_fixture_pump(&fixture);
        add("frozen", "a", "n", getuid(), NULL);
        json_object_put(link_fixture_receive(&fixture, b));
        (void) close(b);
        link_fixture_pump(&fixture);
        cr_assert_null(event_log.followers);
        add("thawed", "a", "n", getuid(), NULL);
}

/* It must not make the daemon hold more and more. */
Test(event_log, a_follower_that_does_not_read) {
        int fd = link_fixture_call(&fixture, true);
        unsigned n = 0;

        cr_assert_eq(event_log_follow(&event_log, fixture.links[0], false), 0);
        while (event_log.followers) {
                add("frozen", "a", "n", getuid(), NULL);
                cr_assert_leq(varlink_link_queued(fixture.links[0]), 2 * MIB);
                cr_assert_lt(n++, 100000);
        }
        (void) close(fd);
        link_fixture_pump(&fixture);
}
