/* SPDX-License-Identifier: MIT */

/*
 * The process is in the daemon's control group but has the uid of somebody who may try to use it for his own ends, so
 * what it cannot need is taken from it before it has that uid or executes anything: privileges and ways to get them,
 * all descriptors but the pipe, memory, processor time and, last, further processes.
 */

#include "daemon/user-environments-spawn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/environment.h"
#include "daemon/shortage.h"
#include "daemon/user-environments.h"
#include "lib/process.h"

#define MEMORY_MAX (256 * MIB)
#define CPU_SECONDS_MAX 5U
/* By then nobody waits for it any more. */
#define SECONDS_MAX ((unsigned) (USER_ENVIRONMENTS_USEC / USEC_PER_SEC) + 1)

#define ARGUMENTS_MAX (CONFIG_DIRECTORIES_MAX + 32U)

typedef struct Child {
        const char *program;
        const char *argv[ARGUMENTS_MAX];
        const PeerCred *user;
        bool switch_user;
        int result_fd;
        volatile int error;
} Child;

/* ---- in the child: system calls only ---- */

_noreturn_ static void child_fail(Child *c) {
        c->error = errno;
        _exit(127);
}

static void child_set_fds(Child *c) {
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        int result_fd = fcntl(c->result_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

        if (null_fd < 0 || result_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDERR_FILENO) < 0 ||
            dup2(result_fd, STDOUT_FILENO) < 0 || syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) < 0)
                child_fail(c);
}

static void child_limit(Child *c, int resource, rlim_t value) {
        if (setrlimit(resource, &(struct rlimit){ value, value }) < 0)
                child_fail(c);
}

static void child_become_user(Child *c) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = {};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                child_fail(c);
        if (c->switch_user &&
            (syscall(SYS_setgroups, c->user->n_groups, c->user->groups) < 0 ||
             syscall(SYS_setresgid, c->user->gid, c->user->gid, c->user->gid) < 0 ||
             syscall(SYS_setresuid, c->user->uid, c->user->uid, c->user->uid) < 0))
                child_fail(c);
        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, none) < 0)
                child_fail(c);
        /* Another uid has cleared it; and a limit of 0 before would have made the execve fail. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        child_limit(c, RLIMIT_NPROC, 0);
}

_noreturn_ static void child_run(Child *c) {
        static char *const empty_environment[] = { NULL };

        child_set_fds(c);
        process_reset_signals();
        (void) umask(0077);
        child_limit(c, RLIMIT_CORE, 0);
        child_limit(c, RLIMIT_AS, MEMORY_MAX);
        child_limit(c, RLIMIT_CPU, CPU_SECONDS_MAX);
        /* It ends by that signal even in a file system that does not answer, whoever may send it others. */
        (void) alarm(SECONDS_MAX);
        child_become_user(c);
        (void) execve(c->program, (char *const *) c->argv, empty_environment);
        child_fail(c);
}

/* ---- in the daemon ---- */

static void build_arguments(Child *c, const ConfigDirectories *directories) {
        size_t n = 0;

        c->argv[n++] = c->program;
        for (size_t i = 0; environment_programs[i]; i++) {
                c->argv[n++] = "--program";
                c->argv[n++] = environment_programs[i];
        }
        c->argv[n++] = "--";
        for (size_t i = 0; i < directories->n_paths; i++)
                c->argv[n++] = directories->paths[i];
        assert(n < ARGUMENTS_MAX);
}

static int run_child(Child *c, int *ret_pidfd) {
        pid_t pid;
        int r;

        pid = vfork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                child_run(c);

        r = -c->error;
        if (r == 0)
                r = *ret_pidfd = pidfd_open_pid(pid);
        if (r < 0) {
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, c->error ? 0 : WNOHANG); /* which would block where it may not be killed */
        }
        return MIN(r, 0);
}

int user_environments_spawn(const char *program, const ConfigDirectories *directories, const PeerCred *user,
                            bool switch_user, UserEnvironmentsSpawned *ret) {
        Child c = { .program = program, .user = user, .switch_user = switch_user };
        _cleanup_close_ int result_fd = -EBADF, child_fd = -EBADF;
        int p[2], r;

        if (descriptors_are_scarce())
                return -EMFILE;
        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        result_fd = p[0];
        c.result_fd = child_fd = p[1];
        build_arguments(&c, directories);
        r = fd_set_nonblock(result_fd, true);
        if (r >= 0)
                r = run_child(&c, &ret->pidfd);
        if (r < 0)
                return r;

        ret->result_fd = TAKE_FD(result_fd);
        return 0;
}
