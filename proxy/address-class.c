/* SPDX-License-Identifier: MIT */

/*
 * The two IANA special-purpose address registries (RFC 6890, RFC 8190; as of 2025), the multicast registries, and the
 * addresses at which clouds tell a machine its secrets. Also what the registries call globally reachable is here, but
 * for NAT64: services of the network itself are in those ranges, and no host that anyone would list.
 */

#include "proxy/address-class.h"

typedef struct Range {
        NetworkAddress prefix;
        unsigned bits;
        AddressClass class;
        unsigned inside;        /* where in the address there is one of IPv4; 0: nowhere */
} Range;

#define V4(...) { .family = AF_INET, .bytes = { __VA_ARGS__ } }
#define V6(...) { .family = AF_INET6, .bytes = { __VA_ARGS__ } }

/* The first one that fits counts. */
static const Range ranges[] = {
        { V4(0), 8, ADDRESS_UNSPECIFIED },                      /* RFC 791; Linux connects 0.0.0.0 to itself */
        { V4(10), 8, ADDRESS_PRIVATE },                         /* RFC 1918 */
        { V4(100, 100, 100, 200), 32, ADDRESS_METADATA },       /* Alibaba Cloud */
        { V4(100, 64), 10, ADDRESS_SHARED },                    /* carriers' NAT, and many VPNs, RFC 6598 */
        { V4(127), 8, ADDRESS_LOOPBACK },                       /* RFC 1122 3.2.1.3 */
        { V4(168, 63, 129, 16), 32, ADDRESS_METADATA },         /* Azure's wire server, in a public range */
        { V4(169, 254, 169, 254), 32, ADDRESS_METADATA },       /* nearly every cloud */
        { V4(169, 254), 16, ADDRESS_LINK_LOCAL },               /* RFC 3927; more metadata services */
        { V4(172, 16), 12, ADDRESS_PRIVATE },                   /* RFC 1918 */
        { V4(192, 0, 0), 24, ADDRESS_RESERVED },                /* protocol assignments, RFC 6890 */
        { V4(192, 0, 2), 24, ADDRESS_DOCUMENTATION },           /* TEST-NET-1, RFC 5737 */
        { V4(192, 31, 196), 24, ADDRESS_RESERVED },             /* AS112, whoever is nearest, RFC 7535 */
        { V4(192, 52, 193), 24, ADDRESS_RESERVED },             /* AMT relays, RFC 7450 */
        { V4(192, 88, 99), 24, ADDRESS_RESERVED },              /* 6to4 relays, given up by RFC 7526 */
        { V4(192, 168), 16, ADDRESS_PRIVATE },                  /* RFC 1918 */
        { V4(192, 175, 48), 24, ADDRESS_RESERVED },             /* AS112, RFC 7534 */
        { V4(198, 18), 15, ADDRESS_RESERVED },                  /* benchmarks, RFC 2544 */
        { V4(198, 51, 100), 24, ADDRESS_DOCUMENTATION },        /* TEST-NET-2, RFC 5737 */
        { V4(203, 0, 113), 24, ADDRESS_DOCUMENTATION },         /* TEST-NET-3, RFC 5737 */
        { V4(224), 4, ADDRESS_MULTICAST },                      /* RFC 5771 */
        { V4(240), 4, ADDRESS_RESERVED },                       /* RFC 1112 4; broadcast, RFC 919, is its last */

        { V6(0), 128, ADDRESS_UNSPECIFIED },                    /* ::, RFC 4291; Linux connects it to itself */
        { V6([15] = 1), 128, ADDRESS_LOOPBACK },                /* ::1, RFC 4291 */
        { V6([10] = 0xff, 0xff), 96, ADDRESS_TRANSLATED, 12 },  /* IPv4-mapped, RFC 4291: IPv4 to the kernel */
        { V6([8] = 0xff, 0xff), 96, ADDRESS_TRANSLATED, 12 },   /* IPv4-translated, RFC 2765 */
        { V6(0), 96, ADDRESS_TRANSLATED, 12 },                  /* IPv4-compatible, given up by RFC 4291 */
        /* NAT64, RFC 6052: on a network without IPv4 this is how every host that has only IPv4 is reached, so it is
         * judged by the address inside alone. The RFC forbids private ones there; a translator may not know that. */
        { V6(0, 0x64, 0xff, 0x9b), 96, ADDRESS_PUBLIC, 12 },
        /* NAT64 of a network's own, RFC 8215: where in it the address inside is only that network knows. */
        { V6(0, 0x64, 0xff, 0x9b, 0, 1), 48, ADDRESS_TRANSLATED },
        { V6(1), 64, ADDRESS_RESERVED },                        /* 100:: discarded, RFC 6666 */
        { V6(1, [7] = 1), 64, ADDRESS_RESERVED },               /* 100:0:0:1:: dummy, RFC 9780 */
        { V6(0x20, 1), 32, ADDRESS_TRANSLATED },                /* Teredo, RFC 4380: UDP to any IPv4 address */
        { V6(0x20, 1), 23, ADDRESS_RESERVED },                  /* protocol assignments, RFC 2928 */
        { V6(0x20, 1, 0x0d, 0xb8), 32, ADDRESS_DOCUMENTATION }, /* RFC 3849 */
        { V6(0x20, 2), 16, ADDRESS_TRANSLATED, 2 },             /* 6to4, RFC 3056 */
        { V6(0x26, 0x20, 0, 0x4f, 0x80), 48, ADDRESS_RESERVED }, /* AS112, RFC 7534 */
        { V6(0x3f, 0xff), 20, ADDRESS_DOCUMENTATION },          /* RFC 9637 */
        { V6(0x5f), 16, ADDRESS_RESERVED },                     /* 5f00:: segment routing, RFC 9602 */
        { V6(0xfd, 0, 0x0e, 0xc2, [14] = 2, 0x54), 128, ADDRESS_METADATA }, /* AWS */
        { V6(0xfd, 0x20, 0, 0xce, [14] = 2, 0x54), 128, ADDRESS_METADATA }, /* Google */
        { V6(0xfc), 7, ADDRESS_PRIVATE },                       /* unique local, RFC 4193 */
        { V6(0xfe, 0x80), 10, ADDRESS_LINK_LOCAL },             /* RFC 4291 */
        { V6(0xfe, 0xc0), 10, ADDRESS_PRIVATE },                /* site-local; RFC 3879 gave it up, some use it */
        { V6(0xff), 8, ADDRESS_MULTICAST },                     /* RFC 4291 */
        /* Only 2000::/3 is handed out to hosts (RFC 4291 2.4); what the rest becomes is for somebody to look at. */
        { V6(0), 3, ADDRESS_RESERVED },
        { V6(0x40), 2, ADDRESS_RESERVED },
        { V6(0x80), 1, ADDRESS_RESERVED },
};

static const char *const class_names[_ADDRESS_CLASS_MAX] = {
        [ADDRESS_PUBLIC] = "a public address",
        [ADDRESS_UNSPECIFIED] = "an address that stands for this host",
        [ADDRESS_LOOPBACK] = "a loopback address",
        [ADDRESS_LINK_LOCAL] = "a link-local address",
        [ADDRESS_PRIVATE] = "an address of a private network",
        [ADDRESS_SHARED] = "an address of a provider's inner network",
        [ADDRESS_METADATA] = "the address of a cloud's metadata service",
        [ADDRESS_TRANSLATED] = "an IPv6 address that stands for one of IPv4",
        [ADDRESS_DOCUMENTATION] = "an address for examples in documents",
        [ADDRESS_MULTICAST] = "a multicast address",
        [ADDRESS_RESERVED] = "a reserved address",
        [ADDRESS_OWN] = "an address of the host itself",
        [ADDRESS_ATTACHED] = "an address of a network that the host is in",
};

const char *address_class_to_string(AddressClass c) {
        assert(c >= 0 && c < _ADDRESS_CLASS_MAX);

        return class_names[c];
}

unsigned address_bits(int family) {
        return family == AF_INET ? 32 : 128;
}

bool address_has_prefix(const NetworkAddress *a, const NetworkAddress *prefix, unsigned bits) {
        unsigned whole, rest;

        if (a->family != prefix->family)
                return false;
        bits = MIN(bits, address_bits(a->family));
        whole = bits / 8;
        rest = bits % 8;
        return memcmp(a->bytes, prefix->bytes, whole) == 0 &&
                (rest == 0 || (a->bytes[whole] ^ prefix->bytes[whole]) >> (8 - rest) == 0);
}

static const Range *find_range(const NetworkAddress *a) {
        for (size_t i = 0; i < ELEMENTSOF(ranges); i++)
                if (address_has_prefix(a, &ranges[i].prefix, ranges[i].bits))
                        return &ranges[i];
        return NULL;
}

static bool take_inside(const NetworkAddress *a, const Range *range, NetworkAddress *ret) {
        if (!range || range->inside == 0)
                return false;
        *ret = (NetworkAddress) { .family = AF_INET };
        memcpy(ret->bytes, a->bytes + range->inside, 4);
        return true;
}

bool address_inside(const NetworkAddress *a, NetworkAddress *ret) {
        return take_inside(a, find_range(a), ret);
}

AddressClass address_classify(const NetworkAddress *a) {
        const Range *range, *range_inside;
        NetworkAddress inside;

        if (a->family != AF_INET && a->family != AF_INET6)
                return ADDRESS_RESERVED;
        range = find_range(a);
        if (!range)
                return ADDRESS_PUBLIC;
        range_inside = take_inside(a, range, &inside) ? find_range(&inside) : NULL;
        return range_inside ? range_inside->class : range->class;
}
