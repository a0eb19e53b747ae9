/* SPDX-License-Identifier: MIT */

/* With a server of our own on loopback, in the same event loop. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/fd-util.h"
#include "lib/text.h"
#include "proxy/resolver.h"

#define TYPE_A 1
#define TYPE_AAAA 28
#define NXDOMAIN 3
#define SERVFAIL 2

/* What the server knows; a name that is not here does not exist. */
static const struct {
        const char *name;
        int rcode;
        unsigned n_v4, n_v6;
} known[] = {
        { "both.test", 0, 2, 3 },
        { "four.test", 0, 1, 0 },
        { "six.test", 0, 0, 1 },
        { "many.test", 0, 20, 0 },
        { "none.test", 0, 0, 0 },
        { "broken.test", SERVFAIL, 0, 0 },
        { "xn--bcher-kva.test", 0, 1, 0 },
};

static sd_event *event;
static Resolver *resolver;
static sd_event_source *source;
static int server = -EBADF;
static bool silent, garbage;
static unsigned n_asked, n_answered;
static char asked[64];
static int last_error;
static ResolverAddresses last;

static size_t read_name(const uint8_t *p, size_t size, char *ret, size_t room) {
        size_t n = 0, at = 0;

        while (at < size && p[at] > 0) {
                cr_assert_lt(n + p[at] + 2, room);
                if (n > 0)
                        ret[n++] = '.';
                memcpy(ret + n, p + at + 1, p[at]);
                n += p[at];
                at += 1U + p[at];
        }
        ret[n] = 0;
        return at + 1;
}

static size_t write_answer(uint8_t *to, int type, unsigned i) {
        const uint8_t head[] = { 0xc0, 12, 0, (uint8_t) type, 0, 1, 0, 0, 0, 60, 0, type == TYPE_A ? 4 : 16 };
        const uint8_t v4[4] = { 192, 0, 2, (uint8_t) (i + 1) };
        const uint8_t v6[16] = { 0x20, 1, 0xd, 0xb8, [15] = (uint8_t) (i + 1) };

        memcpy(to, head, sizeof(head));
        memcpy(to + sizeof(head), type == TYPE_A ? v4 : v6, head[11]);
        return sizeof(head) + head[11];
}

static int on_question(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        struct sockaddr_storage from;
        socklen_t from_size = sizeof(from);
        unsigned n = 0;
        int rcode = NXDOMAIN, type;
        uint8_t m[2048];
        size_t at;
        ssize_t size = recvfrom(fd, m, 512, 0, (struct sockaddr *) &from, &from_size);

        cr_assert_gt(size, 12);
        n_asked++;
        at = 12 + read_name(m + 12, (size_t) size - 12, asked, sizeof(asked));
        type = m[at + 1];
        at += 4;
        if (silent)
                return 0;
        if (garbage)
                cr_assert_eq(sendto(fd, "\1\2\3", 3, 0, (struct sockaddr *) &from, from_size), 3);

        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (streq(known[i].name, asked)) {
                        rcode = known[i].rcode;
                        n = type == TYPE_A ? known[i].n_v4 : type == TYPE_AAAA ? known[i].n_v6 : 0;
                }
        m[2] |= 0x80;
        m[3] = (uint8_t) (0x80 | rcode);
        m[7] = (uint8_t) n;
        m[11] = 0; /* without what the question had beside its name */
        for (unsigned i = 0; i < n; i++)
                at += write_answer(m + at, type, i);
        cr_assert_eq(sendto(fd, m, at, 0, (struct sockaddr *) &from, from_size), (ssize_t) at);
        return 0;
}

static void setup(void) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        char text[64];

        cr_assert_geq(sd_event_new(&event), 0);
        server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        cr_assert_eq(bind(server, (struct sockaddr *) &address, size), 0);
        cr_assert_eq(getsockname(server, (struct sockaddr *) &address, &size), 0);
        cr_assert_geq(sd_event_add_io(event, &source, server, EPOLLIN, on_question, NULL), 0);
        (void) snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.sin_port));
        cr_assert_geq(resolver_new(event, text, &resolver), 0);
}

static void teardown(void) {
        resolver = resolver_free(resolver);
        source = sd_event_source_disable_unref(source);
        server = safe_close(server);
        event = sd_event_unref(event);
}

TestSuite(resolver, .init = setup, .fini = teardown, .timeout = 30);

static void on_done(ResolverQuery *q, int error, const ResolverAddresses *addresses, void *userdata) {
        n_answered++;
        last_error = error;
        cr_assert_eq(error == 0, addresses != NULL);
        if (addresses)
                last = *addresses;
        if (userdata)
                *(ResolverQuery **) userdata = NULL;
}

static void run_until(unsigned n) {
        while (n_answered < n)
                cr_assert_gt(sd_event_run(event, 10 * USEC_PER_SEC), 0, "nothing comes");
}

static int lookup(const char *name) {
        ResolverQuery *q;
        unsigned before = n_answered;

        last = (ResolverAddresses) {};
        cr_assert_geq(resolver_lookup(resolver, name, 443, on_done, /* userdata= */ NULL, &q), 0);
        cr_assert_eq(n_answered, before, "never from inside the call");
        run_until(before + 1);
        return last_error;
}

static const char *shown(unsigned i) {
        static char text[INET6_ADDRSTRLEN + 8];
        const struct sockaddr_storage *a = &last.list[i];
        char address[INET6_ADDRSTRLEN];
        const struct sockaddr_in *v4 = (const struct sockaddr_in *) a;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *) a;

        if (a->ss_family == AF_INET)
                (void) snprintf(text, sizeof(text), "%s %u", inet_ntop(AF_INET, &v4->sin_addr, address, sizeof(address)),
                                ntohs(v4->sin_port));
        else
                (void) snprintf(text, sizeof(text), "%s %u",
                                inet_ntop(AF_INET6, &v6->sin6_addr, address, sizeof(address)), ntohs(v6->sin6_port));
        return text;
}

Test(resolver, families_by_turns) {
        static const char *const expected[] = { "2001:db8::1 443", "192.0.2.1 443", "2001:db8::2 443", "192.0.2.2 443",
                                                "2001:db8::3 443" };

        cr_assert_eq(lookup("both.test"), 0);
        cr_assert_eq(last.n, ELEMENTSOF(expected));
        for (unsigned i = 0; i < last.n; i++)
                cr_assert_str_eq(shown(i), expected[i]);
}

Test(resolver, one_family) {
        cr_assert_eq(lookup("four.test"), 0);
        cr_assert_eq(last.n, 1);
        cr_assert_str_eq(shown(0), "192.0.2.1 443");
        cr_assert_eq(lookup("six.test"), 0);
        cr_assert_eq(last.n, 1);
        cr_assert_str_eq(shown(0), "2001:db8::1 443");
}

Test(resolver, more_than_are_kept) {
        cr_assert_eq(lookup("many.test"), 0);
        cr_assert_eq(last.n, RESOLVER_ADDRESSES_MAX);
}

Test(resolver, there_is_none) {
        cr_assert_eq(lookup("missing.test"), -ENOENT);
        cr_assert_str_eq(asked, "missing.test", "no search domain was tried");
        cr_assert_eq(lookup("none.test"), -ENOENT);
}

Test(resolver, name_that_is_none) {
        char label[80] = "";

        memset(label, 'a', 70);
        cr_assert_eq(lookup(label), -ENOENT);
        cr_assert_eq(n_asked, 0);
}

Test(resolver, server_that_fails) {
        cr_assert_eq(lookup("broken.test"), -EIO);
}

Test(resolver, server_that_is_not_there) {
        int error;

        source = sd_event_source_disable_unref(source);
        server = safe_close(server);
        error = lookup("four.test");
        cr_assert(error == -EIO || error == -ETIMEDOUT, "%d", error);
}

/* c-ares goes on waiting for an answer, or (1.34) gives the server up. */
Test(resolver, garbage_is_no_answer) {
        int error;

        garbage = true;
        error = lookup("four.test");
        cr_assert(error == 0 || error == -EIO, "%d", error);
        if (error == 0)
                cr_assert_str_eq(shown(0), "192.0.2.1 443");
}

Test(resolver, at_once) {
        ResolverQuery *q[200];

        for (size_t i = 0; i < ELEMENTSOF(q); i++)
                cr_assert_geq(resolver_lookup(resolver, i % 2 ? "four.test" : "both.test", 80, on_done, &q[i], &q[i]), 0);
        run_until(ELEMENTSOF(q));
        for (size_t i = 0; i < ELEMENTSOF(q); i++)
                cr_assert_null(q[i]);
}

Test(resolver, cancelled) {
        ResolverQuery *q[3];

        for (size_t i = 0; i < ELEMENTSOF(q); i++)
                cr_assert_geq(resolver_lookup(resolver, "four.test", 80, on_done, &q[i], &q[i]), 0);
        resolver_cancel(q[1]);
        run_until(2);
        cr_assert_eq(lookup("six.test"), 0);
        cr_assert_eq(n_answered, 3);
}

/* c-ares has answered, but nobody was told yet. */
Test(resolver, cancelled_when_it_is_answered) {
        ResolverQuery *q;

        cr_assert_geq(resolver_lookup(resolver, "127.0.0.1", 80, on_done, /* userdata= */ NULL, &q), 0);
        resolver_cancel(q);
        cr_assert_eq(lookup("six.test"), 0);
        cr_assert_eq(n_answered, 1);
}

Test(resolver, freed_while_it_asks) {
        ResolverQuery *q;

        silent = true;
        cr_assert_geq(resolver_lookup(resolver, "four.test", 80, on_done, /* userdata= */ NULL, &q), 0);
        cr_assert_geq(resolver_lookup(resolver, "127.0.0.1", 80, on_done, /* userdata= */ NULL, &q), 0);
        while (n_asked == 0)
                cr_assert_gt(sd_event_run(event, 10 * USEC_PER_SEC), 0);
        run_until(1);
        resolver = resolver_free(resolver);
        cr_assert_eq(n_answered, 1, "nobody tells of the first");
}

Test(resolver, servers_that_are_none) {
        Resolver *r = NULL;

        cr_assert_eq(resolver_new(event, "nonsense", &r), -EINVAL);
        cr_assert_null(r);
}
