/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What sandboxd and sandbox-become (become/) tell each other: the arguments
 *
 *     sandbox-become --uid=UID [OPTION…] -- PROGRAM ARGV0…
 *
 * and, where PROGRAM cannot be executed, one line on standard error and the exit status 127.
 */

#define BECOME_PROGRAM "sandbox-become"
#define BECOME_STATUS 127

#define BECOME_UID "uid"
#define BECOME_JOIN "join"       /* a descriptor of a cgroup.procs that the process writes itself to; some */
#define BECOME_PROJECT "project" /* a directory that is bound over PROJECT_PLACE, as who it still is */
#define BECOME_PARENT "parent"   /* ends with the process of this id */
#define BECOME_ALONE "alone"     /* makes no processes */

#define BECOME_JOIN_MAX 8U

/* Where bubblewrap finds a root caller's project, which its own user has no way to: a directory that is there on every
 * machine and that jails have nothing of. */
#define PROJECT_PLACE "/sys"

/* PROGRAM: STEP: errno NUMBER (its meaning) */
#define BECOME_TEXT_BEGIN BECOME_PROGRAM ": "
#define BECOME_TEXT_ERROR ": errno "

/* The step whose failure is the caller's affair. */
#define BECOME_STEP_PROJECT "open the project"
