/* SPDX-License-Identifier: MIT */

/*
 * bridge: standard input and output become a connection to the daemon. This is what -H runs on the other
 * machine. It ends with whichever side ends first: a client that is gone has to look so to the daemon, too,
 * which then stops its turn.
 */

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/arguments.h"
#include "ctl/connect.h"
#include "ctl/verbs.h"
#include "lib/fd-util.h"
#include "lib/socket.h"

#define PIECE (64 * KIB)

/* Bytes read; 0 at the end, also of what cannot be read. */
static size_t read_some(int fd, char *data, size_t size) {
        ssize_t n;

        do
                n = read(fd, data, size);
        while (n < 0 && errno == EINTR);
        return n > 0 ? (size_t) n : 0;
}

/* From the client: one piece at a time, so that a daemon that does not read stops the client. */
static int pass_input(int daemon_fd, Buffer *pending) {
        char data[PIECE];
        size_t n = read_some(STDIN_FILENO, data, sizeof(data));

        if (n == 0)
                return -EPIPE;
        if (buffer_append(pending, data, n) < 0)
                return -ENOMEM;
        return socket_flush(daemon_fd, pending);
}

static int pass_output(int daemon_fd) {
        char data[PIECE];
        size_t n = read_some(daemon_fd, data, sizeof(data));

        return n > 0 ? write_full(STDOUT_FILENO, data, n) : -EPIPE;
}

static void pump(int daemon_fd) {
        Buffer pending = {};
        int r = 0;

        while (r >= 0) {
                bool full = buffer_size(&pending) > 0;
                struct pollfd fds[] = {
                        { .fd = full ? -1 : STDIN_FILENO, .events = POLLIN },
                        { .fd = daemon_fd, .events = full ? POLLIN | POLLOUT : POLLIN },
                        { .fd = STDOUT_FILENO },
                };

                if (poll(fds, ELEMENTSOF(fds), -1) < 0) {
                        if (errno == EINTR)
                                continue;
                        break;
                }
                if (fds[1].revents & POLLIN)
                        r = pass_output(daemon_fd);
                else if (fds[1].revents & (POLLHUP | POLLERR))
                        r = -EPIPE;
                if (r >= 0 && (fds[1].revents & POLLOUT))
                        r = socket_flush(daemon_fd, &pending);
                if (r >= 0 && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)))
                        r = pass_input(daemon_fd, &pending);
                if (r >= 0 && (fds[2].revents & (POLLHUP | POLLERR)))
                        r = -EPIPE;
        }
        buffer_done(&pending);
}

int verb_bridge(Context *c, int argc, char *argv[]) {
        _cleanup_free_ char *why = NULL;
        int r;

        no_arguments(argc, argv);
        r = context_connect(c, &why);
        if (r < 0) {
                fprintf(stderr, "sandboxctl: %s\n", why ?: strerror(-r));
                return EXIT_FAILURE;
        }
        pump(varlink_client_fd(c->client));
        return EXIT_SUCCESS;
}
