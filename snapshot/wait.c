/* SPDX-License-Identifier: MIT */

#include "snapshot/wait.h"

#include <poll.h>
#include <signal.h>
#include <time.h>

static const int stop_signals[] = { SIGTERM, SIGINT, SIGHUP };

static volatile sig_atomic_t stopped;

static void on_stop(int sig) {
        stopped = true;
}

int wait_init(void) {
        struct sigaction action = { .sa_handler = on_stop };
        sigset_t set;

        (void) sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(stop_signals); i++) {
                (void) sigaddset(&set, stop_signals[i]);
                if (sigaction(stop_signals[i], &action, NULL) < 0)
                        return -errno;
        }

        return sigprocmask(SIG_SETMASK, &set, NULL) < 0 ? -errno : 0;
}

static int wait_any(struct pollfd *p, nfds_t n, int msec) {
        const struct timespec timeout = { .tv_sec = msec / 1000, .tv_nsec = msec % 1000 * 1000000L };
        sigset_t none;
        int r;

        (void) sigemptyset(&none);
        do {
                if (stopped)
                        return -ECANCELED;
                r = ppoll(p, n, msec < 0 ? NULL : &timeout, &none);
        } while (r < 0 && errno == EINTR);
        return r < 0 ? -errno : r;
}

int wait_readable(int fd, int timeout_msec) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return wait_any(&p, 1, timeout_msec);
}

int wait_time(int msec) {
        return wait_any(NULL, 0, msec);
}

bool wait_is_cancelled(void) {
        sigset_t pending;

        if (stopped)
                return true;
        if (sigpending(&pending) < 0)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(stop_signals); i++)
                if (sigismember(&pending, stop_signals[i]) > 0)
                        return true;
        return false;
}
