/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads where this process is in the control group hierarchies out of the kernel's own texts. Pure. */

#include "lib/macro.h"

/*
 * From the text of /proc/self/cgroup: the path of the group in the hierarchy of a v1 controller, or in the
 * v2 hierarchy when controller is NULL. Allocated; -ENOENT.
 */
int cgroup_own_path(const char *self_cgroup, const char *controller, char **ret);

/*
 * From the text of /proc/self/mountinfo: where the v2 hierarchy is mounted, whole and not a part of it.
 * Allocated; -ENOENT. (libcgroup does not list a v2 mount that has no controllers, as in the hybrid layout.)
 */
int cgroup_unified_mount(const char *mountinfo, char **ret);

/* Whether a list separated by white space or commas holds a word. */
bool cgroup_list_contains(const char *list, const char *word);

/*
 * The number after a key in a text of "key value" lines (cgroup.events, memory.events, cpu.stat, …), or the
 * number that the whole text is when key is NULL. -ENOENT, -EBADMSG.
 */
int cgroup_parse_value(const char *text, const char *key, uint64_t *ret);
