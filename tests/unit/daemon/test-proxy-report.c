/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "daemon/proxy-report.h"

TestSuite(proxy_report, .timeout = 10);

static int parse(const char *text, ProxyRefusal *ret) {
        static json_object *json;

        json_object_putp(&json);
        json = NULL;
        return proxy_report_parse_refusal(text, strlen(text), ret, &json);
}

Test(proxy_report, refusal) {
        ProxyRefusal r = {};

        cr_assert_eq(parse("{\"host\":\"a.example\",\"port\":443,\"address\":null,\"verdict\":\"not-listed\",\"count\":2}", &r), 0);
        cr_assert_str_eq(r.host, "a.example");
        cr_assert_eq(r.port, 443);
        cr_assert_null(r.address);
        cr_assert_eq(r.verdict, NETWORK_REFUSED_NOT_LISTED);
        cr_assert_eq(r.count, 2);
}

/* It runs as the user, who may have it say anything. */
Test(proxy_report, refusals_that_are_none) {
        static const char *const texts[] = {
                "", "[]", "{}", "null", "{\"host\":\"a\"}",
                "{\"host\":\"a\",\"port\":443,\"verdict\":\"allowed\",\"count\":1}",
                "{\"host\":\"a\",\"port\":443,\"verdict\":\"perhaps\",\"count\":1}",
                "{\"host\":\"a\",\"port\":65536,\"verdict\":\"not-listed\",\"count\":1}",
                "{\"host\":\"a\",\"port\":-1,\"verdict\":\"not-listed\",\"count\":1}",
                "{\"host\":\"a\",\"port\":443,\"verdict\":\"not-listed\",\"count\":0}",
                "{\"host\":\"a\",\"port\":443,\"verdict\":\"not-listed\",\"count\":18446744073709551615}",
                "{\"host\":\"\",\"port\":443,\"verdict\":\"not-listed\",\"count\":1}",
                "{\"host\":\"a\\nb\",\"port\":443,\"verdict\":\"not-listed\",\"count\":1}",
                "{\"host\":\"\\u001b[31m\",\"port\":443,\"verdict\":\"not-listed\",\"count\":1}",
                "{\"host\":\"\u00e9\",\"port\":443,\"verdict\":\"not-listed\",\"count\":1}",
                "{\"host\":\"a\",\"port\":443,\"address\":\"\\t\",\"verdict\":\"not-listed\",\"count\":1}",
                "{\"host\":\"a\",\"port\":443,\"verdict\":\"not-listed\",\"count\":1,\"more\":1}",
        };
        char long_host[512];
        ProxyRefusal r = {};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                cr_assert_lt(parse(texts[i], &r), 0, "%s", texts[i]);
        (void) snprintf(long_host, sizeof(long_host),
                        "{\"host\":\"%0400d\",\"port\":443,\"verdict\":\"not-listed\",\"count\":1}", 0);
        cr_assert_eq(parse(long_host, &r), -EINVAL);
        cr_assert_null(r.host, "nothing is set");
}
