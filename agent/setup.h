/* SPDX-License-Identifier: MIT */
#pragma once

/* The agent's rights, descriptors and signals as they are to be, once, at its start. */

#include "agent/launch.h"

#define PLACEHOLDER_FD (LAUNCH_FDS - 1)         /* /dev/null */

/* In a jail with a closure, first of all; the arguments are the numbers of the two descriptors that store-view.h and
 * privileges.h ask for. What failed has been logged. */
int setup_confine(const char *list, const char *filter);
/* The daemon's socket by its number; no other descriptor from 3 on is left open. */
int setup_take_socket(const char *argument, int *ret);
/* Blocks all signals; *ret tells of children that ended. */
int setup_signals(int *ret);
