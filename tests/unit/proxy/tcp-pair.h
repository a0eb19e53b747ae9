/* SPDX-License-Identifier: MIT */
#pragma once

/* Both ends of a connection over the loopback. */

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "lib/fd-util.h"

static inline void tcp_pair(int fds[2]) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        cr_assert(bind(listener, (struct sockaddr *) &address, size) == 0 && listen(listener, 1) == 0);
        cr_assert_eq(getsockname(listener, (struct sockaddr *) &address, &size), 0);
        fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        cr_assert_eq(connect(fds[0], (struct sockaddr *) &address, size), 0);
        fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        cr_assert_geq(fds[1], 0);
        (void) safe_close(listener);
}

/* Until something has come. */
static inline void tcp_wait(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        cr_assert_eq(poll(&p, 1, 10000), 1);
}
