/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "lib/network-policy.h"

TestSuite(network_policy, .timeout = 20);

/* Space-separated rules; a caller's list of NULL does not narrow. */
static void add_all(NetworkList *l, const char *texts) {
        _cleanup_free_ char *why = NULL;

        for (size_t n; *texts; texts += n + (texts[n] == ' ')) {
                n = strcspn(texts, " ");
                cr_assert_eq(network_list_add(l, texts, n, &why), 0, "%s", why);
        }
}

static NetworkPolicy make(const char *environment, const char *caller, const char *granted) {
        NetworkPolicy p = { .narrowed = caller };

        add_all(&p.environment, environment);
        add_all(&p.caller, caller ?: "");
        add_all(&p.granted, granted);
        return p;
}

static NetworkHost host(const char *text) {
        NetworkHost h;

        cr_assert_eq(network_host_parse(text, strlen(text), &h), 0, "'%s'", text);
        return h;
}

typedef struct DecideCase {
        const char *environment, *caller, *granted;
        const char *host;
        uint16_t port;
        NetworkVerdict verdict;
} DecideCase;

static const DecideCase decide_cases[] = {
        { "", NULL, "", "a.org", 443, NETWORK_REFUSED_NOT_LISTED },
        { "a.org", NULL, "", "a.org", 443, NETWORK_ALLOWED },
        { "a.org", NULL, "", "a.org", 22, NETWORK_REFUSED_NOT_LISTED },
        { "a.org", NULL, "", "b.org", 443, NETWORK_REFUSED_NOT_LISTED },
        { "a.org !a.org:80", NULL, "", "a.org", 80, NETWORK_REFUSED_EXCEPTION },
        { "!a.org", NULL, "", "a.org", 443, NETWORK_REFUSED_EXCEPTION },
        /* The caller narrows. */
        { "a.org b.org", "a.org", "", "a.org", 443, NETWORK_ALLOWED },
        { "a.org b.org", "a.org", "", "b.org", 443, NETWORK_REFUSED_NARROWED },
        { "a.org", "", "", "a.org", 443, NETWORK_REFUSED_NARROWED },
        { "*.a.org", "*.b.a.org", "", "c.b.a.org", 443, NETWORK_ALLOWED },
        { "*.a.org", "*.b.a.org", "", "b.a.org", 443, NETWORK_REFUSED_NARROWED },
        { "a.org", "a.org:80", "", "a.org", 443, NETWORK_REFUSED_NARROWED },
        { "a.org", "a.org !a.org:80", "", "a.org", 80, NETWORK_REFUSED_EXCEPTION },
        /* And never widens. */
        { "a.org", "b.org", "", "b.org", 443, NETWORK_REFUSED_NOT_LISTED },
        { "a.org !b.a.org", "b.a.org", "", "b.a.org", 443, NETWORK_REFUSED_EXCEPTION },
        { "a.org", "a.org:22", "", "a.org", 22, NETWORK_REFUSED_NOT_LISTED },
        { "", "!a.org", "", "a.org", 443, NETWORK_REFUSED_EXCEPTION },
        /* A grant is above both. */
        { "", NULL, "a.org", "a.org", 443, NETWORK_ALLOWED },
        { "", "", "a.org", "a.org", 443, NETWORK_ALLOWED },
        { "!a.org", "!a.org", "a.org", "a.org", 443, NETWORK_ALLOWED },
        { "a.org", "a.org", "!a.org", "a.org", 443, NETWORK_REFUSED_EXCEPTION },
        { "a.org", NULL, "a.org !a.org", "a.org", 443, NETWORK_REFUSED_EXCEPTION },
        /* About the rest the others decide. */
        { "a.org", NULL, "b.org !c.org", "a.org", 443, NETWORK_ALLOWED },
        { "a.org", NULL, "a.org:22", "a.org", 443, NETWORK_ALLOWED },
        { "a.org", "b.org", "a.org:22", "a.org", 443, NETWORK_REFUSED_NARROWED },
        { "b.org", NULL, "a.org:22", "a.org", 443, NETWORK_REFUSED_NOT_LISTED },
        /* Addresses are hosts as any. */
        { "10.0.0.1:5432", NULL, "", "10.0.0.1", 5432, NETWORK_ALLOWED },
        { "10.0.0.1:5432", "10.0.0.1:5432", "", "[::ffff:10.0.0.1]", 5432, NETWORK_ALLOWED },
        { "10.0.0.1:5432", NULL, "", "10.0.0.1", 443, NETWORK_REFUSED_NOT_LISTED },
};

Test(network_policy, who_has_what_say) {
        for (size_t i = 0; i < ELEMENTSOF(decide_cases); i++) {
                const DecideCase *c = decide_cases + i;
                _cleanup_(network_policy_done) NetworkPolicy p = make(c->environment, c->caller, c->granted);
                NetworkHost h = host(c->host);

                cr_assert_eq(network_policy_decide(&p, &h, c->port), c->verdict, "case %zu: %s", i,
                             network_verdict_to_string(network_policy_decide(&p, &h, c->port)));
        }
}

Test(network_policy, a_caller_that_does_not_narrow_does_not_count) {
        _cleanup_(network_policy_done) NetworkPolicy p = make("a.org", "!a.org", "");
        NetworkHost h = host("a.org");

        cr_assert_eq(network_policy_decide(&p, &h, 443), NETWORK_REFUSED_EXCEPTION);
        p.narrowed = false;
        cr_assert_eq(network_policy_decide(&p, &h, 443), NETWORK_ALLOWED);
}

typedef struct AddressCase {
        const char *environment, *caller, *granted;
        const char *host, *address; /* asked on port 443 */
        NetworkVerdict public, special;
} AddressCase;

#define BOTH(v) v, v

static const AddressCase address_cases[] = {
        { "a.org", NULL, "", "a.org", "192.0.2.1", NETWORK_ALLOWED, NETWORK_REFUSED_SPECIAL_ADDRESS },
        { "a.org", NULL, "", "a.org", "::1", NETWORK_ALLOWED, NETWORK_REFUSED_SPECIAL_ADDRESS },
        { "", NULL, "a.org", "a.org", "192.0.2.1", NETWORK_ALLOWED, NETWORK_REFUSED_SPECIAL_ADDRESS },
        /* Not without the name. */
        { "192.0.2.1", NULL, "", "a.org", "192.0.2.1", BOTH(NETWORK_REFUSED_NOT_LISTED) },
        { "a.org", "b.org", "", "a.org", "192.0.2.1", BOTH(NETWORK_REFUSED_NARROWED) },
        { "!a.org", NULL, "192.0.2.1", "a.org", "192.0.2.1", BOTH(NETWORK_REFUSED_EXCEPTION) },
        /* Exceptions for it, whoever allowed the name. */
        { "a.org !192.0.2.1", NULL, "", "a.org", "192.0.2.1", BOTH(NETWORK_REFUSED_EXCEPTION) },
        { "a.org !192.0.2.1", NULL, "", "a.org", "192.0.2.2", NETWORK_ALLOWED, NETWORK_REFUSED_SPECIAL_ADDRESS },
        { "a.org !192.0.2.1:80", NULL, "", "a.org", "192.0.2.1", NETWORK_ALLOWED, NETWORK_REFUSED_SPECIAL_ADDRESS },
        { "a.org", "a.org !192.0.2.1", "", "a.org", "192.0.2.1", BOTH(NETWORK_REFUSED_EXCEPTION) },
        { "a.org", NULL, "!192.0.2.1", "a.org", "192.0.2.1", BOTH(NETWORK_REFUSED_EXCEPTION) },
        { "!192.0.2.1", NULL, "a.org", "a.org", "192.0.2.1", BOTH(NETWORK_REFUSED_EXCEPTION) },
        { "!192.0.2.1", NULL, "a.org 192.0.2.1", "a.org", "192.0.2.1", BOTH(NETWORK_ALLOWED) },
        /* A special one has to be listed itself, by all who have a say and with the port. */
        { "a.org 192.0.2.1", NULL, "", "a.org", "192.0.2.1", BOTH(NETWORK_ALLOWED) },
        { "a.org 192.0.2.1", NULL, "", "a.org", "::ffff:192.0.2.1", BOTH(NETWORK_ALLOWED) },
        { "a.org 192.0.2.1:80", NULL, "", "a.org", "192.0.2.1", NETWORK_ALLOWED, NETWORK_REFUSED_SPECIAL_ADDRESS },
        { "a.org 192.0.2.1", "a.org", "", "a.org", "192.0.2.1", NETWORK_ALLOWED, NETWORK_REFUSED_SPECIAL_ADDRESS },
        { "a.org", "a.org 192.0.2.1", "", "a.org", "192.0.2.1", NETWORK_ALLOWED, NETWORK_REFUSED_SPECIAL_ADDRESS },
        { "a.org 192.0.2.1", "a.org 192.0.2.1", "", "a.org", "192.0.2.1", BOTH(NETWORK_ALLOWED) },
        { "a.org", "a.org", "192.0.2.1", "a.org", "192.0.2.1", BOTH(NETWORK_ALLOWED) },
        /* Asked for by its number. */
        { "192.0.2.1", NULL, "", "192.0.2.1", "192.0.2.1", BOTH(NETWORK_ALLOWED) },
        { "192.0.2.1 192.0.2.2", NULL, "", "192.0.2.1", "192.0.2.2", BOTH(NETWORK_REFUSED_NOT_LISTED) },
        { "", NULL, "", "192.0.2.1", "192.0.2.1", BOTH(NETWORK_REFUSED_NOT_LISTED) },
};

Test(network_policy, what_a_name_leads_to) {
        for (size_t i = 0; i < ELEMENTSOF(address_cases); i++) {
                const AddressCase *c = address_cases + i;
                _cleanup_(network_policy_done) NetworkPolicy p = make(c->environment, c->caller, c->granted);
                NetworkHost h = host(c->host), address = host(c->address);
                NetworkVerdict public, special;

                public = network_policy_decide_address(&p, &h, &address.address, 443, /* special= */ false);
                special = network_policy_decide_address(&p, &h, &address.address, 443, /* special= */ true);
                cr_assert_eq(public, c->public, "case %zu: %s", i, network_verdict_to_string(public));
                cr_assert_eq(special, c->special, "case %zu: %s", i, network_verdict_to_string(special));
        }
}

Test(network_policy, verdicts_have_words) {
        for (NetworkVerdict v = 0; v < _NETWORK_VERDICT_MAX; v++)
                cr_assert_eq(network_verdict_from_string(network_verdict_to_string(v)), v);

        cr_assert_eq(network_verdict_from_string("maybe"), _NETWORK_VERDICT_INVALID);
}
