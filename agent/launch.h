/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Starts an interpreter process: a session of its own, descriptors 0 to 3, default signals, and a memory
 * of its own that the kernel takes from before it takes the agent's.
 */

#include <sys/types.h>

#include "lib/macro.h"

#define LAUNCH_FDS 4

/* Once, before the agent gives up being dumpable, and with it the ownership of its /proc files. */
void launch_init(void);

/* What is forked until launch_oom_score_restore() is taken by the kernel before others. Best effort: where it fails,
 * the kernel may choose the agent, and the session ends with it. */
void launch_oom_score_raise(int value);
void launch_oom_score_restore(void);

/*
 * argv[0] is looked for in PATH. fds become 0…3; each must be over 3 or already in its place. Errors are
 * those of vfork(2) and execve(2): -ENOENT when there is no such program, -EAGAIN or -ENOMEM at a limit.
 */
int launch_process(const char *const argv[], const int fds[LAUNCH_FDS], pid_t *ret);
