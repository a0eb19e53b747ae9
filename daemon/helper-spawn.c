/* SPDX-License-Identifier: MIT */

/* By vfork(2): the child has the daemon's memory and makes only system calls. */

#include "daemon/helper-spawn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/become.h"
#include "lib/process.h"
#include "lib/text.h"

/* Sources are moved out of the way of the child's numbers first. */
#define FD_SAFE 16

typedef struct Child {
        const HelperSpawn *helper;
        int n_fds;
        char **become_argv; /* NULL: it stays who it is */
        volatile int error;
} Child;

/* ---- in the child ---- */

_noreturn_ static void child_fail(Child *c) {
        c->error = errno;
        _exit(127);
}

static void child_set_fds(Child *c) {
        int safe[HELPER_FDS_MAX], null_fd;

        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd < 0)
                child_fail(c);
        for (int i = 0; i < c->n_fds; i++) {
                safe[i] = fcntl(c->helper->fds[i] >= 0 ? c->helper->fds[i] : null_fd, F_DUPFD, FD_SAFE);
                if (safe[i] < 0)
                        child_fail(c);
        }
        for (int i = 0; i < c->n_fds; i++)
                if (dup2(safe[i], i) < 0)
                        child_fail(c);
        /* By the next execve: one of them may be what is executed. */
        if (syscall(SYS_close_range, c->n_fds, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
                child_fail(c);
}

static void child_limit(Child *c, int resource, rlim_t value) {
        if (setrlimit(resource, &(struct rlimit){ value, value }) < 0)
                child_fail(c);
}

/* A copy, which the numbers of its descriptors do not overwrite. */
static int child_keep_become(Child *c) {
        int fd = fcntl(c->helper->become_fd, F_DUPFD_CLOEXEC, FD_SAFE);

        if (fd < 0)
                child_fail(c);
        return fd;
}

_noreturn_ static void child_become(Child *c, int become_fd) {
        const PeerCred *user = c->helper->user;

        if (become_set_groups(user->groups, user->n_groups) >= 0 && become_set_gid(user->gid) >= 0)
                become_execute(become_fd, c->become_argv);
        child_fail(c);
}

static void child_drop_capabilities(Child *c) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = {};

        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, none) < 0)
                child_fail(c);
}

_noreturn_ static void child_run(Child *c) {
        static char *const empty_environment[] = { NULL };
        const HelperSpawn *h = c->helper;
        int become_fd = c->become_argv ? child_keep_become(c) : -EBADF;

        child_set_fds(c);
        process_reset_signals();
        (void) umask(0077);
        child_limit(c, RLIMIT_CORE, 0);
        if (h->memory_max > 0)
                child_limit(c, RLIMIT_AS, h->memory_max);
        if (h->cpu_seconds_max > 0)
                child_limit(c, RLIMIT_CPU, h->cpu_seconds_max);
        /* It ends by that signal even in a file system that does not answer, whoever may send it others. */
        (void) alarm(h->seconds_max);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                child_fail(c);
        if (c->become_argv)
                child_become(c, become_fd);
        child_drop_capabilities(c);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (h->alone)
                child_limit(c, RLIMIT_NPROC, 0);
        (void) execve(h->program, (char *const *) h->argv, empty_environment);
        child_fail(c);
}

/* ---- in the daemon ---- */

static int run_child(Child *c, int *ret_pidfd) {
        pid_t pid;

        pid = vfork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                child_run(c);
        if (c->error != 0) {
                (void) waitpid(pid, NULL, 0); /* it has exited: vfork returned after that */
                return -c->error;
        }

        *ret_pidfd = pidfd_open_child(pid);
        return MIN(*ret_pidfd, 0);
}

int helper_spawn(const HelperSpawn *h, int *ret_pidfd) {
        Child c = { .helper = h, .n_fds = HELPER_FDS_MAX };
        int r = 0;

        /* The three that every program has, and up to the last that it is given. */
        while (c.n_fds > STDERR_FILENO + 1 && h->fds[c.n_fds - 1] < 0)
                c.n_fds--;
        if (h->user)
                r = become_build_argv(&(Become){ .uid = h->user->uid, .end_with_us = true, .alone = h->alone },
                                      h->program, h->argv, &c.become_argv);
        if (r >= 0)
                r = run_child(&c, ret_pidfd);
        (void) strv_free(c.become_argv);
        return r;
}
