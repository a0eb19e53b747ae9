/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How a connection comes out of a jail: the agent's relay, which has accepted it on the jail's loopback, connects to
 * the session's socket and sends the TCP socket itself (SCM_RIGHTS). So there is nobody between its bytes and us.
 */

#include "lib/macro.h"

/* What was sent over a connection of the session's socket: a connected TCP socket, the caller's; -EAGAIN: nothing yet;
 * another negative errno: something else. */
int handover_receive(int fd);
