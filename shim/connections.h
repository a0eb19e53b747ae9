/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Connections to the daemon: a few that are idle, and one being made. Making one may start a private daemon
 * and take seconds, so it happens on a thread of its own, which hands its result over a pipe: whatever it
 * waits for, the editor's pings are answered and the program ends when it should.
 */

#include "lib/varlink-client.h"

typedef struct Connections Connections;

/* socket is the value of --socket or NULL; borrowed. */
int connections_new(const char *socket, Connections **ret);
/* A thread that is still connecting is left to itself. */
Connections *connections_free(Connections *c);
DEFINE_TRIVIAL_CLEANUP_FUNC(Connections *, connections_free);

/* An idle connection that is alive, or NULL. */
VarlinkClient *connections_take(Connections *c);
/* Takes back a connection with no call in flight. */
void connections_put(Connections *c, VarlinkClient *client);
/* Closes what has been idle for long: a private daemon ends when nobody is connected. */
void connections_expire(Connections *c, uint64_t now);
/* When to do that next; USEC_INFINITY for never. */
uint64_t connections_deadline(const Connections *c);

/* Starts making one, unless that goes on already; starts a private daemon for it only if start_daemon. */
int connections_start(Connections *c, bool start_daemon);
/* Whether the last one would have started a daemon. */
bool connections_started_daemon(const Connections *c);
/* Readable when it is made; -EBADF while none is being made (poll(2) ignores that). */
int connections_fd(const Connections *c);
/*
 * 1: *ret is the new connection; 0: still connecting. Negative: it failed; *reterr_why says why (allocated).
 */
int connections_finish(Connections *c, VarlinkClient **ret, char **reterr_why);
