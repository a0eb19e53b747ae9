/* SPDX-License-Identifier: MIT */
#pragma once

/* The child of a spawn, between vfork(2) and execve(2): it has the daemon's memory and makes only system calls. */

#include "daemon/become.h"
#include "daemon/spawn.h"

/* Numbers of descriptors in the child; after 2 in the order of child_fds. */
enum {
        CHILD_FD_AGENT = 3,
        CHILD_FD_SOCKET,
        CHILD_FD_SECCOMP,
        CHILD_FD_PASSWD,
        CHILD_FD_GROUP,
        CHILD_FD_HOSTS,
        CHILD_FD_ARGS,
        CHILD_FD_LIST,          /* for jails with a closure only */
        CHILD_FD_NETWORK,       /* for those with a network */
        _CHILD_FD_MAX,
};

typedef struct SpawnChild {
        const SpawnContext *context;
        const SpawnRequest *request;
        uid_t uid;
        gid_t gid;
        int null_fd;
        int fds[_CHILD_FD_MAX]; /* sources, by target; 2 is the stderr pipe; those of programs are the context's;
                                 * -EBADF: there is to be none */
        char **argv; /* bubblewrap's; sandbox-become's where the context has that */
        /* Written by the child: */
        const char *volatile failed_step;
        volatile int error;
} SpawnChild;

/* Whether the project has to be bound over PROJECT_PLACE. */
bool spawn_project_needs_place(const SpawnContext *c, const SpawnRequest *request);

_noreturn_ void spawn_child_run(SpawnChild *child);
