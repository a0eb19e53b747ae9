/* SPDX-License-Identifier: MIT */

/* When operations are given up, at times that are made up. The session has no agent, so none of them begins. */

#include <criterion/criterion.h>

#include "daemon/session-operation.h"
#include "daemon/session-private.h"
#include "lib/buffer.h"
#include "lib/fd-util.h"

static Session s;
static Buffer given_up; /* "name " of each, in order */
static const char *last_error;

static void setup(void) {
        s = (Session){ .state = SESSION_RUNNING, .timer_at = USEC_INFINITY };
}

static void teardown(void) {
        session_operations_fail_all(&s, "ended", NULL);
        buffer_done(&given_up);
}

TestSuite(session_operation, .init = setup, .fini = teardown, .timeout = 20);

static void on_done(SessionOperation *op, const char *error, const char *text, json_object *report, void *userdata) {
        cr_assert_not_null(text ?: streq(error, "ended") ? "" : NULL);
        cr_assert_null(report);
        last_error = error;
        cr_assert_eq(buffer_printf(&given_up, "%s ", (const char *) userdata), 0);
}

/* As session_operate() has them, without its timer. */
static void queue(const char *name, uint64_t deadline) {
        SessionOperation *op, **end = &s.operations;

        cr_assert_eq(session_operation_new(json_object_new_object(), -EBADF, &op), 0);
        op->deadline = deadline;
        op->on_done = on_done;
        op->userdata = (char *) name;
        op->session = &s;
        while (*end)
                end = &(*end)->next;
        *end = op;
}

static void check(uint64_t now, const char *expected) {
        session_operations_on_time(&s, now);
        cr_assert(buffer_size(&given_up) == strlen(expected) &&
                                  memcmp(buffer_data(&given_up), expected, buffer_size(&given_up)) == 0,
                  "%.*s, not %s", (int) buffer_size(&given_up), buffer_data(&given_up), expected);
}

Test(session_operation, each_at_its_deadline) {
        queue("a", 300);
        queue("b", 100);
        queue("c", USEC_INFINITY);
        queue("d", 200);
        cr_assert_eq(session_operations_next_deadline(&s), 100);
        check(99, "");
        check(100, "b ");
        cr_assert_str_eq(last_error, SESSION_OPERATION_TIMED_OUT);
        cr_assert_eq(session_operations_next_deadline(&s), 200);
        check(1000, "b a d ");
        cr_assert_eq(session_operations_next_deadline(&s), USEC_INFINITY);
        check(USEC_INFINITY - 1, "b a d ");
}

Test(session_operation, one_that_gets_on_is_given_more_time) {
        queue("a", 100);
        s.operations->deadline = 200;
        check(150, "");
        cr_assert_eq(session_operations_next_deadline(&s), 200);
        check(200, "a ");
}

/* Also the one that is with the agent, after which the session is free for the next. */
Test(session_operation, the_one_that_runs) {
        queue("a", 100);
        queue("b", 500);
        s.operation_runs = true;
        s.operations->needs_drivers = true;
        cr_assert(session_operations_hold_turns(&s));
        check(100, "a ");
        cr_assert_not(s.operation_runs);
        cr_assert_not(session_operations_hold_turns(&s));
        check(499, "a ");
}
