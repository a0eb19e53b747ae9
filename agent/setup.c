/* SPDX-License-Identifier: MIT */

/* What pid 1 is before its loop begins. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/privileges.h"
#include "agent/setup.h"
#include "agent/store-view.h"
#include "lib/agent-protocol.h"
#include "lib/fd-util.h"
#include "lib/log.h"
#include "lib/text.h"

static int parse_fd(const char *argument, int *ret) {
        uint64_t given;
        int r;

        r = parse_u64(argument, &given);
        if (r < 0 || given > INT32_MAX)
                return -EINVAL;
        *ret = (int) given;
        return 0;
}

int setup_parse(int argc, char *argv[], SetupArguments *ret) {
        SetupArguments a = {};

        if (argc > 2 && strncmp(argv[argc - 1], AGENT_NETWORK, strlen(AGENT_NETWORK)) == 0)
                a.network = argv[--argc] + strlen(AGENT_NETWORK);
        if (argc != 2 && argc != 4) {
                log_error("Expected the number of the daemon's socket, or three: those of a list and a filter, too. "
                          "Then, at will, " AGENT_NETWORK " and the number of the proxy's socket.");
                return -EINVAL;
        }
        a.socket = argv[1];
        if (argc == 4) {
                a.list = argv[2];
                a.filter = argv[3];
        }

        *ret = a;
        return 0;
}

int setup_confine(const SetupArguments *a) {
        int list_fd, filter_fd, r;

        if (!a->list)
                return 0;
        r = parse_fd(a->list, &list_fd);
        if (r >= 0)
                r = parse_fd(a->filter, &filter_fd);
        if (r < 0)
                return log_error_errno(r, "Expected numbers of descriptors: %m");

        r = store_view_make(list_fd);
        if (r < 0)
                return r;
        r = privileges_drop(filter_fd);
        return r < 0 ? log_error_errno(r, "Cannot give up privileges: %m") : 0;
}

/* Out of the way of 0 to 3, of which no descriptor that a child is to have as one of them may be another. */
static int move_fd(const char *argument, int *ret) {
        int given, r;

        r = parse_fd(argument, &given);
        if (r < 0)
                return r;
        *ret = fcntl(given, F_DUPFD_CLOEXEC, LAUNCH_FDS);
        return *ret < 0 ? -errno : 0;
}

/* 3 is a place that stays taken. */
static int take_placeholder(void) {
        _cleanup_close_ int null = -EBADF;

        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0)
                return -errno;
        if (null == PLACEHOLDER_FD)
                null = -EBADF;
        else if (dup3(null, PLACEHOLDER_FD, O_CLOEXEC) < 0)
                return -errno;
        return 0;
}

int setup_take_fds(const SetupArguments *a, int *ret_socket, int *ret_network) {
        _cleanup_close_ int socket_fd = -EBADF, network_fd = -EBADF;
        int r;

        r = move_fd(a->socket, &socket_fd);
        if (r >= 0 && a->network)
                r = move_fd(a->network, &network_fd);
        if (r < 0)
                return r;

        fds_close_others((int[]) { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, socket_fd, network_fd }, 5);
        r = take_placeholder();
        if (r < 0)
                return r;

        *ret_socket = TAKE_FD(socket_fd);
        *ret_network = TAKE_FD(network_fd);
        return 0;
}

int setup_signals(int *ret) {
        sigset_t all, child;

        (void) sigfillset(&all);
        if (sigprocmask(SIG_SETMASK, &all, NULL) < 0)
                return -errno;

        /* An ignored SIGCHLD, which is inherited, would have children reaped unseen. */
        (void) signal(SIGCHLD, SIG_DFL);

        (void) sigemptyset(&child);
        (void) sigaddset(&child, SIGCHLD);
        *ret = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
        return *ret < 0 ? -errno : 0;
}
