/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "agent/network.h"
#include "agent/setup.h"

TestSuite(network, .timeout = 20);

Test(network, pauses) {
        uint64_t pause = 0, total = 0;

        pause = network_next_pause(0, pause);
        cr_assert(pause > 0 && pause <= 100 * USEC_PER_MSEC);
        for (int i = 0; i < 20; i++) {
                uint64_t next = network_next_pause(USEC_PER_SEC, pause);

                cr_assert(next == 2 * pause || (next >= pause && next == 5 * USEC_PER_SEC));
                total += pause = next;
        }
        cr_assert(total > 60 * USEC_PER_SEC);
        cr_assert_eq(network_next_pause(20 * USEC_PER_SEC, pause), 0, "a good one");
}

Test(network, none) {
        Network n;

        cr_assert_eq(network_init(&n, -EBADF), 0);
        cr_assert_eq(network_deadline(&n), USEC_INFINITY);
        network_on_death(&n, 0);
        network_on_death(&n, 77);
        cr_assert_eq(network_deadline(&n), USEC_INFINITY);
        cr_assert_null(getenv("NODE_USE_ENV_PROXY"));
}

static int parse(SetupArguments *ret, const char *const words[]) {
        int n = 0;

        while (words[n])
                n++;
        return setup_parse(n, (char **) words, ret);
}

Test(network, arguments) {
        SetupArguments a;

        cr_assert_eq(parse(&a, (const char *const[]) { "agent", "3", NULL }), 0);
        cr_assert(streq(a.socket, "3") && !a.list && !a.filter && !a.network);
        cr_assert_eq(parse(&a, (const char *const[]) { "agent", "3", "network=9", NULL }), 0);
        cr_assert(streq(a.socket, "3") && !a.list && !a.filter && streq(a.network, "9"));
        cr_assert_eq(parse(&a, (const char *const[]) { "agent", "3", "4", "5", NULL }), 0);
        cr_assert(streq(a.socket, "3") && streq(a.list, "4") && streq(a.filter, "5") && !a.network);
        cr_assert_eq(parse(&a, (const char *const[]) { "agent", "3", "4", "5", "network=6", NULL }), 0);
        cr_assert(streq(a.socket, "3") && streq(a.list, "4") && streq(a.filter, "5") && streq(a.network, "6"));

        cr_assert(parse(&a, (const char *const[]) { "agent", NULL }) < 0);
        cr_assert(parse(&a, (const char *const[]) { "agent", "network=6", "3", "4", "5", NULL }) < 0);
        cr_assert(parse(&a, (const char *const[]) { "agent", "3", "4", NULL }) < 0);
        cr_assert(parse(&a, (const char *const[]) { "agent", "3", "4", "network=6", NULL }) < 0);
}
