/* SPDX-License-Identifier: MIT */
#pragma once

/* The agent's rights, descriptors and signals as they are to be, once, at its start. */

#include "agent/launch.h"

#define PLACEHOLDER_FD (LAUNCH_FDS - 1)         /* /dev/null */

/* Numbers of descriptors; NULL: not given. */
typedef struct SetupArguments {
        const char *socket;             /* the daemon's */
        const char *list, *filter;      /* with a closure: what store-view.h and privileges.h ask for */
        const char *network;            /* network.h */
} SetupArguments;

/* What is wrong has been logged. */
int setup_parse(int argc, char *argv[], SetupArguments *ret);
/* In a jail with a closure, first of all. What failed has been logged. */
int setup_confine(const SetupArguments *a);
/* No other descriptor from 3 on is left open. Without a network *ret_network is -EBADF. */
int setup_take_fds(const SetupArguments *a, int *ret_socket, int *ret_network);
/* Blocks all signals; *ret tells of children that ended. */
int setup_signals(int *ret);
