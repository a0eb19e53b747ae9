/* SPDX-License-Identifier: MIT */

/*
 * Hosts. A name is judged label by label: UTS #46 maps characters one by one and normalizes, and nothing
 * composes with a dot, so this is the same as all at once, but no label is judged otherwise because of the
 * labels next to it.
 *
 * libidn2 knows IDNA and is asked about labels that are not ASCII, and about xn-- labels. Not with its flag for
 * the rules of STD3: up to 2.3.3 at least that silently leaves out the characters they forbid, so a full-width
 * slash or an underscore vanishes and another name is there. Whether a result is letters, digits and hyphens is
 * seen here. Where the flag is safe, it is used: an xn-- label that does not come back unchanged is refused.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <idn2.h>
#include <stdio.h>

#include "network-host.h"
#include "slice.h"
#include "text.h"

#define IDN_FLAGS (IDN2_NONTRANSITIONAL | IDN2_NFC_INPUT)

#define A_LABEL_PREFIX "xn--"

NetworkAddress network_address_v4(struct in_addr v4) {
        return (NetworkAddress) { .family = AF_INET, .v4 = v4 };
}

NetworkAddress network_address_v6(const struct in6_addr *v6) {
        NetworkAddress a = { .family = AF_INET6, .v6 = *v6 };
        struct in_addr v4;

        if (!IN6_IS_ADDR_V4MAPPED(v6))
                return a;

        memcpy(&v4, v6->s6_addr + 12, sizeof(v4));
        return network_address_v4(v4);
}

/* The bytes are copied: nobody says that a sockaddr is aligned. */
int network_address_from_sockaddr(const struct sockaddr *sa, size_t size, NetworkAddress *ret) {
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        sa_family_t family;

        if (size < offsetof(struct sockaddr, sa_family) + sizeof(family))
                return -EINVAL;
        memcpy(&family, (const char *) sa + offsetof(struct sockaddr, sa_family), sizeof(family));

        if (family == AF_INET && size >= sizeof(in)) {
                memcpy(&in, sa, sizeof(in));
                *ret = network_address_v4(in.sin_addr);
                return 0;
        }
        if (family == AF_INET6 && size >= sizeof(in6)) {
                memcpy(&in6, sa, sizeof(in6));
                *ret = network_address_v6(&in6.sin6_addr);
                return 0;
        }
        return -EINVAL;
}

socklen_t network_address_to_sockaddr(const NetworkAddress *a, uint16_t port, struct sockaddr_storage *ret) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = a->v4 };
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = a->v6 };

        assert(a->family == AF_INET || a->family == AF_INET6);

        *ret = (struct sockaddr_storage) {};
        if (a->family == AF_INET) {
                memcpy(ret, &in, sizeof(in));
                return sizeof(in);
        }
        memcpy(ret, &in6, sizeof(in6));
        return sizeof(in6);
}

NetworkHost network_host_of_address(const NetworkAddress *a) {
        return (NetworkHost) { .is_address = true, .address = *a };
}

static bool is_ascii(const char *s) {
        for (; *s; s++)
                if ((uint8_t) *s >= 0x80)
                        return false;

        return true;
}

/* Of a label in its last form. */
static bool label_is_valid(const char *label) {
        size_t size = strlen(label);

        if (size == 0 || size > NETWORK_LABEL_MAX || label[0] == '-' || label[size - 1] == '-')
                return false;

        for (const char *p = label; *p; p++)
                if (!(char_is_digit(*p) || (*p >= 'a' && *p <= 'z') || *p == '-' || *p == '_'))
                        return false;

        return true;
}

/* *ret_ascii is allocated by libidn2. */
static int idn_lookup(const char *label, int flags, char **ret_ascii) {
        uint8_t *ascii = NULL;
        int r;

        r = idn2_lookup_u8((const uint8_t *) label, &ascii, flags);
        if (r == IDN2_MALLOC)
                return -ENOMEM;
        if (r != IDN2_OK || !ascii)
                return -EINVAL;

        *ret_ascii = (char *) ascii;
        return 0;
}

static void idn2_freep(char **p) {
        idn2_free(*p);
}

/* An xn-- label has to be what the name that it stands for becomes. */
static int check_a_label(const char *label) {
        _cleanup_(idn2_freep) char *again = NULL;
        int r;

        r = idn_lookup(label, IDN_FLAGS | IDN2_USE_STD3_ASCII_RULES, &again);
        if (r < 0)
                return r;

        return streq(label, again) ? 0 : -EINVAL;
}

/* Writes the last form of a label, which has no dot in it. */
static int label_to_ascii(const char *text, size_t size, char ret[static NETWORK_LABEL_MAX + 1]) {
        _cleanup_(idn2_freep) char *mapped = NULL;
        char label[NETWORK_HOST_INPUT_MAX + 1];
        const char *ascii = label;
        int r;

        for (size_t i = 0; i < size; i++)
                label[i] = char_fold(text[i]);
        label[size] = '\0';

        if (!is_ascii(label)) {
                r = idn_lookup(label, IDN_FLAGS, &mapped);
                if (r < 0)
                        return r;
                ascii = mapped;
        }

        if (!label_is_valid(ascii))
                return -EINVAL;
        if (strncmp(ascii, A_LABEL_PREFIX, strlen(A_LABEL_PREFIX)) == 0) {
                r = check_a_label(ascii);
                if (r < 0)
                        return r;
        }

        memcpy(ret, ascii, strlen(ascii) + 1);
        return 0;
}

/* The size of a dot in its four forms (UTS #46, 4.5 of revision 31), 0 if there is none. */
static size_t dot_size(const char *p, size_t size) {
        static const char *const dots[] = {
                ".",
                "\xe3\x80\x82", /* U+3002 ideographic full stop */
                "\xef\xbc\x8e", /* U+FF0E full-width full stop */
                "\xef\xbd\xa1", /* U+FF61 half-width ideographic full stop */
        };

        for (size_t i = 0; i < ELEMENTSOF(dots); i++)
                if (size >= strlen(dots[i]) && memcmp(p, dots[i], strlen(dots[i])) == 0)
                        return strlen(dots[i]);

        return 0;
}

static size_t label_size(const char *p, size_t size) {
        size_t n = 0;

        while (n < size && dot_size(p + n, size - n) == 0)
                n++;
        return n;
}

static int name_to_ascii(const char *text, size_t size, char ret[static NETWORK_HOST_SIZE], bool *ret_dot) {
        char label[NETWORK_LABEL_MAX + 1];
        size_t length = 0, n, dot = 0;
        int r, k;

        for (size_t i = 0; i < size; i += n + dot) {
                n = label_size(text + i, size - i);
                dot = dot_size(text + i + n, size - i - n);

                r = label_to_ascii(text + i, n, label);
                if (r < 0)
                        return r;

                k = snprintf(ret + length, NETWORK_HOST_SIZE - length, "%s%s", length > 0 ? "." : "", label);
                if (k < 0 || (size_t) k >= NETWORK_HOST_SIZE - length)
                        return -EINVAL;
                length += (size_t) k;
        }

        *ret_dot = dot > 0;
        return length > 0 ? 0 : -EINVAL;
}

/* As the WHATWG's host parser asks before it takes a name for an IPv4 address. */
static bool ends_in_number(const char *name) {
        const char *label = strrchr(name, '.');
        size_t n;

        label = label ? label + 1 : name;
        for (n = 0; char_is_digit(label[n]); n++)
                ;
        if (!label[n])
                return true;

        if (label[0] != '0' || label[1] != 'x')
                return false;
        for (n = 2; char_hex(label[n]) >= 0; n++)
                ;
        return !label[n];
}

static int parse_v6(const char *text, size_t size, NetworkHost *ret) {
        char copy[INET6_ADDRSTRLEN];
        struct in6_addr v6;
        NetworkAddress a;

        if (text[0] == '[') {
                if (size < 2 || text[size - 1] != ']')
                        return -EINVAL;
                text++;
                size -= 2;
        }
        if (size >= sizeof(copy))
                return -EINVAL;

        memcpy(copy, text, size);
        copy[size] = '\0';
        if (inet_pton(AF_INET6, copy, &v6) != 1)
                return -EINVAL;

        a = network_address_v6(&v6);
        *ret = network_host_of_address(&a);
        return 0;
}

int network_host_parse(const char *text, size_t size, NetworkHost *ret) {
        NetworkHost h = {};
        struct in_addr v4;
        NetworkAddress a;
        bool dot;
        int r;

        if (size == 0 || size > NETWORK_HOST_INPUT_MAX || memchr(text, '\0', size) || !utf8_is_valid(text, size, NULL))
                return -EINVAL;
        if (text[0] == '[' || memchr(text, ':', size))
                return parse_v6(text, size, ret);

        r = name_to_ascii(text, size, h.name, &dot);
        if (r < 0)
                return r;

        if (ends_in_number(h.name)) {
                /* A dot at the end makes a name of it to resolvers, but not to URL parsers. */
                if (dot || inet_pton(AF_INET, h.name, &v4) != 1)
                        return -EINVAL;
                a = network_address_v4(v4);
                h = network_host_of_address(&a);
        }

        *ret = h;
        return 0;
}

static void format_v6(const struct in6_addr *v6, char ret[static INET6_ADDRSTRLEN]) {
        const uint8_t *b = v6->s6_addr;

        /* inet_ntop(3) would write the last part as if it were an IPv4 address, which RFC 5952 does not. */
        if (IN6_IS_ADDR_V4COMPAT(v6) && (b[12] || b[13]))
                (void) snprintf(ret, INET6_ADDRSTRLEN, "::%x:%x", b[12] << 8 | b[13], b[14] << 8 | b[15]);
        else
                assert_se(inet_ntop(AF_INET6, v6, ret, INET6_ADDRSTRLEN));
}

const char *network_address_format(const NetworkAddress *a, char ret[static NETWORK_HOST_SIZE]) {
        char text[INET6_ADDRSTRLEN];

        assert(a->family == AF_INET || a->family == AF_INET6);

        if (a->family == AF_INET)
                assert_se(inet_ntop(AF_INET, &a->v4, ret, NETWORK_HOST_SIZE));
        else {
                format_v6(&a->v6, text);
                (void) snprintf(ret, NETWORK_HOST_SIZE, "[%s]", text);
        }
        return ret;
}

const char *network_host_format(const NetworkHost *h, char ret[static NETWORK_HOST_SIZE]) {
        if (h->is_address)
                return network_address_format(&h->address, ret);

        memcpy(ret, h->name, strlen(h->name) + 1);
        return ret;
}

bool network_address_equal(const NetworkAddress *a, const NetworkAddress *b) {
        if (a->family != b->family)
                return false;

        switch (a->family) {
        case AF_INET:
                return a->v4.s_addr == b->v4.s_addr;
        case AF_INET6:
                return IN6_ARE_ADDR_EQUAL(&a->v6, &b->v6);
        default:
                return true;
        }
}

bool network_host_equal(const NetworkHost *a, const NetworkHost *b) {
        if (a->is_address != b->is_address)
                return false;

        return a->is_address ? network_address_equal(&a->address, &b->address) : streq(a->name, b->name);
}
