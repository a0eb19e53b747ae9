/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * SIGHUP: the daemon executes itself anew, with a new configuration and, after an upgrade, as the new program,
 * under the same pid. Sessions, their running turns too, are not touched: the next daemon takes them over as
 * it would after a crash (adoption.h). Connections close; clients come again.
 */

#include "daemon/manager.h"

typedef struct Reload Reload;

/* Calls that ask for a reload are answered when it is decided: with ReloadRefused and the reason, or with nothing
 * just before the new program is executed. */
#define RELOAD_WAITERS_MAX 64U

/* argv is that of main(). The descriptors are borrowed, and must stay what they are. */
int reload_new(Manager *m, char *argv[], int lock_fd, int listen_fd, Reload **ret);
Reload *reload_free(Reload *r);
DEFINE_TRIVIAL_CLEANUP_FUNC(Reload *, reload_free);

/* After one: children of this process that belong to no session any more are killed and reaped. */
void reload_reap_strays(Manager *m);
