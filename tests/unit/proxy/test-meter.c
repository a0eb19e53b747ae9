/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "proxy/meter.h"

TestSuite(meter, .timeout = 20);

static Meter meter(uint64_t connections, uint64_t bytes) {
        NetworkLimits limits = network_limits_default;
        Meter m;

        limits.connections = connections;
        limits.bytes = bytes;
        meter_init(&m, &limits);
        return m;
}

static void check(const Meter *m, NetworkUsage expected) {
        cr_assert_eq(m->use.connections_open, expected.connections_open);
        cr_assert_eq(m->use.connections, expected.connections);
        cr_assert_eq(m->use.refused, expected.refused);
        cr_assert_eq(m->use.failed, expected.failed);
        cr_assert_eq(m->use.bytes_in, expected.bytes_in);
        cr_assert_eq(m->use.bytes_out, expected.bytes_out);
}

Test(meter, connections_at_once) {
        Meter m = meter(2, UINT64_MAX);

        cr_assert_eq(meter_open(&m), METER_OK);
        cr_assert_eq(meter_open(&m), METER_OK);
        cr_assert_eq(meter_open(&m), METER_CONNECTIONS);
        check(&m, (NetworkUsage) { .connections_open = 2, .connections = 2, .refused = 1 });
        meter_close(&m);
        cr_assert_eq(meter_open(&m), METER_OK);
        meter_fail(&m);
        meter_refuse(&m);
        check(&m, (NetworkUsage) { .connections_open = 1, .connections = 3, .refused = 2, .failed = 1 });
        cr_assert_eq(meter_open(&m), METER_OK, "one that failed is not open");
}

Test(meter, bytes_in_all) {
        Meter m = meter(2, 100);

        cr_assert_eq(meter_open(&m), METER_OK);
        cr_assert_eq(meter_bytes_left(&m), 100);
        cr_assert(meter_add_in(&m, 60));
        cr_assert(meter_add_out(&m, 39));
        cr_assert_eq(meter_bytes_left(&m), 1);
        cr_assert_eq(meter_open(&m), METER_OK, "there is some left");
        cr_assert(!meter_add_out(&m, 1));
        cr_assert_eq(meter_bytes_left(&m), 0);
        cr_assert_eq(meter_open(&m), METER_BYTES, "what is for good before what is for now");
        cr_assert(!meter_add_in(&m, 5), "more than there is, where it was read already");
        cr_assert_eq(meter_bytes_left(&m), 0);
        check(&m, (NetworkUsage) { .connections_open = 2, .connections = 2, .refused = 1, .bytes_in = 65, .bytes_out = 40 });
}

Test(meter, without_a_cap_nothing_ends) {
        Meter m = meter(2, UINT64_MAX);

        cr_assert(meter_add_in(&m, UINT64_MAX));
        cr_assert(meter_add_in(&m, UINT64_MAX));
        cr_assert(meter_add_out(&m, UINT64_MAX));
        cr_assert_eq(meter_bytes_left(&m), UINT64_MAX);
        cr_assert_eq(meter_open(&m), METER_OK);
        check(&m, (NetworkUsage) { .connections_open = 1, .connections = 1, .bytes_in = NETWORK_USAGE_MAX,
                                   .bytes_out = NETWORK_USAGE_MAX });
}

Test(meter, counters_stop_at_their_end) {
        Meter m = meter(2, UINT64_MAX);

        m.use.connections = m.use.refused = m.use.failed = NETWORK_USAGE_MAX;
        cr_assert_eq(meter_open(&m), METER_OK);
        meter_fail(&m);
        meter_refuse(&m);
        check(&m, (NetworkUsage) { .connections = NETWORK_USAGE_MAX, .refused = NETWORK_USAGE_MAX, .failed = NETWORK_USAGE_MAX });
}

Test(meter, no_more_connections_than_the_daemon_believes) {
        Meter m = meter(UINT64_MAX, UINT64_MAX);
        _cleanup_json_ json_object *o = NULL;
        NetworkUsage read;

        for (size_t i = 0; i < 2 * NETWORK_CONNECTIONS_MAX; i++)
                cr_assert_eq(meter_open(&m), i < NETWORK_CONNECTIONS_MAX ? METER_OK : METER_CONNECTIONS);
        (void) meter_add_in(&m, 7);
        meter_fail(&m);
        cr_assert_eq(network_usage_to_json(&m.use, &o), 0);
        cr_assert_eq(network_usage_from_json(o, &read), 0);
        check(&m, read);
}

Test(meter, every_verdict_has_words) {
        for (MeterVerdict v = 0; v < _METER_VERDICT_MAX; v++)
                cr_assert_not_null(meter_verdict_to_string(v));
}
