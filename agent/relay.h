/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The process that hands the jail's connections to the proxy, which is outside (proxy/handover.h): what listens on the
 * loopback belongs to pid 1, which starts another relay when this one was killed (network.h).
 */

#include "lib/macro.h"

#define RELAY_LISTENERS_MAX 2U
#define RELAY_WAITING_MAX 256U  /* for a proxy that is away or busy; the others wait in the backlog */

/* In a fork of the agent: not dumpable, without privileges, all signals blocked. Never returns. The listeners are
 * non-blocking, -EBADF: none. proxy_fd: an O_PATH descriptor of the proxy's socket. */
_noreturn_ void relay_run(const int listeners[RELAY_LISTENERS_MAX], int proxy_fd);
