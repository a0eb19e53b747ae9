/* SPDX-License-Identifier: MIT */

#include <arpa/inet.h>
#include <errno.h>
#include <sys/un.h>

#include <criterion/criterion.h>

#include "lib/network-host.h"

TestSuite(network_host, .timeout = 20);

#define TEN "abcdefghij"
#define SIXTY TEN TEN TEN TEN TEN TEN
#define L63 SIXTY "abc"

typedef struct HostCase {
        const char *text;
        const char *canonical; /* the same where NULL */
} HostCase;

static const HostCase names[] = {
        { "example.org" },
        { "EXAMPLE.Org", "example.org" },
        { "example.org.", "example.org" },
        { "localhost" },
        { "a" },
        { "a-b.c--d.org" },
        { "r3---sn-x.googlevideo.com" },
        { "_dmarc.example.org" },
        { "my_bucket.example.org" },
        { "1.2.3.4.example.org" },
        { "1a.2b" },
        { "0x7g" },
        { "x0.0xg" },
        { "1.0x1z" },
        { L63 ".org" },
        { L63 "." L63 "." L63 "." SIXTY "a" },
        { L63 "." L63 "." L63 "." SIXTY "a.", L63 "." L63 "." L63 "." SIXTY "a" },
        /* Look-alikes are other names. */
        { "paypal.com" },
        { "p\xd0\xb0ypal.com", "xn--pypal-4ve.com" },           /* Cyrillic a */
        { "P\xd0\x90YPAL.com", "xn--pypal-4ve.com" },           /* and in upper case */
        { "xn--pypal-4ve.com" },
        { "XN--PYPAL-4VE.COM", "xn--pypal-4ve.com" },
        { "\xce\xbf.org", "xn--0xa.org" },                      /* Greek omicron */
        { "\xef\xbd\x98\xef\xbd\x8e--pypal-4ve.com", "xn--pypal-4ve.com" }, /* xn in full width */
        /* Mapped. */
        { "b\xc3\xbc" "cher.example", "xn--bcher-kva.example" },
        { "B\xc3\x9c" "CHER.example", "xn--bcher-kva.example" },
        { "bu\xcc\x88" "cher.example", "xn--bcher-kva.example" }, /* decomposed */
        { "stra\xc3\x9f" "e.de", "xn--strae-oqa.de" },          /* non-transitional: not strasse.de */
        { "\xcf\x82.com", "xn--3xa.com" },                      /* final sigma, which is kept */
        { "\xef\xbd\x85\xef\xbd\x98\xef\xbc\xa1.org", "exa.org" }, /* full width */
        { "\xe2\x84\xaa.org", "k.org" },                        /* Kelvin sign */
        { "a\xe2\x84\xa2.org", "atm.org" },                     /* trade mark sign */
        { "a\xef\xbc\xbf" "b.org", "a_b.org" },                 /* full-width underscore */
        { "a\xe3\x80\x82" "b", "a.b" },                         /* the dots */
        { "a\xef\xbc\x8e" "b", "a.b" },
        { "a\xef\xbd\xa1" "b", "a.b" },
        { "a.b\xe3\x80\x82", "a.b" },
        { "a\xc2\xad" "b.org", "ab.org" },                      /* soft hyphen: left out */
        { "a\xe2\x80\x8b" "b.org", "ab.org" },                  /* zero width space */
        { "a\xe2\x81\xa0" "b.org", "ab.org" },                  /* word joiner */
        { "\xef\xbb\xbf" "a.org", "a.org" },                    /* byte order mark */
        { "\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe0\xa4\xb7", "xn--11b2ezcw70k" }, /* ZWJ where it may be */
        { "\xd7\x90.org", "xn--4db.org" },
        { "r3---sn.\xc3\xa9", "r3---sn.xn--9ca" },              /* no label is judged by another */
        { "_a.\xc3\xa9", "_a.xn--9ca" },
};

static const HostCase addresses[] = {
        { "127.0.0.1" },
        { "0.0.0.0" },
        { "255.255.255.255" },
        { "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", "127.0.0.1" },
        { "127\xe3\x80\x82" "0.0.1", "127.0.0.1" },
        { "::", "[::]" },
        { "::1", "[::1]" },
        { "[::1]" },
        { "[2001:DB8:0:0::0001]", "[2001:db8::1]" },
        { "2001:db8:0:0:1:0:0:1", "[2001:db8::1:0:0:1]" },
        { "::1:80", "[::1:80]" },
        { "[::ffff:127.0.0.1]", "127.0.0.1" },
        { "::ffff:7f00:1", "127.0.0.1" },
        { "0:0:0:0:0:FFFF:127.0.0.1", "127.0.0.1" },
        { "::127.0.0.1", "[::7f00:1]" },
        { "::0.0.0.2", "[::2]" },
        { "::1:0", "[::1:0]" },
        { "64:ff9b::127.0.0.1", "[64:ff9b::7f00:1]" },
};

typedef struct BadCase {
        const char *text;
        size_t size;
} BadCase;

#define BAD(s) { s, sizeof(s) - 1 }

static const BadCase bad[] = {
        BAD(""),
        /* Characters. */
        BAD("a\0b"), BAD("\0"), BAD("a.org\0"), BAD("127.0.0.1\0"), BAD("[::1\0]"),
        BAD("a\r\nb"), BAD("a.org\n"), BAD("a.org\r"), BAD("a\tb"), BAD("\x7f"), BAD(" a.org"), BAD("a.org "), BAD("a b"),
        BAD("a/b"), BAD("a?b"), BAD("a#b"), BAD("user@a.org"), BAD("a\\b"), BAD("a%2eorg"), BAD("%61.org"), BAD("a<b"),
        BAD("a>b"), BAD("a^b"), BAD("a|b"), BAD("a\"b"), BAD("a'b"), BAD("a+b"), BAD("a,b"), BAD("a=b"), BAD("*.a.org"),
        BAD("a!"), BAD("(a)"), BAD("https://a.org"),
        BAD("a\xff"), BAD("\xc0\xae" "a"), BAD("a\xed\xa0\x80"), BAD("a\xc3"),
        /* What would become such a character, or vanish with libidn2's own rules for it. */
        BAD("a\xef\xbc\x8f" "b.org"), BAD("a\xef\xbc\xa0" "b.org"), BAD("a.org\xef\xbc\x85"), BAD("a\xef\xbc\x9a" "80"),
        BAD("\xe2\x84\x80.org"), BAD("a\xc2\xa0" "b.org"), BAD("a\xe3\x80\x80" "b.org"), BAD("a\xc2\x85"),
        BAD("a\xe2\x80\xa8"), BAD("a\xe2\x80\xa4" "b"), BAD("\xe2\x92\x88" "a"), BAD("a\xe2\x89\xaf.org"),
        BAD("\xef\xbc\x9e\xcc\xb8.org"), BAD("\xe2\x89\xa0.org"), BAD("\xc3\xa9_b.org"),
        /* Not in IDNA2008. */
        BAD("\xf0\x9f\x98\x80.org"), BAD("xn--ls8h.org"), BAD("a\xe2\x80\x8d" "b.org"), BAD("a\xe2\x80\x8c" "b.org"),
        BAD("\xe2\x80\xae" "a.org"), BAD("\xcc\x81" "a.org"), BAD("\xd7\x90" "a.org"), BAD("ab--\xc3\xa9.org"),
        BAD("-\xc3\xa9.org"), BAD("\xc3\xa9-.org"),
        /* No name becomes these. */
        BAD("xn--.org"), BAD("xn--a.org"), BAD("xn--0.pt"), BAD("xn--example.org"), BAD("xn--a-pgo.org"), BAD("xn--1ch.org"),
        BAD("xn--_b-9ia.org"), BAD("xn--xn---epa.org"), BAD("xn--a-.org"), BAD("\xef\xbd\x98n--\xd0\xb0.org"),
        BAD("xn--zzzzzz-.org"),
        /* Labels. */
        BAD("."), BAD(".."), BAD(".a"), BAD("a..b"), BAD("a.."), BAD("\xe3\x80\x82"), BAD("a.\xe3\x80\x82"), BAD("\xc2\xad"),
        BAD("a.\xc2\xad"), BAD("a.\xc2\xad.b"), BAD("-a"), BAD("a-"), BAD("a.-b.c"), BAD("a.b-.c"), BAD("-"),
        BAD(L63 "d.org"), BAD(L63 "." L63 "." L63 "." SIXTY "ab"), BAD(L63 "." L63 "." L63 "." L63 ".a"),
        /* Numbers. */
        BAD("0x7f.1"), BAD("127.1"), BAD("2130706433"), BAD("0177.0.0.1"), BAD("127.0.0.01"), BAD("127.0.0.0x1"),
        BAD("0x7f000001"), BAD("0X7F.0.0.1"), BAD("127.0.0.1."), BAD("127.0.0"), BAD("1.2.3.4.5"), BAD("256.0.0.1"),
        BAD("1.2.3.1000"), BAD("a.1"), BAD("a.0x"), BAD("a.0xfF"), BAD("a.09"), BAD("1"), BAD("1.2.3.-4"),
        BAD("\xe2\x91\xa0"), BAD("a.\xef\xbc\x91"), BAD("0\xef\xbd\x98" "7f.1"), BAD("127.0.0.1:80"),
        /* IPv6. */
        BAD("::1%lo"), BAD("[fe80::1%25eth0]"), BAD("[::1"), BAD("::1]"), BAD("[]"), BAD("["), BAD("]"), BAD("[::1]:80"),
        BAD("[::1]."), BAD("[[::1]]"), BAD("[127.0.0.1]"), BAD("[a.org]"), BAD(":"), BAD(":::"), BAD("1::2::3"),
        BAD("12345::"), BAD("::ffff:127.0.0.01"), BAD("::ffff:127.1"), BAD("[ ::1]"), BAD(":80"), BAD("a:80"),
        BAD("[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]"), BAD("[v1.a]"),
};

static void assert_canonical(const HostCase *c, bool is_address) {
        const char *canonical = c->canonical ?: c->text;
        char text[NETWORK_HOST_SIZE], again[NETWORK_HOST_SIZE];
        NetworkHost h, second;

        cr_assert_eq(network_host_parse(c->text, strlen(c->text), &h), 0, "'%s'", c->text);
        cr_assert_str_eq(network_host_format(&h, text), canonical, "'%s' becomes '%s'", c->text, text);
        cr_assert_eq(h.is_address, is_address, "'%s'", c->text);
        cr_assert_str_eq(h.name, is_address ? "" : canonical);

        cr_assert_eq(network_host_parse(text, strlen(text), &second), 0, "'%s'", text);
        cr_assert(network_host_equal(&h, &second) && network_host_equal(&second, &h), "'%s'", text);
        cr_assert_str_eq(network_host_format(&second, again), canonical);
}

Test(network_host, names_have_one_form) {
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                assert_canonical(names + i, /* is_address= */ false);
}

Test(network_host, addresses_have_one_form) {
        for (size_t i = 0; i < ELEMENTSOF(addresses); i++)
                assert_canonical(addresses + i, /* is_address= */ true);
}

Test(network_host, what_is_no_host) {
        NetworkHost h = { .name = "before" };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                cr_assert_eq(network_host_parse(bad[i].text, bad[i].size, &h), -EINVAL, "case %zu: '%s' is '%s'", i,
                             bad[i].text, h.name);
        cr_assert_str_eq(h.name, "before", "failure leaves the result alone");
}

/* The text is as long as its size says, and needs no NUL behind it. */
Test(network_host, size_counts) {
        NetworkHost h;

        cr_assert_eq(network_host_parse("a.org/x", 5, &h), 0);
        cr_assert_str_eq(h.name, "a.org");
        cr_assert_eq(network_host_parse("127.0.0.1234", 10, &h), 0);
        cr_assert(h.is_address && h.address.v4.s_addr == htonl(0x7f00000c));
        cr_assert_eq(network_host_parse("[::1]x", 5, &h), 0);
        cr_assert_eq(network_host_parse("a\xe3\x80\x82", 3, &h), -EINVAL, "half a dot");
}

Test(network_host, long_input) {
        char text[4096];
        NetworkHost h;

        memset(text, 'a', sizeof(text));
        for (size_t i = 1; i < sizeof(text); i += 2)
                text[i] = '.';
        cr_assert_eq(network_host_parse(text, 253, &h), 0);
        cr_assert_eq(network_host_parse(text, 254, &h), 0, "a dot at the end");
        cr_assert_eq(network_host_parse(text, 255, &h), -EINVAL);
        cr_assert_eq(network_host_parse(text, sizeof(text), &h), -EINVAL);

        memset(text, '[', sizeof(text));
        cr_assert_eq(network_host_parse(text, sizeof(text), &h), -EINVAL);

        /* Left out, but for the last of them. */
        for (size_t i = 0; i < sizeof(text); i += 2)
                memcpy(text + i, "\xc2\xad", 2);
        text[NETWORK_HOST_INPUT_MAX - 2] = 'a';
        text[NETWORK_HOST_INPUT_MAX - 1] = 'b';
        cr_assert_eq(network_host_parse(text, NETWORK_HOST_INPUT_MAX, &h), 0);
        cr_assert_str_eq(h.name, "ab");
        cr_assert_eq(network_host_parse(text + 2, NETWORK_HOST_INPUT_MAX + 2, &h), -EINVAL);
}

Test(network_host, different_hosts_are_not_equal) {
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                for (size_t j = 0; j < ELEMENTSOF(addresses); j++) {
                        NetworkHost a, b, c;

                        cr_assert_eq(network_host_parse(names[i].text, strlen(names[i].text), &a), 0);
                        cr_assert_eq(network_host_parse(addresses[j].text, strlen(addresses[j].text), &b), 0);
                        cr_assert_eq(network_host_parse("other.org", 9, &c), 0);
                        cr_assert_not(network_host_equal(&a, &b));
                        cr_assert_not(network_host_equal(&a, &c));
                }
}

Test(network_host, addresses_of_sockets) {
        char text[NETWORK_HOST_SIZE];
        NetworkAddress a, b;
        struct in6_addr v6;

        a = network_address_v4((struct in_addr) { htonl(INADDR_LOOPBACK) });
        cr_assert_str_eq(network_address_format(&a, text), "127.0.0.1");

        cr_assert_eq(inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6), 1);
        b = network_address_v6(&v6);
        cr_assert(network_address_equal(&a, &b));

        b = network_address_v4((struct in_addr) { htonl(INADDR_LOOPBACK + 1) });
        cr_assert_not(network_address_equal(&a, &b));

        cr_assert_eq(inet_pton(AF_INET6, "7f00:1::", &v6), 1);
        b = network_address_v6(&v6);
        cr_assert_not(network_address_equal(&a, &b), "the same first bytes, another family");
        cr_assert_str_eq(network_address_format(&b, text), "[7f00:1::]");

        v6.s6_addr[15] = 1;
        a = network_address_v6(&v6);
        cr_assert_not(network_address_equal(&a, &b));
        cr_assert(network_host_of_address(&a).is_address);
}

Test(network_host, of_a_sockaddr_and_to_one) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(80) };
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_scope_id = 7 };
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        struct sockaddr_storage storage;
        NetworkAddress a = { .family = 77 };
        char text[NETWORK_HOST_SIZE];

        for (size_t size = 0; size < sizeof(in); size++)
                cr_assert_eq(network_address_from_sockaddr((struct sockaddr *) &in, size, &a), -EINVAL);
        for (size_t size = 0; size < sizeof(in6); size++)
                cr_assert_eq(network_address_from_sockaddr((struct sockaddr *) &in6, size, &a), -EINVAL);
        cr_assert_eq(network_address_from_sockaddr((struct sockaddr *) &un, sizeof(un), &a), -EINVAL);
        cr_assert_eq(a.family, 77, "left alone");

        cr_assert_eq(inet_pton(AF_INET, "192.0.2.7", &in.sin_addr), 1);
        cr_assert_eq(network_address_from_sockaddr((struct sockaddr *) &in, sizeof(in), &a), 0);
        cr_assert_str_eq(network_address_format(&a, text), "192.0.2.7");
        cr_assert_eq(network_address_to_sockaddr(&a, 80, &storage), sizeof(in));
        cr_assert_eq(memcmp(&storage, &in, sizeof(in)), 0);

        cr_assert_eq(inet_pton(AF_INET6, "2001:db8::7", &in6.sin6_addr), 1);
        cr_assert_eq(network_address_from_sockaddr((struct sockaddr *) &in6, sizeof(in6), &a), 0);
        cr_assert_str_eq(network_address_format(&a, text), "[2001:db8::7]");
        in6.sin6_scope_id = 0;
        in6.sin6_port = htons(443);
        cr_assert_eq(network_address_to_sockaddr(&a, 443, &storage), sizeof(in6));
        cr_assert_eq(memcmp(&storage, &in6, sizeof(in6)), 0);

        cr_assert_eq(inet_pton(AF_INET6, "::ffff:192.0.2.7", &in6.sin6_addr), 1);
        cr_assert_eq(network_address_from_sockaddr((struct sockaddr *) &in6, sizeof(in6), &a), 0);
        cr_assert_str_eq(network_address_format(&a, text), "192.0.2.7");
}
