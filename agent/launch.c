/* SPDX-License-Identifier: MIT */

/*
 * vfork(2) and exec. Between them the child borrows the agent's memory: it runs in a frame of its own that
 * never returns, calls nothing that allocates, and says what went wrong through the parent's variable, which
 * the parent looks at when it goes on.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/launch.h"
#include "lib/fd-util.h"
#include "lib/process.h"

/* A value only ever goes up for an unprivileged process, but for going back to where it was. */
#define OOM_SCORE_CHILD 500

static int oom_fd = -EBADF;
static int oom_score_self;

void launch_init(void) {
        char text[16] = "";

        oom_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        if (oom_fd >= 0 && pread(oom_fd, text, sizeof(text) - 1, 0) > 0)
                oom_score_self = atoi(text);
}

static void oom_score_set(int value) {
        char text[16];
        int n;

        if (oom_fd < 0)
                return;

        n = snprintf(text, sizeof(text), "%d", value);
        (void) !pwrite(oom_fd, text, (size_t) n, 0);
}

void launch_oom_score_raise(int value) {
        if (oom_score_self < value)
                oom_score_set(value);
}

void launch_oom_score_restore(void) {
        oom_score_set(oom_score_self);
}

static _noreturn_ void child_run(const char *const argv[], const int fds[LAUNCH_FDS], volatile int *reterr) {
        bool ok = setsid() >= 0;

        process_reset_signals();

        for (int i = 0; ok && i < LAUNCH_FDS; i++)
                ok = dup2(fds[i], i) >= 0;
        if (ok)
                (void) execvp(argv[0], (char *const *) argv);

        *reterr = errno;
        _exit(127);
}

int launch_process(const char *const argv[], const int fds[LAUNCH_FDS], pid_t *ret) {
        volatile int error = 0;
        pid_t pid;

        /* The child inherits the agent's value. It could not set it itself: it is not dumpable either. */
        launch_oom_score_raise(OOM_SCORE_CHILD);
        pid = vfork();
        if (pid == 0)
                child_run(argv, fds, &error);
        if (pid < 0)
                error = errno;
        launch_oom_score_restore();

        if (error == 0)
                *ret = pid;
        else if (pid > 0)
                (void) waitpid(pid, NULL, 0);
        return -error;
}
