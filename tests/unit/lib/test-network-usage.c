/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "lib/network-usage.h"

TestSuite(network_usage, .timeout = 20);

static int read(const char *text, NetworkUsage *u) {
        _cleanup_json_ json_object *o = NULL;

        cr_assert_eq(json_parse(text, strlen(text), &o, NULL), 0, "%s", text);
        return network_usage_from_json(o, u);
}

#define OBJECT(open, all, refused, failed, in, out)                                                        \
        "{\"connections_open\":" open ",\"connections\":" all ",\"refused\":" refused ",\"failed\":" failed \
        ",\"bytes_in\":" in ",\"bytes_out\":" out "}"
#define MOST "9223372036854775807"

static const struct {
        const char *text;
        NetworkUsage usage;
} good[] = {
        { OBJECT("0", "0", "0", "0", "0", "0"), {} },
        { OBJECT("1", "2", "3", "1", "5", "6"), { 1, 2, 3, 1, 5, 6 } },
        { OBJECT("1024", "1024", "0", "1024", "0", "0"), { 1024, 1024, 0, 1024, 0, 0 } },
        { OBJECT("0", MOST, MOST, MOST, MOST, MOST),
          { 0, NETWORK_USAGE_MAX, NETWORK_USAGE_MAX, NETWORK_USAGE_MAX, NETWORK_USAGE_MAX, NETWORK_USAGE_MAX } },
};

Test(network_usage, good_both_ways) {
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                _cleanup_json_ json_object *o = NULL;
                NetworkUsage u;

                memset(&u, 0x55, sizeof(u));
                cr_assert_eq(read(good[i].text, &u), 0, "%s", good[i].text);
                cr_assert_eq(memcmp(&u, &good[i].usage, sizeof(u)), 0, "%s", good[i].text);
                cr_assert_eq(network_usage_to_json(&u, &o), 0);
                cr_assert_str_eq(json_text(o, NULL), good[i].text);
        }
}

static const char *const bad[] = {
        "[]", "null", "7", "\"\"", "{}",
        OBJECT("2", "1", "0", "0", "0", "0"),                   /* more open than made */
        OBJECT("1025", "2000", "0", "0", "0", "0"),             /* more than any session may have */
        OBJECT("0", "1", "0", "2", "0", "0"),                   /* more failed than made */
        OBJECT("-1", "1", "0", "0", "0", "0"),
        OBJECT("0", "9223372036854775808", "0", "0", "0", "0"),
        OBJECT("0", "0", "18446744073709551615", "0", "0", "0"),
        OBJECT("0", "0", "0", "0", "9223372036854775808", "0"),
        OBJECT("0", "0", "0", "0", "0", "9223372036854775808"),
        OBJECT("0", "0", "0", "0", "0", "-1"),
        OBJECT("0", "0", "0", "0", "1.5", "0"),
        OBJECT("0", "0", "0", "0", "1.0", "0"),
        OBJECT("0", "0", "0", "0", "1e3", "0"),
        OBJECT("0", "0", "0", "0", "\"1\"", "0"),
        OBJECT("0", "0", "0", "null", "0", "0"),
        OBJECT("[]", "0", "0", "0", "0", "0"),
        OBJECT("{}", "0", "0", "0", "0", "0"),
        OBJECT("true", "1", "0", "0", "0", "0"),
        OBJECT("0", "0", "0", "0", "0", "0,\"more\":1"),
        "{\"connections_open\":0,\"connections\":0,\"refused\":0,\"failed\":0,\"bytes_in\":0}",
        "{\"connections\":0,\"refused\":0,\"failed\":0,\"bytes_in\":0,\"bytes_out\":0}",
};

Test(network_usage, bad_changes_nothing) {
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                NetworkUsage u = { 1, 2, 3, 4, 5, 6 }, same = u;

                cr_assert_eq(read(bad[i], &u), -EINVAL, "%s", bad[i]);
                cr_assert_eq(memcmp(&u, &same, sizeof(u)), 0, "%s", bad[i]);
        }
}

Test(network_usage, sums_stop) {
        const uint64_t max = NETWORK_USAGE_MAX;
        const NetworkUsage u = { .bytes_in = max - 1, .bytes_out = 7 }, few = { .bytes_in = 3, .bytes_out = 4 };

        cr_assert_eq(network_usage_add(1, 2), 3);
        cr_assert_eq(network_usage_add(max - 1, 1), max);
        cr_assert_eq(network_usage_add(max, 1), max);
        cr_assert_eq(network_usage_add(max, max), max);
        cr_assert_eq(network_usage_add(UINT64_MAX, UINT64_MAX), max);
        cr_assert_eq(network_usage_add(0, UINT64_MAX), max);
        cr_assert_eq(network_usage_bytes(&u), max);
        cr_assert_eq(network_usage_bytes(&few), 7);
}
