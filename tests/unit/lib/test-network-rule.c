/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "lib/network-rule.h"

TestSuite(network_rule, .timeout = 20);

typedef struct RuleCase {
        const char *text;
        const char *canonical; /* the same where NULL */
} RuleCase;

static const RuleCase good[] = {
        { "example.org" },
        { "!example.org" },
        { "Example.ORG.:8080", "example.org:8080" },
        { "localhost:8080" },
        { "*.example.org" },
        { "!*.example.org:22" },
        { "*.Example.org.", "*.example.org" },
        { "*.b\xc3\xbc" "cher.example:443", "*.xn--bcher-kva.example:443" },
        { "p\xd0\xb0ypal.com", "xn--pypal-4ve.com" },
        { "a:1" },
        { "a:65535" },
        { "127.0.0.1" },
        { "!169.254.169.254" },
        { "10.0.0.1:5432" },
        { "::1", "[::1]" },
        { "[::1]" },
        { "[::1]:80" },
        { "::1:80", "[::1:80]" },
        { "![2001:DB8::1]:443", "![2001:db8::1]:443" },
        { "[::ffff:10.0.0.1]:80", "10.0.0.1:80" },
};

typedef struct FaultCase {
        const char *text;
        size_t size;
        const char *why; /* is part of the sentence */
} FaultCase;

#define FAULT(s, why) { s, sizeof(s) - 1, why }

static const FaultCase faults[] = {
        FAULT("", "'' is no network rule: it names no host"),
        FAULT("!", "names no host"),
        FAULT(":80", "names no host"),
        FAULT("*.", "names no host"),
        FAULT("!:80", "names no host"),
        FAULT("*", "would be everything"),
        FAULT("!*", "would be everything"),
        FAULT("*:443", "would be everything"),
        FAULT("*.org", "'*.org' is no network rule: that is too much at once"),
        FAULT("*.org.", "too much at once"),
        FAULT("!*.org:80", "too much at once"),
        FAULT("*.\xc3\xa9", "too much at once"),
        FAULT("*a.org", "may only stand"),
        FAULT("a.*.org", "may only stand"),
        FAULT("*.*.a.org", "may only stand"),
        FAULT("*\xe3\x80\x82" "a.org", "may only stand"),
        FAULT("*.127.0.0.1", "below an address"),
        FAULT("*.[::1]:80", "neither a name nor"),
        FAULT("*.::1", "below an address"),
        FAULT("a:", "its port"),
        FAULT("a:0", "its port"),
        FAULT("a:65536", "its port"),
        FAULT("a:99999", "its port"),
        FAULT("a:4294967376", "its port"),
        FAULT("a:080", "its port"),
        FAULT("a:+80", "its port"),
        FAULT("a:-1", "its port"),
        FAULT("a: 80", "its port"),
        FAULT("a:80 ", "its port"),
        FAULT("a:80\n", "its port"),
        FAULT("a:8\0", "its port"),
        FAULT("a:http", "its port"),
        FAULT("a:0x50", "its port"),
        FAULT("[::1]:", "its port"),
        FAULT("[::1]:0", "its port"),
        FAULT("[::1]80", "neither a name nor"),
        FAULT("[::1", "neither a name nor"),
        FAULT("[::1]:80:80", "its port"),
        FAULT("a:80:80", "neither a name nor"),
        FAULT("::1%lo", "neither a name nor"),
        FAULT("https://a.org", "not a URL"),
        FAULT("a.org/", "not a URL"),
        FAULT("10.0.0.0/8", "not a URL"),
        FAULT("user@a.org:80", "not a URL"),
        FAULT("a.org b.org", "has a space"),
        FAULT(" a.org", "has a space"),
        FAULT("! a.org", "has a space"),
        FAULT("!!a.org", "neither a name nor"),
        FAULT("a.org\0", "neither a name nor"),
        FAULT("a.org\r\n", "'a.org\\r\\n' is no network rule"),
        FAULT("\x1b[0m\xff", "'\\x1b[0m\\xff' is no network rule"),
        FAULT("127.1:80", "neither a name nor"),
};

static void add(NetworkList *l, const char *text) {
        _cleanup_free_ char *why = NULL;

        cr_assert_eq(network_list_add(l, text, strlen(text), &why), 0, "'%s': %s", text, why);
        cr_assert_null(why);
}

static NetworkMatch match(const NetworkList *l, const char *text, uint16_t port) {
        NetworkHost host;

        cr_assert_eq(network_host_parse(text, strlen(text), &host), 0, "'%s'", text);
        return network_list_match(l, &host, port);
}

Test(network_rule, rules_have_one_form) {
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                const char *canonical = good[i].canonical ?: good[i].text;
                _cleanup_(network_list_done) NetworkList l = {};
                char text[NETWORK_RULE_SIZE];

                add(&l, good[i].text);
                cr_assert_str_eq(network_rule_format(l.rules, text), canonical);
                add(&l, text);
                cr_assert_eq(l.n_rules, 2);
                cr_assert_str_eq(network_rule_format(l.rules + 1, text), canonical);
        }
}

Test(network_rule, faults_are_explained) {
        _cleanup_(network_list_done) NetworkList l = {};

        add(&l, "before.example");
        for (size_t i = 0; i < ELEMENTSOF(faults); i++) {
                _cleanup_free_ char *why = NULL;

                cr_assert_eq(network_list_add(&l, faults[i].text, faults[i].size, &why), -EINVAL, "'%s'", faults[i].text);
                cr_assert(why && strstr(why, faults[i].why), "'%s': %s", faults[i].text, why);
        }
        cr_assert_eq(l.n_rules, 1);
}

Test(network_rule, a_long_text_is_quoted_in_part) {
        _cleanup_(network_list_done) NetworkList l = {};
        _cleanup_free_ char *why = NULL;
        char text[5000];

        memset(text, 0x01, sizeof(text));
        cr_assert_eq(network_list_add(&l, text, sizeof(text), &why), -EINVAL);
        cr_assert_lt(strlen(why), 600);
        cr_assert(strstr(why, "\\x01'... is no network rule"));
}

Test(network_rule, the_longest_text_fits) {
        _cleanup_(network_list_done) NetworkList l = {};
        char text[400] = "!*.", formatted[NETWORK_RULE_SIZE];

        for (size_t i = 0; i < NETWORK_NAME_MAX; i++)
                text[3 + i] = i % 2 ? '.' : 'a';
        strcpy(text + 3 + NETWORK_NAME_MAX, ":65535");
        add(&l, text);
        cr_assert_str_eq(network_rule_format(l.rules, formatted), text);
        cr_assert_eq(strlen(formatted), NETWORK_RULE_SIZE - 1);
}

Test(network_rule, names_match_whole) {
        _cleanup_(network_list_done) NetworkList l = {};

        add(&l, "example.org");
        cr_assert_eq(match(&l, "EXAMPLE.org.", 443), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "www.example.org", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "badexample.org", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "example.or", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "example.org.evil.net", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "ex\xd0\xb0mple.org", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "127.0.0.1", 443), NETWORK_MATCH_NONE);
}

Test(network_rule, subdomains_match_at_any_depth) {
        _cleanup_(network_list_done) NetworkList l = {};

        add(&l, "*.example.org");
        cr_assert_eq(match(&l, "a.example.org", 443), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "c.b.a.example.org", 80), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "example.org", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "aexample.org", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "a.example.net", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "a.example.org.net", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "org", 443), NETWORK_MATCH_NONE);
}

Test(network_rule, ports) {
        _cleanup_(network_list_done) NetworkList l = {};

        add(&l, "web.org");
        add(&l, "db.org:5432");
        add(&l, "*.any.org:8080");
        add(&l, "part.org");
        add(&l, "part.org:22");
        add(&l, "!part.org:80");
        add(&l, "none.org:8080");
        add(&l, "none.org");
        add(&l, "!none.org");

        cr_assert_eq(match(&l, "web.org", 443), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "web.org", 80), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "web.org", 8443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "web.org", 0), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "db.org", 5432), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "db.org", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "x.any.org", 8080), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "x.any.org", 80), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "part.org", 443), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "part.org", 22), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "part.org", 80), NETWORK_MATCH_EXCEPTION);
        cr_assert_eq(match(&l, "none.org", 8080), NETWORK_MATCH_EXCEPTION);
        cr_assert_eq(match(&l, "none.org", 443), NETWORK_MATCH_EXCEPTION);
        cr_assert_eq(match(&l, "none.org", 1), NETWORK_MATCH_EXCEPTION);
}

Test(network_rule, addresses) {
        _cleanup_(network_list_done) NetworkList l = {};

        add(&l, "10.0.0.1:5432");
        add(&l, "[::1]");
        add(&l, "!192.0.2.1");
        add(&l, "192.0.2.1");

        cr_assert_eq(match(&l, "10.0.0.1", 5432), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "::ffff:10.0.0.1", 5432), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "10.0.0.1", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "10.0.0.2", 5432), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "0:0::1", 443), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&l, "::2", 443), NETWORK_MATCH_NONE);
        cr_assert_eq(match(&l, "192.0.2.1", 9), NETWORK_MATCH_EXCEPTION);
        cr_assert_eq(match(&l, "a.org", 443), NETWORK_MATCH_NONE);
}

/* An exception wins wherever it stands. */
Test(network_rule, order_does_not_matter) {
        static const char *const rules[] = { "*.example.org", "!*.internal.example.org", "a.internal.example.org" };
        static const int orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

        for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
                _cleanup_(network_list_done) NetworkList l = {};

                for (size_t j = 0; j < 3; j++)
                        add(&l, rules[orders[i][j]]);
                cr_assert_eq(match(&l, "a.internal.example.org", 443), NETWORK_MATCH_EXCEPTION);
                cr_assert_eq(match(&l, "internal.example.org", 443), NETWORK_MATCH_ALLOW);
                cr_assert_eq(match(&l, "www.example.org", 443), NETWORK_MATCH_ALLOW);
        }
}

Test(network_rule, a_list_is_bounded) {
        _cleanup_(network_list_done) NetworkList l = {};
        _cleanup_free_ char *why = NULL;
        char text[32];

        for (unsigned i = 0; i < NETWORK_RULES_MAX; i++) {
                snprintf(text, sizeof(text), "h%u.example.org:%u", i, i + 1);
                add(&l, text);
        }
        cr_assert_eq(network_list_add(&l, "a.org", 5, &why), -E2BIG);
        cr_assert_str_eq(why, "more than 1024 network rules");

        for (unsigned i = 0; i < NETWORK_RULES_MAX; i++) {
                snprintf(text, sizeof(text), "h%u.example.org", i);
                cr_assert_eq(match(&l, text, (uint16_t) (i + 1)), NETWORK_MATCH_ALLOW);
                cr_assert_eq(match(&l, text, (uint16_t) (i + 2)), NETWORK_MATCH_NONE);
        }
}

Test(network_rule, an_empty_list_matches_nothing) {
        NetworkList l = {};

        cr_assert_eq(match(&l, "a.org", 443), NETWORK_MATCH_NONE);
        network_list_done(&l);
        network_list_done(&l);
}

Test(network_rule, a_copy_stands_alone) {
        NetworkList from = {};
        _cleanup_(network_list_done) NetworkList copy = {};

        add(&from, "*.example.org:8080");
        add(&from, "192.0.2.1");
        cr_assert_eq(network_list_copy(&from, &copy), 0);
        network_list_done(&from);

        cr_assert_eq(copy.n_rules, 2);
        cr_assert_eq(match(&copy, "www.example.org", 8080), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&copy, "192.0.2.1", 443), NETWORK_MATCH_ALLOW);
        cr_assert_eq(match(&copy, "example.org", 8080), NETWORK_MATCH_NONE);
}

Test(network_rule, what_is_appended_fits_or_leaves_the_list) {
        _cleanup_(network_list_done) NetworkList l = {}, one = {}, none = {};

        add(&one, "a.org");
        for (unsigned i = 0; i < NETWORK_RULES_MAX - 1; i++)
                cr_assert_eq(network_list_append(&l, &one), 0);
        cr_assert_eq(network_list_append(&one, &l), 0);
        cr_assert_eq(one.n_rules, NETWORK_RULES_MAX);

        cr_assert_eq(network_list_append(&l, &one), -E2BIG);
        cr_assert_eq(l.n_rules, NETWORK_RULES_MAX - 1);
        cr_assert_eq(network_list_append(&one, &none), 0);
        cr_assert_eq(match(&l, "a.org", 443), NETWORK_MATCH_ALLOW);
}
