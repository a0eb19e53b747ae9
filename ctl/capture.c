/* SPDX-License-Identifier: MIT */

/* The end of its output counts as its end: these tools have no children that keep it open. */

#include "ctl/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/die.h"
#include "lib/buffer.h"
#include "lib/fd-util.h"
#include "lib/text.h"

#define CAPTURE_USEC (5 * USEC_PER_SEC)
#define CAPTURE_MAX (64 * KIB)

static int start(const char *const *argv, int output_fd, pid_t *ret_pid) {
        posix_spawn_file_actions_t actions;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0 ||
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) != 0 ||
            posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO) != 0 ||
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) != 0)
                die_oom();
        r = posix_spawnp(ret_pid, argv[0], &actions, NULL, (char *const *) argv, environ);
        (void) posix_spawn_file_actions_destroy(&actions);
        return -r;
}

static int read_output(int fd, Buffer *b) {
        uint64_t deadline = now_monotonic() + CAPTURE_USEC;
        ssize_t n;
        char *p;

        do {
                uint64_t now = now_monotonic();
                struct pollfd pollfd = { .fd = fd, .events = POLLIN };

                if (now >= deadline || poll(&pollfd, 1, (int) ((deadline - now) / USEC_PER_MSEC) + 1) == 0)
                        return -ETIMEDOUT;
                if (buffer_reserve(b, 4 * KIB, &p) < 0)
                        die_oom();
                n = read(fd, p, 4 * KIB);
                if (n > 0)
                        buffer_commit(b, (size_t) n);
        } while ((n > 0 && buffer_size(b) < CAPTURE_MAX) || (n < 0 && errno == EINTR));
        return n < 0 ? -errno : 0;
}

int capture(const char *const *argv, char **ret) {
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        int fds[2], r, status;
        Buffer b = {};
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        ours = fds[0];
        theirs = fds[1];
        r = start(argv, theirs, &pid);
        if (r < 0)
                return r;
        theirs = safe_close(theirs);

        r = read_output(ours, &b);
        if (r < 0)
                (void) kill(pid, SIGKILL);
        ours = safe_close(ours); /* whoever still writes ends */
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        status = -1;
        if (buffer_take(&b, ret, NULL) < 0)
                die_oom();
        if (r < 0)
                return r;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -EPROTO;
}
