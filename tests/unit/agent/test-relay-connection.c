/* SPDX-License-Identifier: MIT */

/* A connection with a proxy that listens here, and one end of a socketpair for a client. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/relay-connection.h"
#include "lib/fd-util.h"

static char directory[] = "/tmp/test-relay-XXXXXX";
static char path[64];
static int listener = -EBADF, client = -EBADF, proxy = -EBADF;
static RelayLoop loop;
static RelayConnection c;

static void listen_here(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        (void) unlink(path);
        memcpy(address.sun_path, path, strlen(path) + 1);
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        cr_assert_eq(bind(listener, (struct sockaddr *) &address, sizeof(address)), 0);
        cr_assert_eq(listen(listener, 8), 0);
}

static void setup(void) {
        cr_assert_not_null(mkdtemp(directory));
        (void) snprintf(path, sizeof(path), "%s/s", directory);
        listen_here();
        loop.proxy_path = path;
        loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        c = RELAY_CONNECTION_FREE;
}

static void teardown(void) {
        (void) unlink(path);
        (void) rmdir(directory);
}

TestSuite(relay_connection, .init = setup, .fini = teardown, .timeout = 20);

static void open_connection(void) {
        int fds[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        client = fds[0];
        relay_connection_open(&c, &loop, fds[1], 0);
        if (!relay_connection_is_free(&c) && c.give_up_at == 0)
                proxy = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* Until nothing happens any more. */
static void run(void) {
        struct epoll_event e;

        for (int i = 0; i < 10000 && epoll_wait(loop.epoll_fd, &e, 1, 20) == 1; i++) {
                cr_assert_lt(i, 9999, "it goes round");
                relay_connection_on_event(&c, &loop, e.data.u32, e.events, 0);
        }
}

static ssize_t text(int fd, char ret[16]) {
        ssize_t n = read(fd, ret, 15);

        ret[MAX(n, 0)] = 0;
        return n;
}

Test(relay_connection, both_ways_and_their_ends) {
        char got[16];

        open_connection();
        cr_assert_eq(write(client, "there", 5), 5);
        cr_assert_eq(write(proxy, "back", 4), 4);
        run();
        cr_assert(text(proxy, got) == 5 && streq(got, "there"));
        cr_assert(text(client, got) == 4 && streq(got, "back"));

        cr_assert_eq(shutdown(client, SHUT_WR), 0);
        run();
        cr_assert_eq(text(proxy, got), 0);
        cr_assert_eq(write(proxy, "late", 4), 4);
        run();
        cr_assert(text(client, got) == 4 && streq(got, "late"));
        cr_assert_not(relay_connection_is_free(&c));
        cr_assert_eq(shutdown(proxy, SHUT_WR), 0);
        run();
        cr_assert(relay_connection_is_free(&c));
}

/* Fills a direction, takes it out again and counts. */
static void fill_and_drain(int from, int to) {
        static char piece[RELAY_PIECE_SIZE];
        size_t sent = 0, got = 0;
        ssize_t n;

        for (int i = 0; i < 50; i++) {
                while ((n = write(from, piece, sizeof(piece))) > 0)
                        sent += (size_t) n;
                run();
        }
        cr_assert(sent > RELAY_PIECE_SIZE && sent < 8 * MIB, "%zu bytes", sent);
        for (int i = 0; i < 500; i++) {
                while ((n = read(to, piece, sizeof(piece))) > 0)
                        got += (size_t) n;
                if (got == sent)
                        return;
                run();
        }
        cr_assert_fail("%zu of %zu bytes", got, sent);
}

Test(relay_connection, back_pressure) {
        open_connection();
        fill_and_drain(client, proxy);
        fill_and_drain(proxy, client);
        cr_assert(!c.flows[0].pending && !c.flows[1].pending);
}

Test(relay_connection, proxy_that_closes_with_much_to_say) {
        static char piece[RELAY_PIECE_SIZE];
        size_t sent = 0, got = 0;
        ssize_t n;

        open_connection();
        while ((n = write(proxy, piece, sizeof(piece))) > 0)
                sent += (size_t) n;
        run();
        while ((n = write(proxy, piece, sizeof(piece))) > 0)
                sent += (size_t) n;
        (void) close(proxy);
        run();
        cr_assert_not(relay_connection_is_free(&c));
        while ((n = read(client, piece, sizeof(piece))) != 0) {
                got += (size_t) MAX(n, 0);
                run();
        }
        cr_assert_eq(got, sent);
        cr_assert(relay_connection_is_free(&c));
}

Test(relay_connection, client_that_goes) {
        open_connection();
        cr_assert_eq(write(proxy, "x", 1), 1);
        run();
        /* With something unread: a reset. */
        (void) close(client);
        run();
        cr_assert(relay_connection_is_free(&c));
}

Test(relay_connection, proxy_that_is_away) {
        char got[16];

        (void) close(listener);
        open_connection();
        cr_assert(!relay_connection_is_free(&c) && c.give_up_at > 0);
        cr_assert_eq(write(client, "wait", 4), 4);
        run();
        relay_connection_retry(&c, &loop, 0);
        cr_assert_not(relay_connection_is_free(&c));
        listen_here();
        relay_connection_retry(&c, &loop, 0);
        cr_assert_eq(c.give_up_at, 0);
        proxy = accept(listener, NULL, NULL);
        run();
        cr_assert(text(proxy, got) == 4 && streq(got, "wait"));
}

Test(relay_connection, proxy_that_stays_away) {
        (void) close(listener);
        open_connection();
        c.give_up_at = 1;
        relay_connection_retry(&c, &loop, 0);
        cr_assert(relay_connection_is_free(&c));
        (void) unlink(path);
        open_connection();
        cr_assert(relay_connection_is_free(&c), "no such file: not worth waiting for");
}
