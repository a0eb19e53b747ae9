/* SPDX-License-Identifier: MIT */
#pragma once

/* Children and this process's own inheritable state. */

#include <signal.h>
#include <sys/types.h>

#include "fd-util.h"

/* pidfd_open(2): a CLOEXEC descriptor that polls readable when the process ends. */
int pidfd_open_pid(pid_t pid);
/* Of a child that was just made. Without one nobody could watch it, so on failure it is killed, if it may be. */
int pidfd_open_child(pid_t pid);
int pidfd_kill(int pidfd, int sig);

/* Default dispositions for all signals and an empty mask. Async-signal-safe: for use between vfork and exec. */
void process_reset_signals(void);

/* The /proc/PID/stat fields of a process that we use. -ESRCH when it is gone. */
typedef struct ProcessStat {
        pid_t ppid, pgrp, session;
        char state;
        uint64_t starttime;     /* clock ticks since boot, proc(5) field 22 */
} ProcessStat;

int process_stat_read(pid_t pid, ProcessStat *ret);
/* Pure part of it: parses the text of /proc/PID/stat. -EBADMSG. */
int process_stat_parse(const char *text, ProcessStat *ret);

/* The directory of this program's binary (for finding its siblings in a build tree). Allocated. */
int program_directory(char **ret);
/* A program of ours: beside this one, else in LIBEXECDIR, whether it is there or not. Allocated. */
int program_sibling(const char *name, char **ret);
