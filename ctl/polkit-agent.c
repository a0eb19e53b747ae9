/* SPDX-License-Identifier: MIT */

/* Its subject is its parent process, which is this one. */

#include "ctl/polkit-agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/die.h"
#include "lib/fd-util.h"

#define REGISTER_MSEC 5000
#define NOTIFY_FD 3

static pid_t agent;

static int spawn_agent(int notify_fd) {
        char *argv[] = { (char *) "pkttyagent", (char *) "--notify-fd", (char *) "3", (char *) "--fallback", NULL };
        posix_spawn_file_actions_t actions;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0 ||
            posix_spawn_file_actions_adddup2(&actions, notify_fd, NOTIFY_FD) != 0)
                die_oom();
        r = posix_spawnp(&agent, argv[0], &actions, NULL, argv, environ);
        (void) posix_spawn_file_actions_destroy(&actions);
        if (r != 0)
                agent = 0;
        return -r;
}

void polkit_agent_start(void) {
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        static bool tried;
        int fds[2];

        if (tried || geteuid() == 0 || pipe2(fds, O_CLOEXEC) < 0)
                return;
        tried = true;
        ours = fds[0];
        theirs = fds[1];
        if (spawn_agent(theirs) < 0)
                return;
        (void) atexit(polkit_agent_end);

        /* It closes its end once it is registered; one that ends for want of polkit does, too. */
        theirs = safe_close(theirs);
        (void) poll(&(struct pollfd) { .fd = ours, .events = POLLIN }, 1, REGISTER_MSEC);
}

void polkit_agent_end(void) {
        if (agent <= 0)
                return;
        (void) kill(agent, SIGTERM);
        (void) kill(agent, SIGCONT); /* the terminal may have stopped it */
        while (waitpid(agent, NULL, 0) < 0 && errno == EINTR)
                ;
        agent = 0;
}
