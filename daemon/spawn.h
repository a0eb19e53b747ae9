/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Starts the jail of a session: a child that joins the session's cgroups, becomes the session's user, by
 * sandbox-become where that is another one, and executes bubblewrap, which executes the agent. Returns at once; that
 * the jail is up is told by the agent's hello on the socket, that it is gone by the pidfd.
 */

#include <sys/types.h>

#include "daemon/environment.h"
#include "daemon/jail.h"

/* What all jails of a daemon share; made once. */
typedef struct SpawnContext {
        char *bwrap;  /* path of bubblewrap; NULL when there is none */
        int agent_fd; /* the agent's binary */
        int become_fd; /* that of sandbox-become; -EBADF where it may not switch */
        int seccomp_fd;
        JailFiles files;
        unsigned links; /* JailLink bits */
        uid_t jail_uid; /* who a root caller's jail runs as, never 0 */
        gid_t jail_gid;
        bool may_switch_user; /* root, or CAP_SETUID and CAP_SETGID */
        bool may_mount;       /* besides that, root with CAP_SYS_ADMIN */
} SpawnContext;

#define SPAWN_CONTEXT_NULL \
        ((SpawnContext){ .agent_fd = -EBADF, .become_fd = -EBADF, .seccomp_fd = -EBADF, .files = JAIL_FILES_NONE })

/* agent_path NULL: beside the daemon's own program, else in LIBEXECDIR. *reterr_why (allocated) says what is
 * missing. A missing bubblewrap is not an error here: the daemon runs, and each spawn refuses with
 * the reason. */
int spawn_context_init(SpawnContext *c, const char *agent_path, char **reterr_why);
void spawn_context_done(SpawnContext *c);

typedef struct SpawnRequest {
        const Environment *environment;
        const Limits *limits;
        uid_t uid; /* of the caller; 0 is mapped to the context's jail user */
        gid_t gid;
        const gid_t *groups; /* supplementary groups of the caller; not used for root */
        size_t n_groups;
        const int *join_fds; /* cgroup.procs descriptors */
        size_t n_join_fds;
        const char *project;  /* plain, as project.h says */
        ProjectMode project_mode;
        int network_fd; /* the place of the socket to its proxy (O_PATH); -EBADF: no network */
        bool die_with_parent; /* the jail ends with the daemon */
        bool limit_processes; /* no pids controller: fall back to RLIMIT_NPROC and RLIMIT_DATA */
} SpawnRequest;

typedef struct Spawned {
        pid_t pid; /* bubblewrap's monitor, a child of the daemon */
        int pidfd;
        int socket_fd; /* the daemon's end, non-blocking */
        int stderr_fd; /* what bubblewrap says when it fails, non-blocking; closed by the agent's hello */
} Spawned;

#define SPAWNED_NULL ((Spawned){ .pidfd = -EBADF, .socket_fd = -EBADF, .stderr_fd = -EBADF })

/* The uid outside of what runs in the jail. */
uid_t spawn_jail_uid(const SpawnContext *c, uid_t caller);

/* On failure nothing is left, and *reterr_why (allocated, may be NULL on OOM) says which step failed.
 * -EAGAIN and -ENOMEM may pass and are worth a retry. */
int spawn_jail(const SpawnContext *c, const SpawnRequest *request, Spawned *ret, char **reterr_why);
void spawned_done(Spawned *s);

/* The sentence for a step that failed, there or in sandbox-become; allocated, NULL on OOM. uid is the jail's, project
 * may be NULL. */
char *spawn_explain(const char *step, int error, const char *project, uid_t uid);
