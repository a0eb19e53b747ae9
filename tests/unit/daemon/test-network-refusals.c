/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <stdio.h>

#include "daemon/network-refusals.h"

TestSuite(network_refusals, .timeout = 10);

static void add(NetworkRefusals *r, const char *host, uint16_t port, NetworkVerdict verdict, uint64_t count) {
        cr_assert_eq(network_refusals_add(r, &(ProxyRefusal){
                                                             .host = host,
                                                             .port = port,
                                                             .verdict = verdict,
                                                             .count = count,
                                                             .address = verdict == NETWORK_REFUSED_SPECIAL_ADDRESS
                                                                                        ? "10.0.0.1" : NULL,
                                             }),
                     0);
}

static char *tell(NetworkRefusals *r) {
        _cleanup_(buffer_done) Buffer b = {};
        char *text;

        cr_assert_eq(network_refusals_tell(r, "python", &b), 0);
        cr_assert_eq(buffer_take(&b, &text, NULL), 0);
        return text;
}

Test(network_refusals, sentences) {
        NetworkRefusals r = {};
        _cleanup_free_ char *text = NULL;

        add(&r, "registry.example", 443, NETWORK_REFUSED_NOT_LISTED, 1);
        add(&r, "a.example", 80, NETWORK_REFUSED_NARROWED, 2);
        add(&r, "a.example", 80, NETWORK_REFUSED_NARROWED, 3);
        add(&r, "b.example", 80, NETWORK_REFUSED_EXCEPTION, 1);
        add(&r, "[::1]", 80, NETWORK_REFUSED_SPECIAL_ADDRESS, 1);
        text = tell(&r);
        cr_assert_str_eq(text, "network: refused registry.example:443 (not in the allow list of environment python)\n"
                               "network: refused a.example:80 (not in the list that this session was narrowed to), "
                               "5 times\n"
                               "network: refused b.example:80 (an exception in the allow list)\n"
                               "network: refused [::1]:80 (it leads to 10.0.0.1, which is not an address of the public "
                               "network)");
}

Test(network_refusals, told_once) {
        NetworkRefusals r = {};
        _cleanup_free_ char *first = NULL, *second = NULL;

        add(&r, "a.example", 80, NETWORK_REFUSED_NOT_LISTED, 1);
        first = tell(&r);
        second = tell(&r);
        cr_assert_not_null(strstr(first, "a.example"));
        cr_assert_str_empty(second);
}

/* Code that asks for ever new hosts does not fill the notice; one that is known still counts. */
Test(network_refusals, bounded) {
        NetworkRefusals r = {};
        _cleanup_free_ char *text = NULL;
        char host[32];

        for (unsigned i = 0; i < 10 * NETWORK_REFUSALS_TOLD_MAX; i++) {
                (void) snprintf(host, sizeof(host), "h%u.example", i);
                add(&r, host, 443, NETWORK_REFUSED_NOT_LISTED, 1);
        }
        add(&r, "h0.example", 443, NETWORK_REFUSED_NOT_LISTED, INT64_MAX);
        text = tell(&r);
        cr_assert_not_null(strstr(text, "h0.example:443 (not in the allow list of environment python), 9223372036854775807 times"));
        cr_assert_null(strstr(text, "h8.example"));
        cr_assert_not_null(strstr(text, "\nnetwork: more was refused; 'sandboxctl events' has all of it"));
}
