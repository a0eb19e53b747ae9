/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Composes the bubblewrap command that makes a jail. Pure but for jail_files_new(): what goes in are numbers
 * and limits, what comes out are strings.
 */

#include "daemon/limits.h"
#include "daemon/project.h"
#include "lib/buffer.h"
#include "lib/fd-util.h"

#define JAIL_UID 1000U
#define JAIL_GID 1000U
#define JAIL_NAME "sandbox"            /* of the user and of the host */
#define JAIL_WORKSPACE "/workspace"

/* Links into /usr that some hosts have; /bin, /sbin and /lib are made in any case. */
typedef enum JailLink {
        JAIL_LINK_LIB64 = 1 << 0,
        JAIL_LINK_LIB32 = 1 << 1,
        JAIL_LINK_LIBX32 = 1 << 2,
} JailLink;

/* Descriptors are numbers as the child will have them. */
typedef struct JailSpec {
        const Limits *limits;
        unsigned links;         /* JailLink bits, from jail_host_links() */
        bool die_with_parent;   /* where no other daemon could take it over */
        int agent_fd;           /* the agent's binary, executed through its descriptor */
        int socket_fd;          /* its end of the session's socketpair */
        int seccomp_fd;
        int passwd_fd, group_fd, hosts_fd;      /* read from their current offset: reopen for each jail */
        const char *project;    /* what /project is; NULL: nothing */
        const char *project_probe;      /* a name in it that is not there; NULL: it need not be searched */
        bool project_writable;
        const char *root;       /* of an environment with a closure; NULL: the host's /usr */
        const char *store;      /* bound whole: the agent covers it; with root, as the next */
        unsigned programs;      /* bits of environment.h */
        int list_fd;            /* of the closure, for the agent */
        int network_fd;         /* of the way to the proxy, for the agent; -EBADF: no network */
} JailSpec;

/* Which of them this host has. The one look at the file system, done once. */
unsigned jail_host_links(void);

/* The options as --args wants them: NUL-terminated strings one after the other. */
int jail_build_options(const JailSpec *spec, Buffer *ret);

/* "bwrap --args N -- /proc/self/fd/AGENT SOCKET", with a root followed by "LIST SECCOMP", with a network by
 * "network=FD"; NULL-terminated; for strv_free(). */
int jail_build_argv(const JailSpec *spec, int args_fd, char ***ret);

/* The made-up files of a jail, in sealed memory files that all jails share by fd_reopen(). */
typedef struct JailFiles {
        int passwd_fd;
        int group_fd;
        int hosts_fd;
} JailFiles;

#define JAIL_FILES_NONE ((JailFiles) { -EBADF, -EBADF, -EBADF })

int jail_files_new(JailFiles *ret);
void jail_files_done(JailFiles *f);
