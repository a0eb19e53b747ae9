/* SPDX-License-Identifier: MIT */

/*
 * Shortages are told before they hurt where that is possible, and explained where not.
 */

#include "daemon/shortage.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The session that is being made takes half of them for a moment; the rest is for connections, two each. */
#define DESCRIPTORS_KEPT 64U

bool descriptors_are_scarce(void) {
        int fds[DESCRIPTORS_KEPT];
        size_t n = 0;

        /* The kernel does not say how many are left, so they are taken and given back. */
        while (n < DESCRIPTORS_KEPT && (fds[n] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
                n++;
        for (size_t i = 0; i < n; i++)
                (void) close(fds[i]);
        return n < DESCRIPTORS_KEPT;
}

const char *shortage_advice(int error) {
        switch (-error) {
        case EMFILE:
        case ENFILE:
                return " sandboxd is out of descriptors: end sessions with 'sandboxctl kill', or raise its limit "
                       "(LimitNOFILE= of sandboxd.service).";
        case ENOSPC:
        case EDQUOT:
                return " No more cgroups may be made (cgroup.max.descendants), or a disk is full: end sessions, or "
                       "have the administrator look.";
        case EROFS:
        case EACCES:
        case EPERM:
                return " sandboxd may not write to its cgroups: is /sys/fs/cgroup read-only, or Delegate= missing in "
                       "sandboxd.service? See 'sandboxctl doctor'.";
        case ENOENT:
        case ENODEV:
                return " The cgroups of sandboxd have been removed: the administrator has to start it again.";
        case ENOMEM:
        case EAGAIN:
                return " The machine is short of memory or processes: try again later, or end sessions.";
        default:
                return "";
        }
}
