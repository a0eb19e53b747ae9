/* SPDX-License-Identifier: MIT */

/*
 * Theory of operation
 *
 * The daemon prepares everything that can fail or allocate: fresh descriptions of the shared memory files,
 * the option list in a memory file, the argument vector, socketpair and pipe. Then it vforks: the child
 * borrows the daemon's memory (no page tables are copied; a fork of the daemon would cost more than the
 * whole jail on some machines) and makes only system calls:
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
 * A step that fails is written into the shared SpawnChild and the child exits; vfork means the parent reads
 * it without a pipe. Whoever the caller is, nothing in a jail has kernel uid 0 (design.md).
 */

#include "daemon/spawn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/shortage.h"
#include "lib/process.h"

/* Where a root caller's project is shown to bubblewrap: it is there on every machine, and jails have nothing of it. */
#define PROJECT_PLACE "/sys"

/* What no project has. */
#define PROJECT_PROBE ".nix-sandbox-is-not-there"

/* Numbers of descriptors in the child; after 2 in the order of child_fds. */
enum {
        CHILD_FD_AGENT = 3,
        CHILD_FD_SOCKET,
        CHILD_FD_SECCOMP,
        CHILD_FD_PASSWD,
        CHILD_FD_GROUP,
        CHILD_FD_HOSTS,
        CHILD_FD_ARGS,
        _CHILD_FD_MAX,
};

/* Source descriptors are moved out of the way of the target numbers first. */
#define CHILD_FD_SAFE 64

/* A jail has the descriptor limit of an ordinary login, not the daemon's. */
#define JAIL_NOFILE_SOFT 1024U
#define JAIL_NOFILE_HARD 524288U

/* The step whose failure is the caller's affair. */
static const char CHILD_STEP_PROJECT[] = "open the project";

typedef struct SpawnChild {
        const SpawnContext *context;
        const SpawnRequest *request;
        uid_t uid;
        gid_t gid;
        int null_fd;
        int fds[_CHILD_FD_MAX]; /* sources, by target; 2 is the stderr pipe; the agent's is the context's */
        char **argv;
        /* Written by the child: */
        const char *volatile failed_step;
        volatile int error;
} SpawnChild;

static bool project_needs_place(const SpawnContext *c, const SpawnRequest *request) {
        return request->project_mode != PROJECT_NONE && request->uid == 0 && c->may_mount;
}

/* ---- in the child: system calls only ---- */

_noreturn_ static void child_fail(SpawnChild *child, const char *step) {
        child->error = errno;
        child->failed_step = step;
        _exit(127);
}

static void child_set_fds(SpawnChild *child) {
        int safe[_CHILD_FD_MAX]; /* not in *child: that is the daemon's memory */

        for (int i = STDERR_FILENO; i < _CHILD_FD_MAX; i++) {
                int source = i == CHILD_FD_AGENT ? child->context->agent_fd : child->fds[i];

                safe[i] = fcntl(source, F_DUPFD, CHILD_FD_SAFE);
                if (safe[i] < 0)
                        child_fail(child, "duplicate descriptors");
        }

        if (dup2(child->null_fd, STDIN_FILENO) < 0 || dup2(child->null_fd, STDOUT_FILENO) < 0)
                child_fail(child, "set standard descriptors");
        for (int i = STDERR_FILENO; i < _CHILD_FD_MAX; i++)
                if (dup2(safe[i], i) < 0)
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
                child_fail(child, CHILD_STEP_PROJECT);
        tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
        if (tree < 0 || move_mount(tree, "", AT_FDCWD, PROJECT_PLACE, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                child_fail(child, CHILD_STEP_PROJECT);
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

_noreturn_ static void child_run(SpawnChild *child) {
        static char *const empty_environment[] = { NULL };

        child_join_cgroups(child);
        child_set_fds(child);
        child_set_limits(child);
        process_reset_signals();
        (void) umask(0022);
        (void) syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
        if (project_needs_place(child->context, child->request))
                child_show_project(child);
        child_drop_privileges(child);

        if (syscall(SYS_close_range, _CHILD_FD_MAX, ~0U, 0) < 0)
                child_fail(child, "close descriptors");
        (void) execve(child->context->bwrap, child->argv, empty_environment);
        child_fail(child, "execute bubblewrap");
}

/* ---- in the daemon ---- */

static int spawn_check(const SpawnContext *c, const SpawnRequest *request, char **reterr_why) {
        if (!c->bwrap) {
                *reterr_why = strdup("bubblewrap is not installed: there is no '" BWRAP "'. Install it (Debian: "
                                     "apt install bubblewrap) and start sandboxd again.");
                return -ENOENT;
        }
        if (!c->may_switch_user && request->uid != getuid()) {
                *reterr_why = strdup("This sandboxd runs without the right to act as other users, so it "
                                     "serves its own user only. Use the system service, or a private daemon "
                                     "of your own.");
                return -EPERM;
        }
        return 0;
}

/* The option list of the jail in a memory file, and the vector that points to it. */
static int prepare_arguments(const SpawnContext *c, const SpawnRequest *request, int *ret_fd,
                             char ***ret_argv) {
        _cleanup_free_ char *probe = NULL;
        JailSpec spec = {
                .project_writable = request->project_mode == PROJECT_READ_WRITE,
                .limits = request->limits,
                .links = c->links,
                .die_with_parent = request->die_with_parent,
                .agent_fd = CHILD_FD_AGENT,
                .socket_fd = CHILD_FD_SOCKET,
                .seccomp_fd = CHILD_FD_SECCOMP,
                .passwd_fd = CHILD_FD_PASSWD,
                .group_fd = CHILD_FD_GROUP,
                .hosts_fd = CHILD_FD_HOSTS,
        };
        Buffer options = {};
        int fd, r;

        if (project_needs_place(c, request))
                spec.project = PROJECT_PLACE;
        else if (request->project_mode != PROJECT_NONE) {
                if (asprintf(&probe, "%s/" PROJECT_PROBE, request->project) < 0)
                        return -ENOMEM;
                spec.project = request->project;
                spec.project_probe = probe;
        }

        r = jail_build_options(&spec, &options);
        if (r >= 0)
                r = jail_build_argv(&spec, CHILD_FD_ARGS, ret_argv);
        if (r < 0) {
                buffer_done(&options);
                return r;
        }

        fd = memfd_new_sealed("jail-options", buffer_data(&options), buffer_size(&options));
        buffer_done(&options);
        if (fd < 0)
                return fd;

        *ret_fd = fd;
        return 0;
}

/* Fresh open file descriptions, since bwrap reads from the offset and all jails share the files. */
static int prepare_files(const SpawnContext *c, int fds[_CHILD_FD_MAX]) {
        const struct {
                int target, source;
        } shared[] = {
                { CHILD_FD_SECCOMP, c->seccomp_fd },
                { CHILD_FD_PASSWD, c->files.passwd_fd },
                { CHILD_FD_GROUP, c->files.group_fd },
                { CHILD_FD_HOSTS, c->files.hosts_fd },
        };

        for (size_t i = 0; i < ELEMENTSOF(shared); i++) {
                fds[shared[i].target] = fd_reopen(shared[i].source);
                if (fds[shared[i].target] < 0)
                        return fds[shared[i].target];
        }
        return 0;
}

static int child_error(const SpawnChild *child, pid_t pid, char **reterr_why) {
        (void) waitpid(pid, NULL, 0); /* it has exited already: vfork returned after its _exit */

        if (child->failed_step == CHILD_STEP_PROJECT)
                *reterr_why = project_explain(child->request->project, child->uid, child->error);
        else if (asprintf(reterr_why, "Starting the sandbox failed at the step '%s': %s.%s", child->failed_step,
                     strerror(child->error), shortage_advice(-child->error)) < 0)
                *reterr_why = NULL;
        return -child->error;
}

static int spawn_child(SpawnChild *child, Spawned *spawned, char **reterr_why) {
        pid_t pid;

        pid = vfork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                child_run(child);
        if (child->failed_step)
                return child_error(child, pid, reterr_why);

        spawned->pid = pid;
        spawned->pidfd = pidfd_open_pid(pid);
        if (spawned->pidfd < 0) {
                int r = spawned->pidfd;

                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
                return r;
        }
        return 0;
}

/* Everything the child needs, with its sources in child->fds; the caller closes them. */
static int prepare_child(SpawnChild *child, Spawned *spawned) {
        int sockets[2], pipes[2], r;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
                return -errno;
        spawned->socket_fd = sockets[0];
        child->fds[CHILD_FD_SOCKET] = sockets[1];

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return -errno;
        spawned->stderr_fd = pipes[0];
        child->fds[STDERR_FILENO] = pipes[1];

        r = fd_set_nonblock(spawned->socket_fd, true);
        if (r >= 0)
                r = fd_set_nonblock(spawned->stderr_fd, true);
        if (r >= 0)
                r = prepare_files(child->context, child->fds);
        if (r >= 0)
                r = prepare_arguments(child->context, child->request, &child->fds[CHILD_FD_ARGS],
                                      &child->argv);
        return r;
}

uid_t spawn_jail_uid(const SpawnContext *c, uid_t caller) {
        return caller == 0 ? c->jail_uid : caller;
}

int spawn_jail(const SpawnContext *c, const SpawnRequest *request, Spawned *ret, char **reterr_why) {
        _cleanup_(spawned_done) Spawned spawned = SPAWNED_NULL;
        _cleanup_close_ int null_fd = -EBADF;
        SpawnChild child = {
                .context = c,
                .request = request,
                .uid = spawn_jail_uid(c, request->uid),
                .gid = request->uid == 0 ? c->jail_gid : request->gid,
        };
        int r;

        r = spawn_check(c, request, reterr_why);
        if (r < 0)
                return r;

        null_fd = child.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(child.fds); i++)
                child.fds[i] = -EBADF;

        r = prepare_child(&child, &spawned);
        if (r >= 0)
                r = spawn_child(&child, &spawned, reterr_why);

        for (size_t i = 0; i < ELEMENTSOF(child.fds); i++)
                (void) safe_close(child.fds[i]);
        (void) jail_argv_free(child.argv);
        if (r < 0)
                return r;

        *ret = spawned;
        spawned = SPAWNED_NULL;
        return 0;
}

void spawned_done(Spawned *s) {
        s->pidfd = safe_close(s->pidfd);
        s->socket_fd = safe_close(s->socket_fd);
        s->stderr_fd = safe_close(s->stderr_fd);
}
