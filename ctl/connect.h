/* SPDX-License-Identifier: MIT */
#pragma once

/* The connection of a Context: to a socket of this machine, or with -H through ssh to one of another. */

#include "ctl/call.h"

/* Connects if that was not done yet. 0, or -errno with *reterr_why (allocated) in words. */
int context_connect(Context *c, char **reterr_why);

/* After the daemon went away: to the same one again. Starts none. 0, or -errno; says nothing. */
int context_reconnect(Context *c);

void context_disconnect(Context *c);
