/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "proxy/settings.h"

TestSuite(settings, .timeout = 20);

#define POLICY "\"policy\":{\"environment\":[\"a.example\",\"!b.example\"],\"caller\":null,\"granted\":[]}"
#define USED "{\"connections_open\":2,\"connections\":17,\"refused\":1,\"failed\":0,\"bytes_in\":5120,\"bytes_out\":880}"
#define CREDENTIAL "{\"host\":\"A.example\",\"port\":80,\"name\":\"X-Key\",\"value\":\"v\"}"

static int parse(const char *text, bool may_use, Settings *ret, char **reterr_why) {
        return settings_parse(text, strlen(text), may_use, ret, reterr_why);
}

Test(settings, all_of_it) {
        _cleanup_(settings_done) Settings s = {};
        NetworkHost host;
        char *why;

        cr_assert_eq(parse("{" POLICY ",\"limits\":{\"connections\":3},\"used\":" USED ",\"credentials\":[" CREDENTIAL "]}",
                           true, &s, &why), 0);
        cr_assert(!s.policy.narrowed && s.policy.environment.n_rules == 2 && s.limits.connections == 3);
        cr_assert(s.used.connections == 17 && s.used.connections_open == 0 && s.used.bytes_in == 5120);
        cr_assert_eq(network_host_parse("a.example", 9, &host), 0);
        cr_assert_str_eq(settings_credential(&s, &host, 80)->value, "v");
        cr_assert_null(settings_credential(&s, &host, 443));
}

Test(settings, the_least) {
        _cleanup_(settings_done) Settings s = {};
        char *why;

        cr_assert_eq(parse("{\"policy\":{\"environment\":[],\"caller\":[],\"granted\":[]},\"limits\":{}}", false, &s, &why), 0);
        cr_assert(s.policy.narrowed && s.n_credentials == 0 && s.limits.connections == network_limits_default.connections);
}

Test(settings, what_is_refused) {
        static const struct {
                const char *text, *why; /* how the sentence begins */
                bool may_not_use;
        } table[] = {
                { "", "it is no JSON" },
                { "[]", "the whole" },
                { "{" POLICY "}", "limits" },
                { "{\"limits\":{}}", "policy" },
                { "{" POLICY ",\"limits\":{},\"more\":1}", "more" },
                { "{" POLICY ",\"limits\":{\"connections\":0}}", "limits: connections" },
                { "{" POLICY ",\"limits\":{},\"used\":{}}", "used" },
                { "{" POLICY ",\"limits\":{},\"used\":" USED "}", "used", true },
                { "{\"policy\":{\"environment\":[]},\"limits\":{}}", "policy.granted" },
                { "{\"policy\":{\"environment\":[1],\"granted\":[]},\"limits\":{}}", "policy.environment[0]" },
                { "{\"policy\":{\"environment\":[],\"granted\":[\"*.org\"]},\"limits\":{}}", "policy.granted[0]: " },
                { "{\"policy\":{\"environment\":[],\"caller\":[\"a\\u0000.example\"],\"granted\":[]},\"limits\":{}}",
                  "policy.caller[0]: " },
                { "{" POLICY ",\"limits\":{},\"credentials\":[{}]}", "credentials[0]." },
                { "{" POLICY ",\"limits\":{},\"credentials\":[1]}", "credentials[0]." },
                { "{" POLICY ",\"limits\":{},\"credentials\":[" CREDENTIAL ",{\"host\":\"a b\",\"port\":80,\"name\":\"X\","
                  "\"value\":\"v\"}]}", "credentials[1].host" },
                { "{" POLICY ",\"limits\":{},\"credentials\":[{\"host\":\"a.example\",\"port\":0,\"name\":\"X\","
                  "\"value\":\"v\"}]}", "credentials[0].port" },
                { "{" POLICY ",\"limits\":{},\"credentials\":[{\"host\":\"a.example\",\"port\":80,\"name\":\"host\","
                  "\"value\":\"v\"}]}", "credentials[0]: " },
                { "{" POLICY ",\"limits\":{},\"credentials\":[{\"host\":\"a.example\",\"port\":80,\"name\":\"X\","
                  "\"value\":\"a\\r\\nB: c\"}]}", "credentials[0]: " },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *why = NULL;
                Settings s = { .n_credentials = 77 };

                cr_assert_eq(parse(table[i].text, !table[i].may_not_use, &s, &why), -EINVAL, "%s", table[i].text);
                cr_assert(why && strncmp(why, table[i].why, strlen(table[i].why)) == 0, "%s: %s", table[i].text, why);
                cr_assert_eq(s.n_credentials, 77, "left alone");
        }
}
