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

/* More than this are left to another pass. */
#define CHILDREN_MAX 1024U

typedef struct Children {
        pid_t pids[CHILDREN_MAX];
        size_t n;
} Children;

/*
 * Finding comes before any signal, and apart from it: an interpreter that is interrupted, or goes on because
 * one of them has ended, may start processes of its driver's (bash writes its state in one), which are to live.
 */
void children_find(pid_t session, uint64_t since, Children *ret);
void children_signal(const Children *c, int sig);

/* Pure: whether the parent of a process is among them, or was. */
bool children_have_parent_of(const Children *c, const ProcessStat *stat);

/* Kills those that were found, and what they forked between the look and the kill: node waits for whoever holds the
 * pipe of a child. The interpreter's own new children are spared. Bounded. */
void children_kill_found(const Children *c, pid_t session, uint64_t since);

/* Kills all that there are, and those they fork meanwhile, in a bounded number of passes. */
void children_kill(pid_t session, uint64_t since);

/* Kills those of them that are still there, and are of the time until then: a pid may be another's by now. */
void children_kill_of(const Children *c, pid_t session, uint64_t since, uint64_t until);
