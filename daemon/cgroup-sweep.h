/* SPDX-License-Identifier: MIT */
#pragma once

/* Clears away whole subtrees of groups. The only code of this part that waits, and only at the start. */

#include "lib/macro.h"

/* SIGKILL to each process directly in a group. Kernels before 5.14, and v1. -ENOENT when there was none. */
int cgroup_kill_processes(int dir_fd);

/* Kills all processes in and below a group of the v2 hierarchy and waits for their end, but not longer than
 * this. With spare (may be NULL), a list of "u1000/id" that ends with NULL, it is a base with groups of users,
 * in which these leaves are left alone. */
void cgroup_sweep_kill(const char *path, const char *const *spare, uint64_t timeout_usec);

/* Removes the empty groups below a group of any hierarchy, and the group itself if it is empty then. */
void cgroup_sweep_remove(const char *path);
