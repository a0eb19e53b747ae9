/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "lib/network-limits.h"

#define S USEC_PER_SEC
#define NONE UINT64_MAX

TestSuite(network_limits, .timeout = 20);

static int read(const char *text, NetworkLimits *l, char **reterr_why) {
        _cleanup_json_ json_object *o = NULL;

        cr_assert_eq(json_parse(text, strlen(text), &o, NULL), 0, "%s", text);
        return network_limits_from_json(o, l, reterr_why);
}

static void check_equal(const NetworkLimits *a, const NetworkLimits *b, const char *text) {
        cr_assert_eq(a->connections, b->connections, "%s", text);
        cr_assert_eq(a->bytes_per_second, b->bytes_per_second, "%s", text);
        cr_assert_eq(a->bytes, b->bytes, "%s", text);
        cr_assert_eq(a->idle_usec, b->idle_usec, "%s", text);
        cr_assert_eq(a->total_usec, b->total_usec, "%s", text);
}

static const struct {
        const char *text;
        NetworkLimits limits;
} good[] = {
        { "{}", { 64, NONE, NONE, 60 * S, 3600 * S } },
        { "{\"connections\":null}", { 64, NONE, NONE, 60 * S, 3600 * S } },
        { "{\"connections\":1}", { 1, NONE, NONE, 60 * S, 3600 * S } },
        { "{\"connections\":1024}", { 1024, NONE, NONE, 60 * S, 3600 * S } },
        { "{\"rate_mbps\":0}", { 64, NONE, NONE, 60 * S, 3600 * S } },
        { "{\"rate_mbps\":0.0}", { 64, NONE, NONE, 60 * S, 3600 * S } },
        { "{\"rate_mbps\":0.001}", { 64, 1049, NONE, 60 * S, 3600 * S } },
        { "{\"rate_mbps\":2.5}", { 64, 2621440, NONE, 60 * S, 3600 * S } },
        { "{\"rate_mbps\":1048576}", { 64, UINT64_C(1) << 40, NONE, 60 * S, 3600 * S } },
        { "{\"transfer_mb\":0}", { 64, NONE, NONE, 60 * S, 3600 * S } },
        { "{\"transfer_mb\":1}", { 64, NONE, MIB, 60 * S, 3600 * S } },
        { "{\"transfer_mb\":16777216}", { 64, NONE, UINT64_C(1) << 44, 60 * S, 3600 * S } },
        { "{\"idle_seconds\":1}", { 64, NONE, NONE, S, 3600 * S } },
        { "{\"idle_seconds\":1.5}", { 64, NONE, NONE, 1500000, 3600 * S } },
        { "{\"idle_seconds\":31536000}", { 64, NONE, NONE, 31536000 * S, 3600 * S } },
        { "{\"total_seconds\":1}", { 64, NONE, NONE, 60 * S, S } },
        { "{\"total_seconds\":31536000}", { 64, NONE, NONE, 60 * S, 31536000 * S } },
        { "{\"connections\":3,\"rate_mbps\":1,\"transfer_mb\":2,\"idle_seconds\":4,\"total_seconds\":5}",
          { 3, MIB, 2 * MIB, 4 * S, 5 * S } },
};

Test(network_limits, good) {
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                NetworkLimits l = network_limits_default;
                _cleanup_free_ char *why = NULL;

                cr_assert_eq(read(good[i].text, &l, &why), 0, "%s: %s", good[i].text, why);
                cr_assert_null(why);
                check_equal(&l, &good[i].limits, good[i].text);
        }
}

#define CONNECTIONS "connections: must be a whole number from 1 to 1024"
#define RATE "rate_mbps: must be a number, 0 or from 0.001 to 1048576"
#define TRANSFER "transfer_mb: must be a whole number, 0 or from 1 to 16777216"
#define IDLE "idle_seconds: must be a number from 1 to 31536000"
#define TOTAL "total_seconds: must be a number from 1 to 31536000"

static const struct {
        const char *text, *why;
} bad[] = {
        { "[]", "must be an object" },
        { "null", "must be an object" },
        { "7", "must be an object" },
        { "{\"connections\":0}", CONNECTIONS },
        { "{\"connections\":1025}", CONNECTIONS },
        { "{\"connections\":-1}", CONNECTIONS },
        { "{\"connections\":2.0}", CONNECTIONS },
        { "{\"connections\":18446744073709551615}", CONNECTIONS },
        { "{\"connections\":\"3\"}", CONNECTIONS },
        { "{\"connections\":[]}", CONNECTIONS },
        { "{\"rate_mbps\":0.0009}", RATE },
        { "{\"rate_mbps\":-0.1}", RATE },
        { "{\"rate_mbps\":1048577}", RATE },
        { "{\"rate_mbps\":1e300}", RATE },
        { "{\"rate_mbps\":false}", RATE },
        { "{\"transfer_mb\":-1}", TRANSFER },
        { "{\"transfer_mb\":0.5}", TRANSFER },
        { "{\"transfer_mb\":16777217}", TRANSFER },
        { "{\"transfer_mb\":{}}", TRANSFER },
        { "{\"idle_seconds\":0}", IDLE },
        { "{\"idle_seconds\":0.99}", IDLE },
        { "{\"idle_seconds\":31536000.1}", IDLE },
        { "{\"total_seconds\":0}", TOTAL },
        { "{\"total_seconds\":31536001}", TOTAL },
        { "{\"connections\":3,\"total_seconds\":true}", TOTAL },
        { "{\"mbps\":3}", "'mbps': unknown key" },
        { "{\"connections\":3,\"\\u001b\":3}", "'\\x1b': unknown key" },
};

Test(network_limits, bad_says_why_and_changes_nothing) {
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                NetworkLimits l = { 1, 2, 3, 4, 5 }, same = l;
                _cleanup_free_ char *why = NULL;

                cr_assert_eq(read(bad[i].text, &l, &why), -EINVAL, "%s", bad[i].text);
                cr_assert_not_null(why);
                cr_assert_str_eq(why, bad[i].why);
                check_equal(&l, &same, bad[i].text);
        }
}

Test(network_limits, what_is_written_is_read_the_same) {
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                _cleanup_json_ json_object *o = NULL;
                NetworkLimits l = {};
                char *why = NULL;

                cr_assert_eq(network_limits_to_json(&good[i].limits, &o), 0);
                cr_assert_eq(read(json_text(o, NULL), &l, &why), 0, "%s", json_text(o, NULL));
                check_equal(&l, &good[i].limits, good[i].text);
        }
}

/* Odd numbers of bytes and µs, which no short number of MiB or seconds is. */
Test(network_limits, no_byte_is_lost) {
        for (uint64_t i = 0; i < 2000; i++) {
                NetworkLimits l = { 1 + i % 1024, (UINT64_C(1) << (11 + i % 29)) + i, (1 + i) * MIB, S + i * i * i * 777 + i,
                                    (31536000 - 1) * S + i },
                              again = {};
                _cleanup_json_ json_object *o = NULL;
                char *why = NULL;

                cr_assert_eq(network_limits_to_json(&l, &o), 0);
                cr_assert_eq(read(json_text(o, NULL), &again, &why), 0, "%s", json_text(o, NULL));
                check_equal(&again, &l, json_text(o, NULL));
        }
}

Test(network_limits, as_the_default_is_written) {
        _cleanup_json_ json_object *o = NULL;

        cr_assert_eq(network_limits_to_json(&network_limits_default, &o), 0);
        cr_assert_str_eq(json_text(o, NULL), "{\"connections\":64,\"rate_mbps\":0,\"transfer_mb\":0,\"idle_seconds\":60,"
                         "\"total_seconds\":3600}");
}
