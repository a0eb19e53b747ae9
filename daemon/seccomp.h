/* SPDX-License-Identifier: MIT */
#pragma once

/* The system call filter of every jail. */

/* A sealed memory file with the BPF program, as "bwrap --seccomp" wants it. One for all jails: bwrap reads
 * from the current offset, so each gets its own by fd_reopen(). The fd, or negative errno. */
int seccomp_filter_new(void);
