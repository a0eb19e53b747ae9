/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/fd-util.h"
#include "proxy/splice-pipe.h"
#include "proxy/transfer.h"
#include "tcp-pair.h"

static void setup(void) {
        (void) signal(SIGPIPE, SIG_IGN);
        cr_assert_eq(splice_pipe_open(), 0);
}

TestSuite(transfer, .init = setup, .timeout = 20);

/* Unix sockets on both sides, which have at once what was sent; but for resets they are as good as TCP. */
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
        wire_init(&f->near, a[1]);
        wire_init(&f->far, b[1]);
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

/* Also where nobody says it: a process that is killed closes, too. */
Test(transfer, what_nobody_has_ended_is_reset) {
        for (unsigned said = 0; said < 4; said++) {
                int fds[2];
                Wire w;
                char c;

                tcp_pair(fds);
                wire_init(&w, fds[1]);
                if (said & 1)
                        say(fds[0], "unread");
                if (said & 2)
                        (void) safe_close(w.fd);
                else
                        wire_reset(&w);
                cr_assert(recv(fds[0], &c, 1, 0) < 0 && errno == ECONNRESET, "%u", said);
                (void) safe_close(fds[0]);
        }
}

Test(transfer, an_end_is_no_reset) {
        for (unsigned said = 0; said < 2; said++) {
                char c[2];
                int fds[2];
                Wire w;

                tcp_pair(fds);
                wire_init(&w, fds[1]);
                cr_assert_eq(wire_write(&w, "ok", 2), 2);
                if (said) {
                        say(fds[0], "unread");
                        tcp_wait(fds[1]);
                }
                wire_close(&w);
                cr_assert_eq(recv(fds[0], c, 2, MSG_WAITALL), 2);
                cr_assert_eq(recv(fds[0], c, 1, 0), 0, "%u", said);
                (void) safe_close(fds[0]);
        }
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

/* Also when nobody reads: all arrives in order, by the pipe and by copies, and no more than the pipe has is held. */
Test(transfer, much_in_both_directions) {
        _cleanup_(fixture_done) Fixture f;
        enum { SIZE = 8 * 1024 * 1024 };
        int from[] = { 0, 0 }, to[] = { 0, 0 };
        size_t sent[2] = {}, got[2] = {};
        uint8_t piece[70001];
        bool by_pipe = false, by_copy = false;
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
                by_pipe = by_pipe || f.t.in_bulk;
                by_copy = by_copy || !f.t.in_bulk;
                cr_assert(buffer_size(&f.t.in) <= SPLICE_PIPE_SIZE && buffer_size(&f.t.out) <= SPLICE_PIPE_SIZE);
        }
        cr_assert(f.in == SIZE && f.out == SIZE && by_pipe && by_copy);
}

static void fill(int fd) {
        static const char much[TRANSFER_CHUNK];

        cr_assert_eq(send(fd, much, sizeof(much), MSG_DONTWAIT), (ssize_t) sizeof(much));
}

static void drain(int fd) {
        static char much[TRANSFER_CHUNK];
        ssize_t n, all = 0;

        while (all < (ssize_t) sizeof(much) && (n = recv(fd, much, sizeof(much) - (size_t) all, MSG_DONTWAIT)) > 0)
                all += n;
        cr_assert_eq(all, (ssize_t) sizeof(much));
}

/* Few bytes can be in many pages, and would hold all of them. */
Test(transfer, little_is_copied) {
        _cleanup_(fixture_done) Fixture f;

        fixture_init(&f);
        fill(f.origin);
        cr_assert_eq(pump(&f, TRANSFER_CHUNK), TRANSFER_WANTS);
        cr_assert(f.t.in_bulk);
        drain(f.client);
        say(f.origin, "little");
        cr_assert_eq(pump(&f, UINT64_MAX), TRANSFER_BLOCKED);
        cr_assert_not(f.t.in_bulk);
        hear(f.client, "little");
}

/* What was on its way to somebody who is gone must not come to another. */
Test(transfer, the_pipe_is_left_empty) {
        _cleanup_(fixture_done) Fixture f, g;

        fixture_init(&f);
        fill(f.origin);
        cr_assert_eq(pump(&f, TRANSFER_CHUNK), TRANSFER_WANTS);
        fill(f.origin);
        f.client = safe_close(f.client);
        f.near.writable = f.far.readable = true;
        cr_assert_eq(transfer_pump(&f.t, UINT64_MAX, &f.in, &f.out), TRANSFER_CLIENT_LOST);

        fixture_init(&g);
        fill(g.origin);
        cr_assert_eq(pump(&g, TRANSFER_CHUNK), TRANSFER_WANTS);
        drain(g.client);
        say(g.origin, "mine");
        fill(g.origin);
        cr_assert_eq(pump(&g, UINT64_MAX), TRANSFER_BLOCKED);
        char c[4];
        cr_assert(recv(g.client, c, 4, MSG_DONTWAIT) == 4 && memcmp(c, "mine", 4) == 0);
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
