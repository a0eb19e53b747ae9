/* SPDX-License-Identifier: MIT */

/* ssh as a pipe, as systemctl -H does it. */

#include "ctl/ssh.h"

#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/die.h"
#include "lib/process.h"

#define END_MSEC 2000

int ssh_start(const char *host, pid_t *ret_pid) {
        /* No X11, no terminal there, and never a host that is an option. */
        char *argv[] = { (char *) "ssh", (char *) "-xT",        (char *) "--",    (char *) host,
                         (char *) "sandboxctl", (char *) "bridge", NULL };
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        posix_spawn_file_actions_t actions;
        int fds[2], r;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        ours = fds[0];
        theirs = fds[1];
        r = fd_set_nonblock(ours, true);
        if (r < 0)
                return r;

        if (posix_spawn_file_actions_init(&actions) != 0 ||
            posix_spawn_file_actions_adddup2(&actions, theirs, STDIN_FILENO) != 0 ||
            posix_spawn_file_actions_adddup2(&actions, theirs, STDOUT_FILENO) != 0)
                die_oom();
        r = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
        (void) posix_spawn_file_actions_destroy(&actions);
        if (r != 0) {
                *ret_pid = 0;
                return -r;
        }
        return TAKE_FD(ours);
}

int ssh_end(pid_t *pid) {
        _cleanup_close_ int pidfd = -EBADF;
        int status;

        if (*pid <= 0)
                return -ECHILD;

        /* It ends by itself once its input has ended, unless the network holds it. */
        pidfd = pidfd_open_pid(*pid);
        if (pidfd < 0 || poll(&(struct pollfd) { .fd = pidfd, .events = POLLIN }, 1, END_MSEC) <= 0)
                (void) kill(*pid, SIGTERM);
        while (waitpid(*pid, &status, 0) < 0)
                if (errno != EINTR) {
                        *pid = 0;
                        return -ECHILD;
                }
        *pid = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

char *ssh_explain_end(const char *host, int status) {
        const char *what = "ssh could not get there";
        char *text;

        if (status == 127)
                what = "it has no sandboxctl in PATH: install nix-sandbox there";
        else if (status != 255)
                what = "its sandboxctl found no daemon, or is too old for -H";
        if (asprintf(&text, "No sandboxd answers on host '%s': %s (status %d).", host, what, status) < 0)
                die_oom();
        return text;
}
