/* SPDX-License-Identifier: MIT */

/*
 * Hosts that a jail asks for and rules that anyone wrote: what is accepted has one form, which is plain ASCII and is
 * accepted again as the same; a fault is explained in printable ASCII; a list decides the same in another order and after
 * it went through texts; the caller's list never allows more. Of the lines the last is the host that is asked about,
 * those before are rules of the three lists in turn.
 */

#include "lib/network-policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint16_t ports[] = { 443, 80, 22, 8080 };

static void check_text(const char *s) {
        for (; *s; s++)
                assert_se(*s > 0x20 && *s < 0x7f && !strchr("/?#@\\%<>^|\"", *s) && !(*s >= 'A' && *s <= 'Z'));
}

static bool check_host(const char *text, size_t size, NetworkHost *ret) {
        char canonical[NETWORK_HOST_SIZE], again[NETWORK_HOST_SIZE];
        NetworkHost second;

        if (network_host_parse(text, size, ret) < 0)
                return false;

        network_host_format(ret, canonical);
        check_text(canonical);
        assert_se(strlen(canonical) > 0 && strlen(canonical) <= NETWORK_NAME_MAX);
        assert_se(ret->is_address || !strpbrk(canonical, ":[]*!"));

        assert_se(network_host_parse(canonical, strlen(canonical), &second) == 0);
        assert_se(network_host_equal(ret, &second));
        assert_se(streq(network_host_format(&second, again), canonical));
        return true;
}

static void check_rule(NetworkList *l, const char *text, size_t size) {
        char canonical[NETWORK_RULE_SIZE], again[NETWORK_RULE_SIZE];
        _cleanup_(network_list_done) NetworkList second = {};
        _cleanup_free_ char *why = NULL;
        int r;

        r = network_list_add(l, text, size, &why);
        assert_se((r < 0) == (why != NULL));
        for (const char *p = why; p && *p; p++)
                assert_se(*p >= 0x20 && *p < 0x7f);
        if (r < 0)
                return;

        check_text(network_rule_format(l->rules + l->n_rules - 1, canonical));
        assert_se(network_list_add(&second, canonical, strlen(canonical), &why) == 0);
        assert_se(streq(network_rule_format(second.rules, again), canonical));
}

/* By texts, last rule first. */
static void copy_reversed(const NetworkList *l, NetworkList *ret) {
        char text[NETWORK_RULE_SIZE];
        char *why;

        for (size_t i = l->n_rules; i-- > 0;) {
                network_rule_format(l->rules + i, text);
                assert_se(network_list_add(ret, text, strlen(text), &why) == 0);
        }
}

static void check_verdicts(NetworkPolicy *p, const NetworkHost *host, uint16_t port) {
        NetworkAddress loopback = network_address_v4((struct in_addr) { htonl(INADDR_LOOPBACK) });
        _cleanup_(network_policy_done) NetworkPolicy copy = { .narrowed = true };
        NetworkVerdict narrowed, wide, public, special;

        copy_reversed(&p->environment, &copy.environment);
        copy_reversed(&p->caller, &copy.caller);
        copy_reversed(&p->granted, &copy.granted);

        p->narrowed = true;
        narrowed = network_policy_decide(p, host, port);
        assert_se(network_policy_decide(&copy, host, port) == narrowed);
        public = network_policy_decide_address(p, host, &loopback, port, /* special= */ false);
        special = network_policy_decide_address(p, host, &loopback, port, /* special= */ true);
        assert_se(narrowed == NETWORK_ALLOWED || (public == narrowed && special == narrowed));
        assert_se(special != NETWORK_ALLOWED || public == NETWORK_ALLOWED);

        p->narrowed = false;
        wide = network_policy_decide(p, host, port);
        assert_se(narrowed != NETWORK_ALLOWED || wide == NETWORK_ALLOWED);
        assert_se(wide != NETWORK_REFUSED_NARROWED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(network_policy_done) NetworkPolicy p = {};
        NetworkList *lists[] = { &p.environment, &p.caller, &p.granted };
        const char *line = (const char *) data, *end = line + size, *newline;
        NetworkHost host;

        for (size_t i = 0; (newline = memchr(line, '\n', (size_t) (end - line))); i++) {
                (void) check_host(line, (size_t) (newline - line), &host);
                check_rule(lists[i % ELEMENTSOF(lists)], line, (size_t) (newline - line));
                line = newline + 1;
        }

        if (!check_host(line, (size_t) (end - line), &host))
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(ports); i++)
                check_verdicts(&p, &host, ports[i]);
        return 0;
}
