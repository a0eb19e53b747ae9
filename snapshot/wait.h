/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Being told to stop. SIGTERM (also when sandboxd dies) and its kin are blocked and only let in where the program
 * waits, so that they cannot arrive between a look and a wait, nor in the middle of a rename.
 */

#include "lib/macro.h"

/* Once, before the first of the others. */
int wait_init(void);

/* Until fd is readable (or at its end), or the time is over (-1: no bound). 1, 0 for the time, -ECANCELED. */
int wait_readable(int fd, int timeout_msec);
/* The same without a descriptor. */
int wait_time(int msec);

/* Whether there is an order to stop, heard or not. */
bool wait_is_cancelled(void);
