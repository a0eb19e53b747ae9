/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The other end of -H: ssh(1) as a child, with 'sandboxctl bridge' behind it on the other machine. Who may log
 * in there, and as whom, is ssh's business alone; what it says and asks goes to the terminal as always.
 */

#include <sys/types.h>

#include "lib/macro.h"

/* A socket that leads to the daemon of [USER@]HOST, or -errno. */
int ssh_start(const char *host, pid_t *ret_pid);

/* Ends and reaps it, and clears *pid; nothing when there is none. Its exit status, 128 + signal when ended by
 * one; -ECHILD for none. Close the socket before. */
int ssh_end(pid_t *pid);

/* Why there is no connection, from that status. Allocated. */
char *ssh_explain_end(const char *host, int status);
