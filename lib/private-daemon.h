/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Connects a client to sandboxd, starting a private one where no other answers (see daemon-address.h). The
 * started daemon is detached from the caller (own session, no inherited descriptors or signal state), logs
 * to <dir>/log and exits by itself when it is idle and empty. Two clients that start one at the same time
 * get the same: sandboxd holds a lock on its runtime directory and the loser of the race just connects.
 */

#include "daemon-address.h"
#include "varlink-client.h"

#define PRIVATE_DAEMON_START_USEC (15 * USEC_PER_SEC)

/*
 * sandboxd is looked for beside the calling program, then in the compiled-in libexec/bin directory, then in
 * PATH. *reterr_why (allocated, to be freed; set on every failure, but NULL when even that has no memory)
 * says in one or two sentences what was tried and what to do. Also refuses a daemon of another API
 * generation, naming the one that is too old.
 */
int daemon_connect(const DaemonAddress *address, VarlinkClient **ret, char **reterr_why);

/* The same, but starts none. */
int daemon_connect_running(const DaemonAddress *address, VarlinkClient **ret, char **reterr_why);

/* Asks a daemon for its version: whether both sides understand each other. socket is only for the text.
 * -ECONNRESET without a text: it hung up. */
int daemon_negotiate(VarlinkClient *c, const char *socket, uint64_t timeout_usec, char **reterr_why);
