/* SPDX-License-Identifier: MIT */

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/fd-util.h"
#include "lib/text.h"
#include "proxy/dial.h"

static sd_event *event;
static Dial *dial;
static struct sockaddr_storage addresses[DIAL_ADDRESSES_MAX];
static size_t n_addresses;
static int listeners[DIAL_ADDRESSES_MAX];
static unsigned n_told;
static int told_error, told_fd = -EBADF;
static struct sockaddr_storage told_address;

static void setup(void) {
        cr_assert_geq(sd_event_new(&event), 0);
        for (size_t i = 0; i < ELEMENTSOF(listeners); i++)
                listeners[i] = -EBADF;
}

static void teardown(void) {
        dial = dial_free(dial);
        told_fd = safe_close(told_fd);
        for (size_t i = 0; i < ELEMENTSOF(listeners); i++)
                listeners[i] = safe_close(listeners[i]);
        event = sd_event_unref(event);
}

TestSuite(dial, .init = setup, .fini = teardown, .timeout = 30);

static struct sockaddr_in *add(void) {
        struct sockaddr_in *a = (struct sockaddr_in *) &addresses[n_addresses++];

        *a = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        return a;
}

/* Whoever connects to it succeeds, is refused (not listened on), or waits (its queue is full). */
static void add_listener(bool listening, bool full) {
        struct sockaddr_in *a = add();
        socklen_t size = sizeof(*a);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), i;

        cr_assert_eq(bind(fd, (struct sockaddr *) a, size), 0);
        cr_assert_eq(getsockname(fd, (struct sockaddr *) a, &size), 0);
        if (listening)
                cr_assert_eq(listen(fd, full ? 0 : 10), 0);
        for (i = 0; full && i < 4; i++) {
                int filler = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

                (void) connect(filler, (struct sockaddr *) a, size); /* left open until the end */
        }
        listeners[n_addresses - 1] = fd;
}

static void on_done(int error, int fd, const struct sockaddr_storage *address, void *userdata) {
        cr_assert_eq(userdata, &dial);
        cr_assert_eq(fd >= 0, error == 0);
        cr_assert_eq(address != NULL, error == 0);
        dial = NULL;
        n_told++;
        told_error = error;
        told_fd = fd;
        if (address)
                told_address = *address;
}

static void begin(void) {
        cr_assert_geq(dial_new(event, addresses, n_addresses, on_done, &dial, &dial), 0);
        cr_assert_eq(n_told, 0, "never before it returns");
}

static int run(void) {
        begin();
        while (n_told == 0)
                cr_assert_gt(sd_event_run(event, 20 * USEC_PER_SEC), 0);
        return told_error;
}

static unsigned port_of(const struct sockaddr_storage *a) {
        return ntohs(((const struct sockaddr_in *) a)->sin_port);
}

static void check_connected_to(size_t i) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof(peer);

        cr_assert_eq(getpeername(told_fd, (struct sockaddr *) &peer, &size), 0);
        cr_assert_eq(port_of(&peer), port_of(&addresses[i]));
        cr_assert_eq(port_of(&told_address), port_of(&addresses[i]));
        cr_assert(fcntl(told_fd, F_GETFL) & O_NONBLOCK);
        cr_assert(fcntl(told_fd, F_GETFD) & FD_CLOEXEC);
}

Test(dial, first_one) {
        add_listener(/* listening= */ true, /* full= */ false);
        add_listener(true, false);
        cr_assert_eq(run(), 0);
        check_connected_to(0);
}

Test(dial, after_those_that_refuse) {
        uint64_t begun = now_monotonic();

        for (unsigned i = 0; i < 10; i++)
                add_listener(/* listening= */ false, /* full= */ false);
        add_listener(true, false);
        cr_assert_eq(run(), 0);
        check_connected_to(10);
        cr_assert_lt(now_monotonic() - begun, 10 * DIAL_STAGGER_USEC, "a refusal is not waited on");
}

Test(dial, beside_one_that_is_silent) {
        add_listener(/* listening= */ true, /* full= */ true);
        add_listener(true, false);
        cr_assert_eq(run(), 0);
        check_connected_to(1);
}

Test(dial, all_refuse) {
        add_listener(/* listening= */ false, /* full= */ false);
        add_listener(false, false);
        cr_assert_eq(run(), -ECONNREFUSED);
}

/* Not even begun: there is no way there. */
Test(dial, unreachable) {
        add()->sin_addr.s_addr = htonl(INADDR_BROADCAST);
        cr_assert_lt(run(), 0);
}

Test(dial, given_up) {
        add_listener(/* listening= */ true, /* full= */ true);
        begin();
        cr_assert_gt(sd_event_run(event, USEC_PER_SEC), 0);
        dial = dial_free(dial);
        cr_assert_eq(sd_event_run(event, /* usec= */ 0), 0);
        cr_assert_eq(n_told, 0);
}
