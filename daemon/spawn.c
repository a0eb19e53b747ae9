/* SPDX-License-Identifier: MIT */

/*
 * Theory of operation
 *
 * The daemon prepares everything that can fail or allocate: fresh descriptions of the shared memory files,
 * the option list in a memory file, the argument vector, socketpair and pipe. Then it vforks: the child
 * borrows the daemon's memory (no page tables are copied; a fork of the daemon would cost more than the
 * whole jail on some machines), makes only system calls (spawn-child.c), and executes sandbox-become, before
 * anything is done that others could make last (become.h).
 */

#include "daemon/spawn-child.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/shortage.h"
#include "lib/process.h"
#include "lib/text.h"

/* What no project has. */
#define PROJECT_PROBE ".nix-sandbox-is-not-there"

static int spawn_check(const SpawnContext *c, const SpawnRequest *request, char **reterr_why) {
        if (!c->bwrap) {
                *reterr_why = strdup("bubblewrap is not installed: there is no '" BWRAP "'. Install it (Debian: "
                                     "apt install bubblewrap) and start sandboxd again.");
                return -ENOENT;
        }
        if (environment_origin(request->environment) && !request->environment->closure) {
                *reterr_why = strdup("The environment is that of an earlier sandboxd.");
                return -ESTALE;
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
        const Environment *e = request->environment;
        _cleanup_free_ char *probe = NULL;
        JailSpec spec = {
                .root = e->root,
                .store = e->root ? e->closure->store : NULL,
                .programs = e->programs,
                .list_fd = CHILD_FD_LIST,
                .network_fd = request->network_fd >= 0 ? CHILD_FD_NETWORK : -EBADF,
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

        if (spawn_project_needs_place(c, request))
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
static int prepare_files(const SpawnContext *c, const Environment *e, int fds[_CHILD_FD_MAX]) {
        const struct {
                int target, source;
        } shared[] = {
                { CHILD_FD_SECCOMP, c->seccomp_fd },
                { CHILD_FD_PASSWD, c->files.passwd_fd },
                { CHILD_FD_GROUP, c->files.group_fd },
                { CHILD_FD_HOSTS, c->files.hosts_fd },
                { CHILD_FD_LIST, e->closure ? e->closure->fd : -EBADF },
        };

        for (size_t i = 0; i < ELEMENTSOF(shared); i++) {
                if (shared[i].source < 0)
                        continue;
                fds[shared[i].target] = fd_reopen(shared[i].source);
                if (fds[shared[i].target] < 0)
                        return fds[shared[i].target];
        }
        return 0;
}

char *spawn_explain(const char *step, int error, const char *project, uid_t uid) {
        char *why;

        if (project && streq(step, BECOME_STEP_PROJECT))
                return project_explain(project, uid, error);
        if (asprintf(&why, "Starting the sandbox failed at the step '%s': %s.%s", step, strerror(error),
                     shortage_advice(-error)) < 0)
                return NULL;
        return why;
}

static int child_error(const SpawnChild *child, pid_t pid, char **reterr_why) {
        (void) waitpid(pid, NULL, 0); /* it has exited already: vfork returned after its _exit */

        *reterr_why = spawn_explain(child->failed_step, child->error, child->request->project, child->uid);
        return -child->error;
}

static int spawn_child(SpawnChild *child, Spawned *spawned, char **reterr_why) {
        pid_t pid;

        pid = vfork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                spawn_child_run(child);
        if (child->failed_step)
                return child_error(child, pid, reterr_why);

        spawned->pid = pid;
        spawned->pidfd = pidfd_open_child(pid);
        return MIN(spawned->pidfd, 0);
}

/* Who has to become somebody else executes bubblewrap by sandbox-become. */
static int prepare_become(SpawnChild *child) {
        const SpawnRequest *request = child->request;
        _cleanup_(strv_freep) char **argv = TAKE_PTR(child->argv);
        const Become become = {
                .uid = child->uid,
                .join_fd = _CHILD_FD_MAX,
                .n_join = request->n_join_fds,
                .project = spawn_project_needs_place(child->context, request) ? request->project : NULL,
        };

        return become_build_argv(&become, child->context->bwrap, (const char *const *) argv, &child->argv);
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

        if (child->request->network_fd >= 0) {
                child->fds[CHILD_FD_NETWORK] = fcntl(child->request->network_fd, F_DUPFD_CLOEXEC, 3);
                if (child->fds[CHILD_FD_NETWORK] < 0)
                        return -errno;
        }

        r = fd_set_nonblock(spawned->socket_fd, true);
        if (r >= 0)
                r = fd_set_nonblock(spawned->stderr_fd, true);
        if (r >= 0)
                r = prepare_files(child->context, child->request->environment, child->fds);
        if (r >= 0)
                r = prepare_arguments(child->context, child->request, &child->fds[CHILD_FD_ARGS],
                                      &child->argv);
        if (r >= 0 && child->context->become_fd >= 0)
                r = prepare_become(child);
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
        (void) strv_free(child.argv);
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
