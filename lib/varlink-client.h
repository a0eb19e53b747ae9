/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The calling side of varlink on one socket, without an event loop: sandboxctl waits in it, the shim polls
 * many of them. One call is in flight at a time. The socket is non-blocking.
 */

#include "fd-util.h"
#include "varlink.h"

typedef struct VarlinkClient VarlinkClient;

/* Connects to a Unix socket path within the timeout. Negative errno of connect(2). */
int varlink_client_connect(const char *path, uint64_t timeout_usec, VarlinkClient **ret);
/* Takes a connected socket (also on failure). */
int varlink_client_new(int fd, VarlinkClient **ret);
VarlinkClient *varlink_client_free(VarlinkClient *c);
DEFINE_TRIVIAL_CLEANUP_FUNC(VarlinkClient *, varlink_client_free);

int varlink_client_fd(const VarlinkClient *c);
/* POLLIN, with POLLOUT while output is queued. */
short varlink_client_events(const VarlinkClient *c);

/* Whether nothing is left of the last call: nothing read beyond its reply, nothing unsent. */
bool varlink_client_is_quiet(const VarlinkClient *c);

/* Queues a call and writes what the socket takes. -EMSGSIZE, -ENOMEM, -EPIPE. parameters is borrowed. */
int varlink_client_send(VarlinkClient *c, const char *method, json_object *parameters, VarlinkFlags flags);

/*
 * Non-blocking: flushes output, reads input. 1: *ret holds a reply (varlink_reply_done() it); 0: nothing
 * yet; -ECONNRESET: the daemon is gone; -EBADMSG, -EMSGSIZE: it does not speak varlink.
 */
int varlink_client_process(VarlinkClient *c, VarlinkReply *ret);

/* Blocks for the next reply. -ETIMEDOUT; USEC_INFINITY waits for ever. */
int varlink_client_receive(VarlinkClient *c, uint64_t timeout_usec, VarlinkReply *ret);

/* send + receive. */
int varlink_client_call(VarlinkClient *c, const char *method, json_object *parameters, uint64_t timeout_usec,
                        VarlinkReply *ret);
