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

int setup_confine(const char *list, const char *filter) {
        int list_fd, filter_fd, r;

        r = parse_fd(list, &list_fd);
        if (r >= 0)
                r = parse_fd(filter, &filter_fd);
        if (r < 0)
                return log_error_errno(r, "Expected numbers of descriptors: %m");

        r = store_view_make(list_fd);
        if (r < 0)
                return r;
        r = privileges_drop(filter_fd);
        return r < 0 ? log_error_errno(r, "Cannot give up privileges: %m") : 0;
}

/* Moves the socket out of the way of 0 to 3, closes all else from 3 on, and makes 3 a place that stays
 * taken: no descriptor that a child is to have as 0…3 may itself be one of them. */
int setup_take_socket(const char *argument, int *ret) {
        _cleanup_close_ int null = -EBADF;
        int given, fd, r;

        r = parse_fd(argument, &given);
        if (r < 0)
                return r;

        fd = fcntl(given, F_DUPFD_CLOEXEC, LAUNCH_FDS);
        if (fd < 0)
                return -errno;
        if (close_range(PLACEHOLDER_FD, (unsigned) fd - 1, 0) < 0 ||
            close_range((unsigned) fd + 1, ~0U, 0) < 0)
                return -errno;

        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0)
                return -errno;
        if (null == PLACEHOLDER_FD)
                null = -EBADF;
        else if (dup3(null, PLACEHOLDER_FD, O_CLOEXEC) < 0)
                return -errno;

        *ret = fd;
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
