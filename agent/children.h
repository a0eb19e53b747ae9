/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The processes that a turn has started, found through /proc: the members of the interpreter's session that
 * are not older than the turn. What earlier turns left running in the background is not among them, nor what
 * has made a session of its own.
 */

#include "lib/process.h"

/* Now, in the unit of ProcessStat.starttime. */
uint64_t children_clock(void);

/* Pure: whether a process is one. */
bool children_include(pid_t session, uint64_t since, pid_t pid, const ProcessStat *stat);

/* Signals them all, as far as one pass over /proc sees them. Their number. */
unsigned children_signal(pid_t session, uint64_t since, int sig);

/* Kills them, and those they fork meanwhile, in a bounded number of passes. How many there were at first. */
unsigned children_kill(pid_t session, uint64_t since);
