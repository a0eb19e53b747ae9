/* SPDX-License-Identifier: MIT */

/*
 * What the child does, in this order:
 *
 *   1. descriptors: 0 and 1 are /dev/null, 2 is the stderr pipe, 3… are the jail's, then those that the session's
 *      cgroups are joined by; the execve closes all others
 *   2. signal dispositions and mask, umask, limits, OOM score, session keyring: the daemon's must not leak in
 *   3. groups and gid; then execute sandbox-become, which does what the daemon must not wait for
 *
 * Where the daemon has no right to become others, it serves its own user, who can stop it anyway. There the child
 * joins the cgroups first, drops what capabilities there are, because bubblewrap refuses to run with some and a uid
 * other than 0, and executes bubblewrap itself, with an empty environment.
 *
 * A step that fails is written into the shared SpawnChild and the child exits; vfork means the parent reads it
 * without a pipe. Whoever the caller is, nothing in a jail has kernel uid 0 (design.md).
 */

#include "daemon/spawn-child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/process.h"

/* Source descriptors are moved out of the way of the target numbers first. */
#define CHILD_FD_SAFE 64

/* A jail has the descriptor limit of an ordinary login, not the daemon's. */
#define JAIL_NOFILE_SOFT 1024U
#define JAIL_NOFILE_HARD 524288U

bool spawn_project_needs_place(const SpawnContext *c, const SpawnRequest *request) {
        return request->project_mode != PROJECT_NONE && request->uid == 0 && c->may_mount;
}

_noreturn_ static void child_fail(SpawnChild *child, const char *step) {
        child->error = errno;
        child->failed_step = step;
        _exit(127);
}

/* A copy, which the target numbers do not overwrite. */
static int child_keep_become(SpawnChild *child) {
        int fd = fcntl(child->context->become_fd, F_DUPFD_CLOEXEC, CHILD_FD_SAFE);

        if (fd < 0)
                child_fail(child, "duplicate descriptors");
        return fd;
}

static int child_source(const SpawnChild *child, int target) {
        if (target == CHILD_FD_AGENT)
                return child->context->agent_fd;
        return target < _CHILD_FD_MAX ? child->fds[target] : child->request->join_fds[target - _CHILD_FD_MAX];
}

static void child_set_fds(SpawnChild *child, bool with_joins) {
        int safe[_CHILD_FD_MAX + BECOME_JOIN_MAX]; /* not in *child: that is the daemon's memory */
        int n = _CHILD_FD_MAX + (with_joins ? (int) child->request->n_join_fds : 0);

        for (int i = STDERR_FILENO; i < n; i++) {
                int source = child_source(child, i);

                safe[i] = source < 0 ? source : fcntl(source, F_DUPFD, CHILD_FD_SAFE);
                if (source >= 0 && safe[i] < 0)
                        child_fail(child, "duplicate descriptors");
        }

        if (dup2(child->null_fd, STDIN_FILENO) < 0 || dup2(child->null_fd, STDOUT_FILENO) < 0)
                child_fail(child, "set standard descriptors");
        for (int i = STDERR_FILENO; i < n; i++)
                if (safe[i] < 0)
                        (void) close(i);
                else if (dup2(safe[i], i) < 0)
                        child_fail(child, "set descriptors");
        /* By the next execve: one of them may be what is executed. */
        if (syscall(SYS_close_range, n, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
                child_fail(child, "close descriptors");
}

static void child_join_cgroups(SpawnChild *child) {
        for (size_t i = 0; i < child->request->n_join_fds; i++)
                if (write(child->request->join_fds[i], "0", 1) != 1)
                        child_fail(child, "join the session's cgroup");
}

static void child_set_limits(SpawnChild *child) {
        const Limits *limits = child->request->limits;
        struct rlimit nofile;
        int fd;

        (void) setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });

        if (getrlimit(RLIMIT_NOFILE, &nofile) >= 0) {
                nofile.rlim_max = MIN(nofile.rlim_max, JAIL_NOFILE_HARD);
                nofile.rlim_cur = MIN(nofile.rlim_max, JAIL_NOFILE_SOFT);
                (void) setrlimit(RLIMIT_NOFILE, &nofile);
        }

        if (child->request->limit_processes) {
                rlim_t data = (rlim_t) (limits->memory_mb * MIB);

                /* NPROC counts in the jail's own user namespace (user_namespaces(7), since Linux 5.14). */
                (void) setrlimit(RLIMIT_NPROC, &(struct rlimit){ limits->processes, limits->processes });
                (void) setrlimit(RLIMIT_DATA, &(struct rlimit){ data, data });
        }

        /* The daemon may be protected from the OOM killer; what it starts must not be. */
        fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
                (void) !write(fd, "0", 1);
                (void) close(fd);
        }
}

static void child_drop_capabilities(SpawnChild *child) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = {};

        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, none) < 0)
                child_fail(child, "drop capabilities");
}

_noreturn_ static void child_execute_bubblewrap(SpawnChild *child) {
        static char *const empty_environment[] = { NULL };

        child_drop_capabilities(child);
        (void) execve(child->context->bwrap, child->argv, empty_environment);
        child_fail(child, "execute bubblewrap");
}

_noreturn_ static void child_become(SpawnChild *child, int become_fd) {
        bool as_root = child->request->uid == 0;

        if (become_set_groups(child->request->groups, as_root ? 0 : child->request->n_groups) < 0)
                child_fail(child, "set groups");
        if (become_set_gid(child->gid) < 0)
                child_fail(child, "set the group id");
        become_execute(become_fd, child->argv);
        child_fail(child, "execute " BECOME_PROGRAM);
}

void spawn_child_run(SpawnChild *child) {
        bool becomes = child->context->become_fd >= 0;
        int become_fd = -EBADF;

        if (becomes)
                become_fd = child_keep_become(child);
        else
                child_join_cgroups(child);
        child_set_fds(child, becomes);
        child_set_limits(child);
        process_reset_signals();
        (void) umask(0022);
        (void) syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

        if (becomes)
                child_become(child, become_fd);
        child_execute_bubblewrap(child);
}
