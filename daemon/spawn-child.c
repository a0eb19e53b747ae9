/* SPDX-License-Identifier: MIT */

/*
 * What the child does, in this order:
 *
 *   1. join the session's cgroups: before the rights to do so are dropped, and while their descriptors still
 *      have the numbers that the daemon knows
 *   2. descriptors: 0 and 1 are /dev/null, 2 is the stderr pipe, 3… are the jail's; all others are closed
 *   3. signal dispositions and mask, umask, limits, OOM score, session keyring: the daemon's must not leak in
 *   4. a root caller's project: bubblewrap will look for it as a user who may have no way to it, so where the
 *      daemon is root itself it is bound to a place that all can reach, in a mount namespace of the child's own
 *   5. groups, gid, uid; ambient and permitted capabilities to nothing, because bubblewrap refuses to run with
 *      capabilities and a uid other than 0
 *   6. execve bubblewrap with an empty environment
 *
 * A step that fails is written into the shared SpawnChild and the child exits; vfork means the parent reads it
 * without a pipe. Whoever the caller is, nothing in a jail has kernel uid 0 (design.md).
 */

#include "daemon/spawn-child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/mount.h>
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

const char spawn_step_project[] = "open the project";

bool spawn_project_needs_place(const SpawnContext *c, const SpawnRequest *request) {
        return request->project_mode != PROJECT_NONE && request->uid == 0 && c->may_mount;
}

_noreturn_ static void child_fail(SpawnChild *child, const char *step) {
        child->error = errno;
        child->failed_step = step;
        _exit(127);
}

static void child_set_fds(SpawnChild *child) {
        int safe[_CHILD_FD_MAX]; /* not in *child: that is the daemon's memory */

        for (int i = STDERR_FILENO; i < _CHILD_FD_MAX; i++) {
                int source = i == CHILD_FD_AGENT ? child->context->agent_fd : child->fds[i];

                safe[i] = source < 0 ? source : fcntl(source, F_DUPFD, CHILD_FD_SAFE);
                if (source >= 0 && safe[i] < 0)
                        child_fail(child, "duplicate descriptors");
        }

        if (dup2(child->null_fd, STDIN_FILENO) < 0 || dup2(child->null_fd, STDOUT_FILENO) < 0)
                child_fail(child, "set standard descriptors");
        for (int i = STDERR_FILENO; i < _CHILD_FD_MAX; i++)
                if (safe[i] < 0)
                        (void) close(i);
                else if (dup2(safe[i], i) < 0)
                        child_fail(child, "set descriptors");
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

/* The directory is opened as root, for whom it is; what is in it is read as the jail's user. */
static void child_show_project(SpawnChild *child) {
        int fd, tree;

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                child_fail(child, "make a mount namespace for the project");
        fd = open(child->request->project, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                child_fail(child, spawn_step_project);
        tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
        if (tree < 0 || move_mount(tree, "", AT_FDCWD, PROJECT_PLACE, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                child_fail(child, spawn_step_project);
}

static void child_drop_privileges(SpawnChild *child) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = {};
        bool as_root = child->request->uid == 0;

        if (child->context->may_switch_user) {
                /* Raw system calls: libc's wrappers would signal the daemon's threads, had it any. */
                if (syscall(SYS_setgroups, as_root ? 0 : child->request->n_groups, child->request->groups) <
                    0)
                        child_fail(child, "set groups");
                if (syscall(SYS_setresgid, child->gid, child->gid, child->gid) < 0)
                        child_fail(child, "set the group id");
                if (syscall(SYS_setresuid, child->uid, child->uid, child->uid) < 0)
                        child_fail(child, "set the user id");
        }

        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, none) < 0)
                child_fail(child, "drop capabilities");
}

void spawn_child_run(SpawnChild *child) {
        static char *const empty_environment[] = { NULL };

        child_join_cgroups(child);
        child_set_fds(child);
        child_set_limits(child);
        process_reset_signals();
        (void) umask(0022);
        (void) syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
        if (spawn_project_needs_place(child->context, child->request))
                child_show_project(child);
        child_drop_privileges(child);

        if (syscall(SYS_close_range, _CHILD_FD_MAX, ~0U, 0) < 0)
                child_fail(child, "close descriptors");
        (void) execve(child->context->bwrap, child->argv, empty_environment);
        child_fail(child, "execute bubblewrap");
}
