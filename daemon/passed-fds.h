/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The descriptors that a daemon is started with, by their names (sd_listen_fds_with_names(3)): its listening
 * socket, and the sockets of sessions that a daemon before it had. The service manager passes them after a
 * crash, the daemon itself when it executes itself anew (reload.h), and then its lock too.
 */

#include "daemon/session-state.h"
#include "lib/fd-util.h"

#define PASSED_FD_LISTEN "listen"
#define PASSED_FD_LOCK "lock"

/* The name of a session's agent is its id, that of its network has this behind it. */
#define PASSED_FD_NETWORK "-network"
#define PASSED_FD_NAME_SIZE (SESSION_ID_LENGTH + sizeof(PASSED_FD_NETWORK))

typedef struct PassedSocket {
        char name[PASSED_FD_NAME_SIZE];
        int fd;
} PassedSocket;

typedef struct PassedFds {
        int listen_fd, lock_fd; /* -EBADF: not passed */
        PassedSocket *sockets; /* of sessions */
        size_t n_sockets;
} PassedFds;

#define PASSED_FDS_NULL ((PassedFds){ .listen_fd = -EBADF, .lock_fd = -EBADF })

/* Takes all, once. *reterr_why (allocated) says what is wrong with them. */
int passed_fds_take(PassedFds *ret, char **reterr_why);
/* Those of a session: its agent's, and the one on which its network listens; or -EBADF. The caller owns it. */
int passed_fds_take_agent(PassedFds *p, const char *id);
int passed_fds_take_network(PassedFds *p, const char *id);
/* Closes what was not taken, and takes such sockets out of the service manager's store too: they belong to no
 * session. Not for a daemon that fails to start, since the next one may succeed. */
void passed_fds_drop(PassedFds *p);
/* Closes what was not taken. */
void passed_fds_done(PassedFds *p);
