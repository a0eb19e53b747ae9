/* SPDX-License-Identifier: MIT */

/* Accepting: caps, a real listening socket, and what happens when the process has no descriptor left. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/socket.h"
#include "lib/text.h"
#include "varlink-fixture.h"

static Fixture fixture;
static char directory[] = "/tmp/test-varlink-XXXXXX";
static char socket_path[sizeof(directory) + 8];

static void setup(void) {
        static const VarlinkServerLimits limits = { .connections_max = 6, .connections_per_uid_max = 4 };

        fixture_init(&fixture, &limits);
        cr_assert_not_null(mkdtemp(directory));
        (void) snprintf(socket_path, sizeof(socket_path), "%s/socket", directory);
}

static void teardown(void) {
        fixture_done(&fixture);
        (void) unlink(socket_path);
        (void) rmdir(directory);
}

TestSuite(varlink_listen, .init = setup, .fini = teardown, .timeout = 60);

#define CALL(name, rest) "{\"method\":\"" TEST_INTERFACE "." name "\"" rest "}"

Test(varlink_listen, connections_are_capped_per_uid_and_in_all) {
        int fds[8];

        for (int i = 0; i < 4; i++)
                cr_assert_geq(fds[i] = fixture_connect(&fixture), 0);
        cr_assert_lt(fixture_connect(&fixture), 0, "the cap of one uid");

        if (geteuid() != 0)
                cr_skip_test("other uids need root");

        /* The kernel records the effective ids of whoever makes the pair. */
        for (int i = 4; i < 6; i++) {
                cr_assert_eq(seteuid(65534), 0);
                fds[i] = fixture_connect(&fixture);
                cr_assert_eq(seteuid(0), 0);
                cr_assert_geq(fds[i], 0);
        }
        cr_assert_eq(seteuid(65534), 0);
        fds[6] = fixture_connect(&fixture);
        cr_assert_eq(seteuid(0), 0);
        cr_assert_lt(fds[6], 0, "the cap of all");

        (void) safe_close(fds[0]);
        fixture_pump(&fixture);
        cr_assert_geq(fds[0] = fixture_connect(&fixture), 0, "a place is free again");
        for (int i = 0; i < 6; i++)
                (void) safe_close(fds[i]);
}

static int listen_on(const char *path) {
        struct sockaddr_un address;
        int fd;

        cr_assert_eq(socket_address_from_path(path, &address), 0);
        cr_assert_geq(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), 0);
        cr_assert_eq(bind(fd, (const struct sockaddr *) &address, sizeof(address)), 0);
        cr_assert_eq(listen(fd, 16), 0);
        return fd;
}

static unsigned count_descriptors(void) {
        unsigned n = 0;

        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;

        return n;
}

Test(varlink_listen, a_thousand_connects) {
        unsigned n_before;

        cr_assert_eq(varlink_server_listen(fixture.server, listen_on(socket_path)), 0);
        n_before = count_descriptors();

        for (int i = 0; i < 1000; i++) {
                _cleanup_close_ int fd = socket_connect(socket_path, USEC_PER_SEC);

                cr_assert_geq(fd, 0);
                if (i % 3 == 0)
                        continue;       /* gone before it is accepted */
                cr_assert(fixture_send_message(&fixture, fd, CALL("Echo", "")));
                fixture_expect(&fixture, fd, "{\"parameters\":{}}");
        }

        fixture_pump(&fixture);
        cr_assert_eq(varlink_server_connections(fixture.server), 0);
        cr_assert_eq(count_descriptors(), n_before);
}

Test(varlink_listen, refused_connections_are_closed) {
        _cleanup_close_ int refused = -EBADF;
        int fds[4];

        cr_assert_eq(varlink_server_listen(fixture.server, listen_on(socket_path)), 0);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                cr_assert_geq(fds[i] = socket_connect(socket_path, USEC_PER_SEC), 0);
        cr_assert_geq(refused = socket_connect(socket_path, USEC_PER_SEC), 0);
        fixture_pump(&fixture);
        fixture_expect_hangup(&fixture, refused);

        varlink_server_stop_listening(fixture.server);
        cr_assert_eq(socket_connect(socket_path, USEC_PER_SEC), -ECONNREFUSED);
        cr_assert(fixture_send_message(&fixture, fds[0], CALL("Echo", "")));
        fixture_expect(&fixture, fds[0], "{\"parameters\":{}}");
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                (void) safe_close(fds[i]);
}

Test(varlink_listen, running_out_of_descriptors_does_not_spin) {
        struct rlimit limit, none;
        _cleanup_close_ int fd = -EBADF;
        uint64_t end;

        cr_assert_eq(varlink_server_listen(fixture.server, listen_on(socket_path)), 0);
        cr_assert_geq(fd = socket_connect(socket_path, USEC_PER_SEC), 0);
        fixture_pump(&fixture);
        (void) safe_close(fd);
        fixture_pump(&fixture);

        cr_assert_geq(fd = socket_connect(socket_path, USEC_PER_SEC), 0);
        cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
        none = (struct rlimit) { .rlim_cur = 3, .rlim_max = limit.rlim_max };
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
        for (int i = 0; i < 3; i++)
                (void) sd_event_run(fixture.event, 0);
        cr_assert_eq(sd_event_run(fixture.event, 0), 0, "nothing to do until the pause is over");
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);

        end = now_monotonic() + 10 * USEC_PER_SEC;
        while (varlink_server_connections(fixture.server) == 0) {
                cr_assert_lt(now_monotonic(), end);
                cr_assert(sd_event_run(fixture.event, USEC_PER_SEC) >= 0);
        }
        cr_assert(fixture_send_message(&fixture, fd, CALL("Echo", "")));
        fixture_expect(&fixture, fd, "{\"parameters\":{}}");
}
