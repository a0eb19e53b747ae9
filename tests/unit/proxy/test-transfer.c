/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/fd-util.h"
#include "proxy/transfer.h"

TestSuite(transfer, .timeout = 20);

/* Unix sockets on both sides; what is not the client's is no Unix socket to the transfer. */
typedef struct Fixture {
        int client, origin;     /* the ends that others have */
        Wire near, far;
        Transfer t;
        uint64_t in, out;
} Fixture;

static void fixture_init(Fixture *f) {
        int a[2], b[2];

        *f = (Fixture) {};
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, a), 0);
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, b), 0);
        f->client = a[0];
        f->origin = b[0];
        wire_init(&f->near, a[1], true);
        wire_init(&f->far, b[1], false);
        transfer_init(&f->t, &f->near, &f->far);
}

static void fixture_done(Fixture *f) {
        transfer_done(&f->t);
        wire_reset(&f->near);
        wire_reset(&f->far);
        f->client = safe_close(f->client);
        f->origin = safe_close(f->origin);
}

static TransferState pump(Fixture *f, uint64_t budget) {
        wire_event(&f->near, EPOLLIN | EPOLLOUT);
        wire_event(&f->far, EPOLLIN | EPOLLOUT);
        return transfer_pump(&f->t, budget, &f->in, &f->out);
}

static void say(int fd, const char *text) {
        cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t) strlen(text));
}

static void hear(int fd, const char *text) {
        char buffer[256];
        ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);

        cr_assert(n == (ssize_t) strlen(text) && memcmp(buffer, text, strlen(text)) == 0, "%s: %zd", text, n);
}

Test(transfer, both_ways_and_half_closes) {
        _cleanup_(fixture_done) Fixture f;
        char c;

        fixture_init(&f);
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_BLOCKED);
        say(f.client, "hello");
        say(f.origin, "well");
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_BLOCKED);
        hear(f.origin, "hello");
        hear(f.client, "well");
        say(f.client, "more");
        cr_assert_eq(shutdown(f.client, SHUT_WR), 0);
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_BLOCKED);
        hear(f.origin, "more");
        cr_assert_eq(recv(f.origin, &c, 1, MSG_DONTWAIT), 0);
        say(f.origin, "late");
        cr_assert_eq(shutdown(f.origin, SHUT_WR), 0);
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_DONE);
        cr_assert(f.in == 8 && f.out == 9);

        wire_close(&f.near);
        hear(f.client, "late");
        cr_assert_eq(recv(f.client, &c, 1, MSG_DONTWAIT), 0, "an end");
}

Test(transfer, a_reset_is_seen_as_one) {
        _cleanup_(fixture_done) Fixture f;
        char c;

        fixture_init(&f);
        say(f.client, "hello");
        say(f.origin, "well");
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_BLOCKED);
        wire_reset(&f.near);
        hear(f.client, "well");
        cr_assert(recv(f.client, &c, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET);
}

Test(transfer, a_budget_is_kept) {
        _cleanup_(fixture_done) Fixture f;

        fixture_init(&f);
        say(f.client, "0123456789");
        cr_assert_eq(pump(&f, 0), TRANSFER_WANTS);
        cr_assert_eq(pump(&f, 4), TRANSFER_WANTS);
        hear(f.origin, "0123");
        cr_assert_eq(f.out, 4);
        cr_assert_eq(pump(&f, 6), TRANSFER_WANTS, "nobody knows yet that this was all");
        hear(f.origin, "456789");
        cr_assert_eq(pump(&f, 1), TRANSFER_BLOCKED);
}

/* Also when nobody reads: all arrives in order, and no more than a chunk is held. */
Test(transfer, much_in_both_directions) {
        _cleanup_(fixture_done) Fixture f;
        enum { SIZE = 8 * 1024 * 1024 };
        int from[] = { 0, 0 }, to[] = { 0, 0 };
        size_t sent[2] = {}, got[2] = {};
        uint8_t piece[70001];
        unsigned round = 0;

        fixture_init(&f);
        from[0] = to[1] = f.client;
        from[1] = to[0] = f.origin;
        while (got[0] < SIZE || got[1] < SIZE) {
                for (size_t d = 0; d < 2; d++) {
                        size_t size = MIN(sizeof(piece), SIZE - sent[d]);
                        ssize_t n;

                        for (size_t i = 0; i < size; i++)
                                piece[i] = (uint8_t) ((sent[d] + i) * 7 + (sent[d] + i) / 256 + d);
                        n = size > 0 ? send(from[d], piece, size, MSG_NOSIGNAL) : 0;
                        sent[d] += (size_t) MAX(n, 0);
                        if (++round % 3 == 0)
                                continue;
                        n = recv(to[d], piece, sizeof(piece), 0);
                        for (ssize_t i = 0; i < n; i++)
                                cr_assert_eq(piece[i], (uint8_t) ((got[d] + (size_t) i) * 7 + (got[d] + (size_t) i) / 256 + d));
                        got[d] += (size_t) MAX(n, 0);
                }
                (void) pump(&f, 300000);
                cr_assert(buffer_size(&f.t.in) <= TRANSFER_CHUNK && buffer_size(&f.t.out) <= TRANSFER_CHUNK);
        }
        cr_assert(f.in == SIZE && f.out == SIZE);
}

Test(transfer, of_a_request_only_the_body_goes) {
        _cleanup_(fixture_done) Fixture f;

        fixture_init(&f);
        transfer_init_http(&f.t, &f.near, &f.far, HTTP_BODY_LENGTH, 5);
        cr_assert_eq(buffer_append_str(&f.t.out, "HEAD"), 0);
        cr_assert_eq(transfer_feed(&f.t, "ab", 2), TRANSFER_BLOCKED);
        say(f.client, "cdeGET /second");
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_BLOCKED);
        hear(f.origin, "HEADabcde");
        say(f.origin, "answer");
        cr_assert_eq(shutdown(f.origin, SHUT_WR), 0);
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_DONE);
        hear(f.client, "answer");
}

Test(transfer, half_a_body_is_no_body) {
        _cleanup_(fixture_done) Fixture f;

        fixture_init(&f);
        transfer_init_http(&f.t, &f.near, &f.far, HTTP_BODY_LENGTH, 5);
        say(f.client, "abc");
        cr_assert_eq(shutdown(f.client, SHUT_WR), 0);
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_BAD_BODY);
}

Test(transfer, who_is_gone) {
        _cleanup_(fixture_done) Fixture f, g, h;

        fixture_init(&f);
        f.origin = safe_close(f.origin);
        say(f.client, "x");
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_ORIGIN_LOST);

        fixture_init(&g);
        g.client = safe_close(g.client);
        say(g.origin, "x");
        wire_event(&g.near, EPOLLHUP);
        cr_assert_eq(pump(&g, UINT64_MAX), TRANSFER_CLIENT_LOST);

        fixture_init(&h);
        say(h.client, "bye");
        h.client = safe_close(h.client);
        wire_event(&h.near, EPOLLHUP);
        cr_assert_eq(pump(&h, UINT64_MAX), TRANSFER_DONE);
        hear(h.origin, "bye");
}
