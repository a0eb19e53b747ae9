/* SPDX-License-Identifier: MIT */

#include <arpa/inet.h>

#include <criterion/criterion.h>

#include "proxy/address-class.h"

TestSuite(address_class, .timeout = 20);

static NetworkAddress parse(const char *text) {
        NetworkAddress a = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };

        cr_assert_eq(inet_pton(a.family, text, a.bytes), 1, "%s", text);
        return a;
}

/* The address before this one. */
static NetworkAddress before(NetworkAddress a) {
        for (size_t i = address_bits(a.family) / 8; i-- > 0;)
                if (a.bytes[i]-- != 0)
                        break;
        return a;
}

typedef struct Edge {
        const char *start;
        AddressClass class;             /* of it */
        AddressClass class_before;      /* of the address before it */
} Edge;

#define PUBLIC ADDRESS_PUBLIC
#define UNSPECIFIED ADDRESS_UNSPECIFIED
#define LOOPBACK ADDRESS_LOOPBACK
#define LINK_LOCAL ADDRESS_LINK_LOCAL
#define PRIVATE ADDRESS_PRIVATE
#define SHARED ADDRESS_SHARED
#define METADATA ADDRESS_METADATA
#define TRANSLATED ADDRESS_TRANSLATED
#define DOCUMENTATION ADDRESS_DOCUMENTATION
#define MULTICAST ADDRESS_MULTICAST
#define RESERVED ADDRESS_RESERVED

/* Every place in all addresses where the class changes, in order; so it is the same from one to the next. */
static const Edge edges[] = {
        { "0.0.0.0", UNSPECIFIED, RESERVED },           /* before it 255.255.255.255 */
        { "1.0.0.0", PUBLIC, UNSPECIFIED },
        { "10.0.0.0", PRIVATE, PUBLIC },
        { "11.0.0.0", PUBLIC, PRIVATE },
        { "100.64.0.0", SHARED, PUBLIC },
        { "100.100.100.200", METADATA, SHARED },
        { "100.100.100.201", SHARED, METADATA },
        { "100.128.0.0", PUBLIC, SHARED },
        { "127.0.0.0", LOOPBACK, PUBLIC },
        { "128.0.0.0", PUBLIC, LOOPBACK },
        { "168.63.129.16", METADATA, PUBLIC },
        { "168.63.129.17", PUBLIC, METADATA },
        { "169.254.0.0", LINK_LOCAL, PUBLIC },
        { "169.254.169.254", METADATA, LINK_LOCAL },
        { "169.254.169.255", LINK_LOCAL, METADATA },
        { "169.255.0.0", PUBLIC, LINK_LOCAL },
        { "172.16.0.0", PRIVATE, PUBLIC },
        { "172.32.0.0", PUBLIC, PRIVATE },
        { "192.0.0.0", RESERVED, PUBLIC },
        { "192.0.1.0", PUBLIC, RESERVED },
        { "192.0.2.0", DOCUMENTATION, PUBLIC },
        { "192.0.3.0", PUBLIC, DOCUMENTATION },
        { "192.31.196.0", RESERVED, PUBLIC },
        { "192.31.197.0", PUBLIC, RESERVED },
        { "192.52.193.0", RESERVED, PUBLIC },
        { "192.52.194.0", PUBLIC, RESERVED },
        { "192.88.99.0", RESERVED, PUBLIC },
        { "192.88.100.0", PUBLIC, RESERVED },
        { "192.168.0.0", PRIVATE, PUBLIC },
        { "192.169.0.0", PUBLIC, PRIVATE },
        { "192.175.48.0", RESERVED, PUBLIC },
        { "192.175.49.0", PUBLIC, RESERVED },
        { "198.18.0.0", RESERVED, PUBLIC },
        { "198.20.0.0", PUBLIC, RESERVED },
        { "198.51.100.0", DOCUMENTATION, PUBLIC },
        { "198.51.101.0", PUBLIC, DOCUMENTATION },
        { "203.0.113.0", DOCUMENTATION, PUBLIC },
        { "203.0.114.0", PUBLIC, DOCUMENTATION },
        { "224.0.0.0", MULTICAST, PUBLIC },
        { "240.0.0.0", RESERVED, MULTICAST },

        { "::", UNSPECIFIED, RESERVED },                /* before it all ones, of multicast: see below */
        { "::1", LOOPBACK, UNSPECIFIED },
        { "::2", UNSPECIFIED, LOOPBACK },               /* 0.0.0.2 */
        { "::1:0:0", RESERVED, RESERVED },              /* before it 255.255.255.255 */
        { "::ffff:0.0.0.0", UNSPECIFIED, RESERVED },
        { "::1:0:0:0", RESERVED, RESERVED },
        { "::ffff:0:0:0", UNSPECIFIED, RESERVED },
        { "::ffff:0:1.0.0.0", TRANSLATED, UNSPECIFIED },
        { "::ffff:1:0:0", RESERVED, RESERVED },
        { "64:ff9b::", UNSPECIFIED, RESERVED },
        { "64:ff9b::1.0.0.0", PUBLIC, UNSPECIFIED },
        { "64:ff9b::1:0:0", RESERVED, RESERVED },
        { "64:ff9b:1::", TRANSLATED, RESERVED },
        { "64:ff9b:2::", RESERVED, TRANSLATED },
        { "2000::", PUBLIC, RESERVED },
        { "2001::", TRANSLATED, PUBLIC },
        { "2001:1::", RESERVED, TRANSLATED },
        { "2001:200::", PUBLIC, RESERVED },
        { "2001:db8::", DOCUMENTATION, PUBLIC },
        { "2001:db9::", PUBLIC, DOCUMENTATION },
        { "2002::", UNSPECIFIED, PUBLIC },
        { "2002:100::", TRANSLATED, UNSPECIFIED },
        { "2003::", PUBLIC, RESERVED },
        { "2620:4f:8000::", RESERVED, PUBLIC },
        { "2620:4f:8001::", PUBLIC, RESERVED },
        { "3fff::", DOCUMENTATION, PUBLIC },
        { "3fff:1000::", PUBLIC, DOCUMENTATION },
        { "4000::", RESERVED, PUBLIC },
        { "fc00::", PRIVATE, RESERVED },
        { "fd00:ec2::254", METADATA, PRIVATE },
        { "fd00:ec2::255", PRIVATE, METADATA },
        { "fd20:ce::254", METADATA, PRIVATE },
        { "fd20:ce::255", PRIVATE, METADATA },
        { "fe00::", RESERVED, PRIVATE },
        { "fe80::", LINK_LOCAL, RESERVED },
        { "fec0::", PRIVATE, LINK_LOCAL },
        { "ff00::", MULTICAST, PRIVATE },
};

Test(address_class, both_sides_of_each_edge) {
        for (size_t i = 0; i < ELEMENTSOF(edges); i++) {
                NetworkAddress a = parse(edges[i].start), b = before(a);

                cr_assert_eq(address_classify(&a), edges[i].class, "%s", edges[i].start);
                if (!streq(edges[i].start, "::"))
                        cr_assert_eq(address_classify(&b), edges[i].class_before, "before %s", edges[i].start);
        }
}

/* Within a row of the table above nothing else hides: a class that begins ends where the next edge is. */
Test(address_class, between_the_edges_it_is_the_same) {
        for (size_t i = 0; i + 1 < ELEMENTSOF(edges); i++) {
                NetworkAddress a = parse(edges[i].start), end = parse(edges[i + 1].start);

                if (a.family != AF_INET || end.family != AF_INET)
                        continue;
                for (size_t byte = 0; byte < 4; byte++)
                        for (unsigned value = 0; value < 256; value++) {
                                NetworkAddress b = a;

                                b.bytes[byte] = (uint8_t) value;
                                if (memcmp(b.bytes, a.bytes, 4) >= 0 && memcmp(b.bytes, end.bytes, 4) < 0)
                                        cr_assert_eq(address_classify(&b), edges[i].class, "%u in byte %zu of %s", value,
                                                     byte, edges[i].start);
                        }
        }
}

static const struct {
        const char *text;
        AddressClass class;
} samples[] = {
        { "8.8.8.8", PUBLIC },
        { "140.82.121.4", PUBLIC },
        { "2606:50c0:8000::154", PUBLIC },
        { "2a00:1450:4001::1", PUBLIC },
        { "255.255.255.255", RESERVED },
        { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", MULTICAST },
        { "100::1", RESERVED },
        { "100:0:0:1::1", RESERVED },
        { "5f00::1", RESERVED },
        { "2001:2::1", RESERVED },
        { "2001:4:112::1", RESERVED },
        { "2001:20::1", RESERVED },
        { "2001:0:1::1", TRANSLATED },
        /* What is inside */
        { "::ffff:127.0.0.1", LOOPBACK },
        { "::ffff:169.254.169.254", METADATA },
        { "::ffff:168.63.129.16", METADATA },
        { "::ffff:8.8.8.8", TRANSLATED },
        { "::ffff:0:10.0.0.1", PRIVATE },
        { "::127.0.0.1", LOOPBACK },
        { "::8.8.8.8", TRANSLATED },
        { "64:ff9b::8.8.8.8", PUBLIC },
        { "64:ff9b::10.0.0.1", PRIVATE },
        { "64:ff9b::169.254.169.254", METADATA },
        { "64:ff9b::224.0.0.1", MULTICAST },
        { "64:ff9b:1::8.8.8.8", TRANSLATED },
        { "2002:7f00:1::1", LOOPBACK },
        { "2002:a9fe:a9fe::1", METADATA },
        { "2002:808:808::1", TRANSLATED },
};

Test(address_class, samples) {
        for (size_t i = 0; i < ELEMENTSOF(samples); i++) {
                NetworkAddress a = parse(samples[i].text);

                cr_assert_eq(address_classify(&a), samples[i].class, "%s is %s", samples[i].text,
                             address_class_to_string(address_classify(&a)));
        }
}

Test(address_class, no_internet_address_is_not_public) {
        const NetworkAddress none = {}, other = { .family = AF_UNIX, .bytes = { 8, 8, 8, 8 } };

        cr_assert_eq(address_classify(&none), RESERVED);
        cr_assert_eq(address_classify(&other), RESERVED);
}

Test(address_class, every_class_has_words) {
        for (AddressClass c = 0; c < _ADDRESS_CLASS_MAX; c++)
                cr_assert(strncmp(address_class_to_string(c), "a", 1) == 0 || strncmp(address_class_to_string(c), "the", 3) == 0);
}

Test(address_class, inside) {
        static const struct {
                const char *text, *inside;
        } table[] = {
                { "::ffff:1.2.3.4", "1.2.3.4" },
                { "::ffff:0:1.2.3.4", "1.2.3.4" },
                { "::1.2.3.4", "1.2.3.4" },
                { "64:ff9b::1.2.3.4", "1.2.3.4" },
                { "2002:102:304::ffff", "1.2.3.4" },
                { "::", NULL }, { "::1", NULL }, { "1.2.3.4", NULL }, { "2001:db8::1.2.3.4", NULL },
                { "64:ff9b:1::1.2.3.4", NULL }, { "fe80::1", NULL }, { "::fffe:1.2.3.4", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                NetworkAddress a = parse(table[i].text), inside, expected;
                bool has = address_inside(&a, &inside);

                cr_assert_eq(has, table[i].inside != NULL, "%s", table[i].text);
                if (!has)
                        continue;
                expected = parse(table[i].inside);
                cr_assert(inside.family == AF_INET && memcmp(inside.bytes, expected.bytes, 4) == 0, "%s", table[i].text);
        }
}

Test(address_class, has_prefix) {
        NetworkAddress a = parse("255.255.255.255"), b = a, six = parse("ffff:ffff::"), seven = parse("ffff:ffff::");

        for (unsigned bit = 0; bit < 32; bit++) {
                b.bytes[bit / 8] ^= (uint8_t) (0x80 >> bit % 8);
                for (unsigned bits = 0; bits <= 40; bits++)
                        cr_assert_eq(address_has_prefix(&a, &b, bits), bits <= bit, "%u %u", bit, bits);
                b = a;
        }
        cr_assert(!address_has_prefix(&a, &six, 0), "of another family");
        cr_assert(address_has_prefix(&six, &seven, 1000));
}
