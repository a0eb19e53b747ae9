/* SPDX-License-Identifier: MIT */

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "proxy/own-addresses.h"

TestSuite(own_addresses, .timeout = 20);

static NetworkAddress parse(const char *text) {
        NetworkAddress a = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };

        cr_assert_eq(inet_pton(a.family, text, a.bytes), 1, "%s", text);
        return a;
}

static const struct sockaddr *to_sockaddr(const char *text, struct sockaddr_storage *ret) {
        NetworkAddress a;

        if (!text)
                return NULL;
        a = parse(text);
        *ret = (struct sockaddr_storage) { .ss_family = (sa_family_t) a.family };
        if (a.family == AF_INET)
                memcpy(&((struct sockaddr_in *) ret)->sin_addr, a.bytes, 4);
        else
                memcpy(&((struct sockaddr_in6 *) ret)->sin6_addr, a.bytes, 16);
        return (const struct sockaddr *) ret;
}

static int add(OwnAddresses *o, const char *address, const char *mask, const char *peer) {
        struct sockaddr_storage a, m, p;

        return own_addresses_add(o, to_sockaddr(address, &a), to_sockaddr(mask, &m), to_sockaddr(peer, &p));
}

static AddressClass judge(const OwnAddresses *o, const char *text) {
        NetworkAddress a = parse(text);

        return address_judge(o, &a);
}

static bool contains(const OwnAddresses *o, const char *text) {
        NetworkAddress a = parse(text);

        return own_addresses_contains(o, &a);
}

Test(own_addresses, a_host_with_everything) {
        static const struct {
                const char *text;
                AddressClass class;
        } table[] = {
                { "11.1.1.9", ADDRESS_OWN },
                { "11.1.1.0", ADDRESS_ATTACHED },
                { "11.1.0.255", ADDRESS_PUBLIC },
                { "11.1.1.255", ADDRESS_ATTACHED },
                { "11.1.2.0", ADDRESS_PUBLIC },
                { "10.2.3.4", ADDRESS_OWN },            /* more telling than private */
                { "10.2.3.5", ADDRESS_PRIVATE },        /* more telling than attached */
                { "127.0.0.1", ADDRESS_LOOPBACK },      /* what it is although it is own */
                { "127.0.0.2", ADDRESS_LOOPBACK },
                { "::1", ADDRESS_LOOPBACK },
                { "12.0.0.1", ADDRESS_OWN },            /* of a tunnel */
                { "12.0.0.2", ADDRESS_PUBLIC },
                { "12.0.0.3", ADDRESS_ATTACHED },       /* its other end */
                { "13.0.0.1", ADDRESS_OWN },            /* with a mask of /0 */
                { "13.0.0.2", ADDRESS_PUBLIC },
                { "2a01:4f8::1", ADDRESS_OWN },
                { "2a01:4f8::2", ADDRESS_ATTACHED },
                { "2a01:4f8:0:0:ffff:ffff:ffff:ffff", ADDRESS_ATTACHED },
                { "2a01:4f8:0:1::", ADDRESS_PUBLIC },
                { "2a01:4f7:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_PUBLIC },
                { "fe80::1:2", ADDRESS_OWN },
                { "fe80::1:3", ADDRESS_LINK_LOCAL },
                { "8.8.8.8", ADDRESS_PUBLIC },
                /* The same addresses inside others */
                { "::ffff:11.1.1.9", ADDRESS_OWN },
                { "::11.1.1.9", ADDRESS_OWN },
                { "64:ff9b::11.1.1.9", ADDRESS_OWN },
                { "64:ff9b::11.1.1.10", ADDRESS_ATTACHED },
                { "64:ff9b::11.1.2.0", ADDRESS_PUBLIC },
                { "64:ff9b::10.2.3.4", ADDRESS_OWN },
                { "2002:b01:109::", ADDRESS_OWN },
        };
        _cleanup_(own_addresses_done) OwnAddresses o = {};

        cr_assert_eq(add(&o, "127.0.0.1", "255.0.0.0", NULL), 0);
        cr_assert_eq(add(&o, "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL), 0);
        cr_assert_eq(add(&o, "11.1.1.9", "255.255.255.0", "11.1.1.255"), 0);
        cr_assert_eq(add(&o, "10.2.3.4", "255.255.0.0", "10.2.255.255"), 0);
        cr_assert_eq(add(&o, "12.0.0.1", "255.255.255.255", "12.0.0.3"), 0);
        cr_assert_eq(add(&o, "13.0.0.1", "0.0.0.0", NULL), 0);
        cr_assert_eq(add(&o, "2a01:4f8::1", "ffff:ffff:ffff:ffff::", NULL), 0);
        cr_assert_eq(add(&o, "fe80::1:2", "ffff:ffff:ffff:ffff::", NULL), 0);

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                cr_assert_eq(judge(&o, table[i].text), table[i].class, "%s is %s", table[i].text,
                             address_class_to_string(judge(&o, table[i].text)));
        cr_assert(contains(&o, "10.2.3.5") && contains(&o, "127.0.0.1") && contains(&o, "64:ff9b::10.2.3.4"));
        cr_assert(!contains(&o, "10.3.0.0") && !contains(&o, "64:ff9b::10.3.0.0"));
}

Test(own_addresses, how_wide_a_network_may_be) {
        static const struct {
                const char *address, *mask, *peer, *other;
                bool attached;          /* the other one */
        } table[] = {
                { "11.1.1.1", "255.0.0.0", NULL, "11.200.0.1", true },
                { "11.1.1.1", "254.0.0.0", NULL, "11.200.0.1", false },
                { "11.1.1.1", "128.0.0.0", NULL, "11.1.1.2", false },
                { "11.1.1.1", NULL, NULL, "11.1.1.2", false },
                { "11.1.1.1", "255.255.255.254", NULL, "11.1.1.0", true },
                { "11.1.1.1", "255.255.255.254", NULL, "11.1.1.2", false },
                { "11.1.1.1", "ffff:ff00::", NULL, "11.1.1.2", false },
                { "11.1.1.1", "255.255.255.0", "12.1.1.1", "12.1.1.2", true },
                { "11.1.1.1", "128.0.0.0", "12.1.1.1", "12.1.1.1", true },
                { "11.1.1.1", "128.0.0.0", "12.1.1.1", "12.1.1.2", false },
                { "2a01:1::1", "ffff::", NULL, "2a01:ffff::", true },
                { "2a01:1::1", "fffe::", NULL, "2a01:ffff::", false },
                { "2a01:1::1", "fffe::", NULL, "2a01:1::2", false },
                { "2a01:1::1", "::", NULL, "2a01:1::2", false },
                { "64:ff9b::1", "ffff:ffff:ffff:ffff:ffff:ffff::", NULL, "64:ff9b::8.8.8.8", true },
                { "2a01:1::1", "ffff:ffff:ffff:ffff::", "2a02::1", "2a02::2", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(own_addresses_done) OwnAddresses o = {};

                cr_assert_eq(add(&o, table[i].address, table[i].mask, table[i].peer), 0);
                cr_assert_eq(judge(&o, table[i].address), ADDRESS_OWN, "row %zu", i);
                cr_assert_eq(judge(&o, table[i].other), table[i].attached ? ADDRESS_ATTACHED : ADDRESS_PUBLIC, "row %zu", i);
        }
}

Test(own_addresses, without_any_only_the_range_counts) {
        const OwnAddresses none = {};

        cr_assert_eq(judge(&none, "8.8.8.8"), ADDRESS_PUBLIC);
        cr_assert_eq(judge(&none, "10.0.0.1"), ADDRESS_PRIVATE);
        cr_assert(!contains(&none, "127.0.0.1"));
}

Test(own_addresses, what_is_no_internet_address_is_passed_over) {
        _cleanup_(own_addresses_done) OwnAddresses o = {};
        struct sockaddr_storage packet = { .ss_family = AF_PACKET };

        cr_assert_eq(own_addresses_add(&o, NULL, NULL, NULL), 0);
        cr_assert_eq(own_addresses_add(&o, (struct sockaddr *) &packet, NULL, (struct sockaddr *) &packet), 0);
        cr_assert_eq(o.n, 0);
}

Test(own_addresses, the_list_is_bounded_and_has_nothing_twice) {
        _cleanup_(own_addresses_done) OwnAddresses o = {};
        char text[INET_ADDRSTRLEN];
        int r = 0;

        for (size_t i = 0; i < 10; i++)
                cr_assert_eq(add(&o, "11.1.1.1", "255.255.255.0", "11.1.1.255"), 0);
        cr_assert_eq(add(&o, "11.1.1.2", "255.255.255.0", NULL), 0);
        cr_assert_eq(o.n, 3);

        for (unsigned i = 0; r >= 0 && i < 2 * OWN_ADDRESSES_MAX; i++) {
                (void) snprintf(text, sizeof(text), "12.0.%u.%u", i / 256, i % 256);
                r = add(&o, text, NULL, NULL);
        }
        cr_assert_eq(r, -E2BIG);
        cr_assert_eq(o.n, OWN_ADDRESSES_MAX);
        cr_assert_eq(add(&o, "11.1.1.1", "255.255.255.0", NULL), 0, "those that are there fit");
}

/* What this machine has, whatever that is. */
Test(own_addresses, those_of_this_machine) {
        _cleanup_(own_addresses_done) OwnAddresses o = {};
        struct ifaddrs *list;

        cr_assert_eq(own_addresses_read(&o), 0);
        cr_assert_eq(own_addresses_read(&o), 0, "again");
        cr_assert_eq(getifaddrs(&list), 0);
        for (struct ifaddrs *i = list; i; i = i->ifa_next) {
                NetworkAddress a;

                if (!i->ifa_addr || network_address_from_sockaddr(i->ifa_addr, sizeof(struct sockaddr_in6), &a) < 0)
                        continue;
                cr_assert(own_addresses_contains(&o, &a), "%s", i->ifa_name);
                cr_assert_neq(address_judge(&o, &a), ADDRESS_PUBLIC, "%s", i->ifa_name);
        }
        freeifaddrs(list);
}
